//! Pages of `docs/reference` whose end is made by the program: they are compared with it, and renewed on request.

/// Holds what is written behind the heading of a page against what the program makes of it. To renew it:
/// `LANEWAY_WRITE_REFERENCE=1 cargo test -p laneway-server reference`.
pub(crate) fn compare(name: &str, heading: &str, made: &str) {
    let path = format!("{}/../../docs/reference/{name}", env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(&path).unwrap();
    let (head, written) = page.split_once(heading).expect("the page has the heading");
    if std::env::var_os("LANEWAY_WRITE_REFERENCE").is_some() {
        std::fs::write(path, format!("{head}{heading}{made}")).unwrap();
        return;
    }
    for (written, made) in written.lines().zip(made.lines()) {
        assert_eq!(written, made, "docs/reference/{name} is not what the program knows");
    }
    assert_eq!(written.lines().count(), made.lines().count(), "docs/reference/{name}");
}
