//! What a node says of itself when it joins.

use std::time::Duration;

use laneway_core::Refusal;

/// Longest name of a node, or of a tag, in bytes.
const NAME_BYTES_MAX: usize = 128;
/// Most tags of a node.
const TAGS_MAX: usize = 64;
const WEIGHT_MAX: u32 = 1_000;
const LEASE_MIN: Duration = Duration::from_secs(1);
const LEASE_MAX: Duration = Duration::from_secs(600);
const PERIOD_MAX: Duration = Duration::from_secs(3_600);

/// How a node takes part in a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeSettings {
    /// Its name, for people; two lives of a node may share it.
    pub name: String,
    /// How much it takes in comparison to others. Default: 1.
    pub weight: u32,
    /// Whether it owns something only when no other node can. Default: false.
    pub standby: bool,
    /// Words about the node, for people and for whoever places work by them. Default: none.
    pub tags: Vec<String>,
    /// What it is there for, for people: `all`, `api` or `engine`. Default: `all`.
    pub role: String,
    /// How long the node is believed to live after it was last heard of. Default: 10 s.
    pub lease: Duration,
    /// How long a node that has joined takes nothing from others, so that its neighbours can join too. Default: 2 s.
    pub settle: Duration,
    /// How long runs may go on when their seat moves to another node, before they are asked to stop. Default: 10 s.
    pub grace: Duration,
}

impl NodeSettings {
    /// A node with default settings.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            weight: 1,
            standby: false,
            tags: Vec::new(),
            role: "all".to_owned(),
            lease: Duration::from_secs(10),
            settle: Duration::from_secs(2),
            grace: Duration::from_secs(10),
        }
    }

    /// All that is wrong, at once.
    pub fn check(&self) -> Result<(), Vec<Refusal>> {
        let mut faults = Vec::new();
        let mut name = |field, name: &str| {
            if name.is_empty() || name.len() > NAME_BYTES_MAX || name.chars().any(char::is_control) {
                let limit = format!("1 to {NAME_BYTES_MAX} bytes without control characters");
                faults.push(Refusal::new(field, format!("{name:?}"), limit));
            }
        };
        name("node.name", &self.name);
        self.tags.iter().for_each(|tag| name("node.tags", tag));
        let mut number = |field, value: String, fits: bool, limit: String| {
            if !fits {
                faults.push(Refusal::new(field, value, limit));
            }
        };
        let (tags, weight) = (self.tags.len(), self.weight);
        number("node.tags", format!("{tags} tags"), tags <= TAGS_MAX, format!("at most {TAGS_MAX}"));
        number(
            "node.weight",
            weight.to_string(),
            (1..=WEIGHT_MAX).contains(&weight),
            format!("1 to {WEIGHT_MAX}"),
        );
        let periods = [
            ("node.lease", self.lease, LEASE_MIN, LEASE_MAX),
            ("node.settle", self.settle, Duration::ZERO, PERIOD_MAX),
            ("node.grace", self.grace, Duration::ZERO, PERIOD_MAX),
        ];
        for (field, value, min, max) in periods {
            let fits = (min..=max).contains(&value);
            number(field, format!("{value:?}"), fits, format!("{min:?} to {max:?}"));
        }
        if faults.is_empty() { Ok(()) } else { Err(faults) }
    }
}
