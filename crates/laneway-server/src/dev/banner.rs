//! What is said first: where it listens, what is promised, and three lines to paste.

use std::net::SocketAddr;

use laneway::Durability;

use crate::settings::Handler;
use crate::terminal::{Terminal, Tone, plain};

/// What the first words name.
pub(crate) struct Banner<'a> {
    pub(crate) address: SocketAddr,
    pub(crate) store: String,
    pub(crate) durability: Durability,
    pub(crate) partitions: u32,
    pub(crate) handler: &'a Handler,
}

impl Banner<'_> {
    pub(crate) fn text(&self, terminal: Terminal) -> String {
        let url = format!("http://{}", self.address);
        let orders = format!("{url}/v1/streams/orders");
        let strong = |text: &str| terminal.toned(Tone::Strong, text);
        let faint = |text: &str| terminal.toned(Tone::Faint, text);
        let promise = match self.durability {
            Durability::Synced | Durability::Replicated(_) => "every answer is on disk first",
            Durability::Buffered => "survives this process, not a power cut",
            Durability::Memory => "gone with this process",
        };
        let (handler, yours) = match self.handler {
            Handler::Demo => (
                r#"built in: 300 ms per event; key "bad" fails 3 times, then its lane parks"#.to_owned(),
                "Your handler: add  -- python3 handler.py      ",
            ),
            Handler::Exec { command, .. } => (
                format!(
                    "yours: {}; exit 0 done, 75 try again, 65 failed for good",
                    plain(&command.join(" "))
                ),
                "",
            ),
        };
        let third = match self.handler {
            Handler::Demo => format!(
                r#"  {} curl -s --json '{{"key":"bad","data":0}}' {orders}/events; sleep 5; curl -s '{orders}/lane?key=bad'"#,
                faint("3. trouble:"),
            ),
            // Only the demo fails on a key.
            Handler::Exec { .. } => {
                format!("  {} curl -s '{orders}/lane?key=ann'", faint("3. lane:   "))
            }
        };
        let lines = [
            format!(
                "{}   {}   (loopback only, no token needed)",
                strong(concat!("Laneway ", env!("CARGO_PKG_VERSION"))),
                strong(&url)
            ),
            format!("store      {}   {}: {promise}", self.store, self.durability),
            format!("stream     orders   {} partitions, mode queue", self.partitions),
            format!("processor  demo     {handler}"),
            String::new(),
            "Try in a second terminal:".to_owned(),
            format!(
                r#"  {} curl -s --json '[{{"key":"ann","data":1}},{{"key":"ann","data":2}},{{"key":"bob","data":3}}]' {orders}/events"#,
                faint("1. order:  "),
            ),
            format!(
                r#"  {} curl -s --json '{{"key":"ann","data":{{"hello":"world"}}}}' -H 'Prefer: wait=10' {orders}/jobs"#,
                faint("2. result: "),
            ),
            third,
            format!("{yours}Stop: Ctrl-C, nothing is lost"),
        ];
        lines.join("\n")
    }
}
