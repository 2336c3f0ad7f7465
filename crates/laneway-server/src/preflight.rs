//! What can be known to be wrong before anything is made or served: programs that are not there, files that cannot be
//! read, an address that may not be listened on, a URL that names no store.
//!
//! `serve` begins with it and `config check` is nothing else, so that what one calls good the other does not refuse.
//! Whether the address is free and what the store says is known only later.

use std::net::ToSocketAddrs as _;

use crate::declare::secret_at;
use crate::handlers::find_program;
use crate::listen::{Tls, check_exposure};
use crate::settings::{Faults, Http, Processor, ProcessorHandler, Settings, Store};

/// All that is wrong, at once.
pub(crate) fn check(settings: &Settings) -> Result<(), Faults> {
    let mut faults = http(&settings.http);
    faults.extend(store(&settings.store));
    faults.extend(settings.webhook.rules().err().map(|error| error.to_string()));
    faults.extend(settings.processors.iter().filter_map(handler));
    if faults.is_empty() { Ok(()) } else { Err(Faults(faults)) }
}

fn store(store: &Store) -> Option<String> {
    if let Some(folder) = store.backup_dir.as_ref().filter(|folder| !folder.is_dir()) {
        return Some(format!("store.backup_dir {folder:?}: must be an existing folder"));
    }
    if store.is_single() {
        return None;
    }
    laneway::redis::check(&store.url, &store.options()).err().map(|error| error.to_string())
}

fn http(http: &Http) -> Vec<String> {
    let tokens = http.book().err().map(|error| error.to_string());
    let tls = http.tls_files().and_then(|files| Tls::new(files).err()).map(|error| error.to_string());
    [tokens, tls, exposure(http)].into_iter().flatten().collect()
}

fn exposure(http: &Http) -> Option<String> {
    let no_address = |why: String| format!("cannot listen on {}: {why}", http.listen);
    match http.listen.to_socket_addrs().map(|mut found| found.next()) {
        Ok(Some(address)) => check_exposure(address, http.consent()).err(),
        Ok(None) => Some(no_address("the name stands for no address".to_owned())),
        Err(error) => Some(no_address(error.to_string())),
    }
}

fn handler(processor: &Processor) -> Option<String> {
    let wrong = match &processor.handler {
        ProcessorHandler::Exec(command) | ProcessorHandler::Pipe(command) => {
            find_program(command).err()?.to_string()
        }
        ProcessorHandler::Web { secret, .. } => secret.as_ref().and_then(|place| secret_at(place).err())?,
        ProcessorHandler::Pull => return None,
    };
    Some(format!("processor {:?}: {wrong}", processor.name))
}
