//! How this process takes part in a cluster, where its store can have one.

use std::time::Duration;

use laneway::NodeSettings;

use crate::duties::Duties;

/// `[node]`, as far as other nodes are concerned.
#[derive(Debug, PartialEq)]
pub(crate) struct Member {
    /// Its name; nothing: the machine's name and the number of the process.
    pub(crate) name: Option<String>,
    pub(crate) weight: u32,
    pub(crate) standby: bool,
    pub(crate) lease: Duration,
    pub(crate) settle: Duration,
    pub(crate) grace: Duration,
}

impl Default for Member {
    fn default() -> Self {
        let NodeSettings { weight, standby, lease, settle, grace, .. } = NodeSettings::new("");
        Self { name: None, weight, standby, lease, settle, grace }
    }
}

impl Member {
    /// As the others get to know it.
    pub(crate) fn settings(&self, duties: &Duties) -> NodeSettings {
        let name = self.name.clone().unwrap_or_else(usual_name);
        NodeSettings {
            name,
            weight: self.weight,
            standby: self.standby,
            tags: duties.tags.clone(),
            role: duties.role.word().to_owned(),
            lease: self.lease,
            settle: self.settle,
            grace: self.grace,
        }
    }
}

fn usual_name() -> String {
    let machine = rustix::system::uname();
    format!("{}-{}", machine.nodename().to_string_lossy(), std::process::id())
}
