//! What a store is asked for besides its URL.

use std::path::PathBuf;
use std::time::Duration;

use laneway_engine::cluster::NodeSettings;

/// What a store is asked for, besides where it is. All but `clock_settle` is for stores that several processes share. Whatever is
/// absent is as usual.
///
/// ```no_run
/// use laneway::{Laneway, StoreOptions};
///
/// # async fn open() -> laneway::Result<()> {
/// let options = StoreOptions { namespace: Some("shop".to_owned()), ..StoreOptions::default() };
/// let app = Laneway::open_with("redis://127.0.0.1:6379", &options).await?; // needs the feature `redis`
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreOptions {
    /// Keeps several applications on one server apart. Default `laneway`.
    pub namespace: Option<String>,
    /// How many replicas must have a write before it is answered. Default 0.
    pub wait_replicas: Option<u8>,
    /// How long to wait for an answer before the call is repeated. Default 10 seconds.
    pub answer_within: Option<Duration>,
    /// How long a connection may take. Default 5 seconds.
    pub connect_within: Option<Duration>,
    /// File with the authorities that may vouch for the server, as PEM. Default: those that the machine trusts.
    pub tls_ca: Option<PathBuf>,
    /// File with our certificate, as PEM, for servers that ask for one. Default none.
    pub tls_cert: Option<PathBuf>,
    /// File with its key. Default none.
    pub tls_key: Option<PathBuf>,
    /// How long the wall clock must agree with the steady clock, after a jump of more than a minute or a reboot, before the store
    /// believes it and deletes data by its age. For every store. Default 10 minutes.
    pub clock_settle: Option<Duration>,
    /// How this process takes part among the others on the store. Default: a node that is named after its process.
    pub node: Option<NodeSettings>,
}

impl StoreOptions {
    /// The first option that was given and is for a shared store alone.
    pub(super) fn given(&self) -> Option<&'static str> {
        let given = [
            ("namespace", self.namespace.is_some()),
            ("wait_replicas", self.wait_replicas.is_some()),
            ("answer_within", self.answer_within.is_some()),
            ("connect_within", self.connect_within.is_some()),
            ("tls_ca", self.tls_ca.is_some()),
            ("tls_cert", self.tls_cert.is_some()),
            ("tls_key", self.tls_key.is_some()),
            ("node", self.node.is_some()),
        ];
        given.into_iter().find_map(|(name, is_given)| is_given.then_some(name))
    }
}
