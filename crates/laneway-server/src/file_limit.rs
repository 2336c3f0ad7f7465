//! How many files the process may have open: connections are files too.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Open files that are kept for the store, for handlers and for calls that come when all connections are taken.
const KEPT: usize = 512;

/// So many connections as are wanted, or as many as the system allows if that is less.
pub(crate) fn connections(wanted: usize) -> usize {
    let allowed = raised().saturating_sub(KEPT).max(KEPT / 8);
    if allowed < wanted {
        tracing::warn!(
            "the limit of open files allows {allowed} connections instead of {wanted} (http.connections_max); raise it \
             with ulimit -n, or LimitNOFILE"
        );
    }
    wanted.min(allowed)
}

/// The limit of open files, as high as the process may raise it.
fn raised() -> usize {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum
        && let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })
    {
        tracing::debug!(%error, "the limit of open files stays as it is");
    }
    let current = getrlimit(Resource::Nofile).current;
    current.map_or(usize::MAX, |files| usize::try_from(files).unwrap_or(usize::MAX))
}
