//! What settings mean together: faults that no setting has alone.

use super::table::Settings;

/// What is wrong with settings that are each fine.
pub(super) fn faults(settings: &Settings) -> Vec<String> {
    let mut faults = Vec::new();
    let (url, namespace) = (&settings.store.url, &settings.store.namespace);
    if namespace != "laneway" && is_single(url) {
        faults.push(format!(
            "store.namespace {namespace:?}: a file: or memory: store holds one application, named \"laneway\"; give \
             another application a folder of its own"
        ));
    }
    faults
}

/// Whether the store is for one process only.
fn is_single(url: &str) -> bool {
    url.starts_with("file:") || url.starts_with("memory:")
}
