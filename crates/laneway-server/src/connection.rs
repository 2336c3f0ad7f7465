//! From what was typed and what the environment says to a client of a server.

use std::path::Path;

use laneway_client::Client;

use crate::args::ServerArgs;
use crate::exit::{Exit, Fault};

/// The variable that names the server.
const SERVER: &str = "LANEWAY_SERVER";
/// The variable that has the token.
const TOKEN: &str = "LANEWAY_TOKEN";
/// Where a server is unless it is said.
const SERVER_DEFAULT: &str = "http://127.0.0.1:7070";

/// A client of the server that is meant. Nothing is sent yet.
pub(crate) fn connect(args: &ServerArgs) -> Result<Client, Fault> {
    let of = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let url = args.server.clone().or_else(|| of(SERVER)).unwrap_or_else(|| SERVER_DEFAULT.to_owned());
    let mut client = Client::new(url.trim_end_matches('/'))?;
    let token = match &args.token_file {
        Some(file) => Some(read("--token-file", file)?),
        None => of(TOKEN),
    };
    if let Some(token) = token {
        client = client.with_token(token.trim())?;
    }
    if let Some(file) = &args.ca_file {
        client = client.with_ca(read("--ca-file", file)?.as_bytes())?;
    }
    Ok(client)
}

fn read(name: &str, file: &Path) -> Result<String, Fault> {
    std::fs::read_to_string(file)
        .map_err(|error| Fault::new(Exit::Usage, format!("{name} {}: {error}", file.display())))
}
