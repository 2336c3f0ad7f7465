//! Servers with tokens and certificates, for tests.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::program::{Program, run};

/// A token as `laneway config token` makes it.
#[derive(Debug)]
pub(crate) struct Token {
    pub(crate) name: String,
    pub(crate) secret: String,
    pub(crate) line: String,
}

impl Token {
    /// A new token of this name with these scopes.
    pub(crate) fn new(name: &str, scopes: &str) -> Self {
        let output = run(Path::new("."), &["config", "token", name, "--scopes", scopes]);
        assert!(output.status.success(), "{output:?}");
        let told = String::from_utf8(output.stdout).unwrap();
        let (secret, line) = told.trim_end().split_once('\n').unwrap();
        Self { name: name.to_owned(), secret: secret.to_owned(), line: line.to_owned() }
    }
}

/// A file that only its owner can read.
pub(crate) fn write_private(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
}

/// A server that needs one of these tokens. None of them may ever be seen on its stderr.
pub(crate) async fn serve_with_tokens(folder: &Path, tokens: &[Token]) -> Program {
    let lines: Vec<&str> = tokens.iter().map(|token| token.line.as_str()).collect();
    write_private(&folder.join("tokens"), &lines.join("\n"));
    let mut program = Program::serve_as(folder, &["--token-file", "tokens"], &[]).await;
    program.keep_secret(tokens.iter().map(|token| token.secret.clone()));
    program
}
