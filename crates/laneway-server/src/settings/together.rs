//! What settings mean together: faults that no setting has alone.

use laneway::StoreOptions;

use super::member::Member;
use super::values::Settings;
use crate::duties::Role;

/// What is wrong with settings that are each fine.
pub(super) fn faults(settings: &Settings) -> Vec<String> {
    let mut faults = Vec::new();
    let (store, namespace) = (&settings.store, &settings.store.namespace);
    if namespace != "laneway" && store.is_single() {
        faults.push(format!(
            "store.namespace {namespace:?}: a file: or memory: store holds one application, named \"laneway\"; give \
             another application a folder of its own"
        ));
    }
    if store.backup_dir.is_some() && !store.url.starts_with("file:") {
        faults.push(
            "store.backup_dir: only a file: store can be copied into a folder while it works, so it must not be set; a Redis \
             server has backups of its own (docs/operating/backup.md)"
                .to_owned(),
        );
    }
    let alone = StoreOptions { clock_settle: store.shared.clock_settle, ..StoreOptions::default() };
    if store.is_single() && store.shared != alone {
        faults.push(
            "store.wait_replicas, store.answer_within, store.connect_within, store.tls_ca, store.tls_cert, store.tls_key: \
             a file: or memory: store has no server, so none of them can be set"
                .to_owned(),
        );
    }
    if store.is_single() && settings.member != Member::default() {
        faults.push(
            "node.name, node.weight, node.standby, node.lease, node.settle, node.grace: a file: or memory: store has no \
             other nodes, so none of them can be set"
                .to_owned(),
        );
    }
    if !store.is_single() {
        let member = settings.member.settings(&settings.node).check().err();
        faults.extend(member.into_iter().flatten().map(|fault| fault.to_string()));
    }
    let role = settings.node.role;
    if role != Role::All && store.is_single() {
        faults.push(format!(
            "node.role {:?}: a file: or memory: store is for one process, so its role must be \"all\"; roles apart need a \
             store that several processes share",
            role.word()
        ));
    }
    let http = &settings.http;
    if http.tls_cert.is_some() != http.tls_key.is_some() {
        faults.push(
            "http.tls_cert and http.tls_key: one is set without the other, must be both or none".to_owned(),
        );
    }
    if http.tls_client_ca.is_some() && http.tls_cert.is_none() {
        faults.push(
            "http.tls_client_ca: callers show certificates over TLS, so http.tls_cert must be set too"
                .to_owned(),
        );
    }
    if http.token_file.is_some() && http.tokens.is_some() {
        faults.push(
            "http.token_file and http.tokens: both say which tokens are valid, must be one of them"
                .to_owned(),
        );
    }
    if http.allow_anonymous && http.consent().tokens {
        faults.push(
            "http.allow_anonymous: there are tokens, so it must be false; or remove the tokens".to_owned(),
        );
    }
    faults
}
