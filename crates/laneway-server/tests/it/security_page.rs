//! The commands of `docs/operating/security.md` do what the page says.

use std::path::Path;
use std::process::Command;

use rustix::process::Signal;

use crate::program::Program;
use crate::protected::Token;
use crate::seam;

/// The commands of the page, block by block.
fn blocks() -> Vec<String> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operating/security.md");
    let text = std::fs::read_to_string(path).unwrap();
    let blocks = text.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap().to_owned());
    blocks.collect()
}

/// Runs commands as if they were pasted, with the program where a shell finds it.
fn pasted(folder: &Path, commands: &str) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_laneway")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let output =
        Command::new("sh").args(["-ec", commands]).current_dir(folder).env("PATH", path).output().unwrap();
    assert!(output.status.success(), "{commands}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_commands_of_the_page_give_what_it_says() {
    let folder = tempfile::tempdir().unwrap();
    let [make, keep, reload, certify] = blocks().try_into().unwrap();
    let told = pasted(folder.path(), &make);
    let lines: Vec<&str> = told.lines().collect();
    assert!(lines.len() == 2 && lines[0].starts_with("lw_"), "{lines:?}");
    assert!(lines[1].starts_with("billing read,write sha256:"), "{lines:?}");

    let (prepare, serve) = keep.trim_end().rsplit_once('\n').unwrap();
    pasted(folder.path(), prepare);
    pasted(folder.path(), &certify);
    let args: Vec<&str> = serve.strip_prefix("laneway serve ").unwrap().split(' ').collect();
    let args =
        [&args[..], &["--listen", "0.0.0.0:0", "--tls-cert", "cert.pem", "--tls-key", "key.pem"]].concat();
    let mut program = Program::serve_as(folder.path(), &args, &[]).await;
    let made = std::fs::read_to_string(folder.path().join("new-token")).unwrap();
    let token = made.lines().next().unwrap().to_owned();
    program.keep_secret([token.clone()]);
    let look = |token: &str| {
        let url = format!("{}/v1/streams", program.address());
        let line =
            format!("curl -s -o answer -w '%{{http_code}}' --cacert cert.pem --oauth2-bearer {token} {url}");
        pasted(folder.path(), &line)
    };
    assert_eq!(look(&token), "200");

    // The rotation: a second token beside the first. Other programs of this name are other tests'.
    let second = Token::new("billing", "read");
    assert_eq!(look(&second.secret), "401");
    pasted(folder.path(), &format!("echo '{}' >> tokens", second.line));
    assert_eq!(reload.trim(), "kill -HUP \"$(pidof laneway)\"");
    program.signal(Signal::HUP);
    seam::until("the second token", async || (look(&second.secret) == "200").then_some(())).await;
    assert_eq!(look(&token), "200");
    program.stop().await;
}
