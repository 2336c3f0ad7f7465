//! All settings of `laneway serve` but the lists: one entry each.

use tracing_subscriber::filter::LevelFilter;

use super::field::{Field, Form, bounded, choice, length, list, number, path, put, put_some, text, yes_no};
use super::values::Settings;
use super::{listen, webhook};
use crate::access::Secret;
use crate::duties::Role;
use crate::logs::Format;

/// More replicas than anybody waits for.
const REPLICAS_MAX: usize = 100;

/// One setting, and where besides the file it can be said.
pub(crate) struct Setting {
    /// What it is.
    pub(crate) field: Field<Settings>,
    /// Its flag of `laneway serve`, without the dashes. A secret has none: others can see what was typed.
    pub(crate) flag: Option<&'static str>,
    /// What may be shown of its value.
    pub(crate) shown: Shown,
}

/// What may be shown of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    /// All of it.
    Whole,
    /// All but who signs in, and with which words.
    WithoutUser,
    /// Only that there is one.
    Nothing,
}

impl Setting {
    /// The variable that says the same.
    pub(crate) fn variable(&self) -> String {
        format!("LANEWAY_{}", self.field.path.replace('.', "_").to_uppercase())
    }
}

/// All of them, in the order in which they are told.
pub(crate) const TABLE: &[Setting] = &[
    Setting {
        field: Field {
            path: "store.url",
            form: Form::Text("URL"),
            default: Some("file:./laneway-data"),
            about: "Where everything is kept: `file:PATH`, `redis://HOST:PORT/DB` (`rediss://` over TLS, `unix:PATH`), or `memory:` to keep nothing.",
            read: |to, value| put(&mut to.store.url, text(value).and_then(url)),
        },
        flag: Some("store"),
        shown: Shown::WithoutUser,
    },
    Setting {
        field: Field {
            path: "store.namespace",
            form: Form::Text("NAME"),
            default: Some("laneway"),
            about: "Separates applications on one store. `file:` and `memory:` hold one application each, named laneway.",
            read: |to, value| put(&mut to.store.namespace, text(value)),
        },
        flag: None,
        shown: Shown::Whole,
    },
    Setting {
        field: Field {
            path: "store.clock_settle",
            form: Form::Length,
            default: None,
            about: "How long the wall clock must agree with the steady clock, after a jump of more than a minute or a reboot, before dates follow it and data is deleted by its age; 10m when it is not set.",
            read: |to, value| put_some(&mut to.store.shared.clock_settle, length(value)),
        },
        flag: None,
        shown: Shown::Whole,
    },
    Setting {
        field: Field {
            path: "store.backup_dir",
            form: Form::Text("FOLDER"),
            default: None,
            about: "Existing folder for backups that are asked for over the API (`laneway store backup NAME`). Only for a `file:` store. When it is not set, such calls are refused.",
            read: |to, value| put_some(&mut to.store.backup_dir, path(value)),
        },
        flag: None,
        shown: Shown::Whole,
    },
    Setting {
        field: Field {
            path: "store.wait_replicas",
            form: Form::Number,
            default: None,
            about: "Replicas that must have a write before it is answered (Redis: `WAIT`); receipts then say `replicated`. Without it none is waited for.",
            read: |to, value| put_some(&mut to.store.shared.wait_replicas, replicas(value)),
        },
        flag: None,
        shown: Shown::Whole,
    },
    Setting {
        field: Field {
            path: "store.answer_within",
            form: Form::Length,
            default: None,
            about: "How long a server may take to answer before the call is repeated; 10s when it is not set.",
            read: |to, value| put_some(&mut to.store.shared.answer_within, length(value)),
        },
        flag: None,
        shown: Shown::Whole,
    },
    Setting {
        field: Field {
            path: "store.connect_within",
            form: Form::Length,
            default: None,
            about: "How long a connection to a server may take; 5s when it is not set.",
            read: |to, value| put_some(&mut to.store.shared.connect_within, length(value)),
        },
        flag: None,
        shown: Shown::Whole,
    },
    Setting {
        field: Field {
            path: "store.tls_ca",
            form: Form::Text("FILE"),
            default: None,
            about: "File with the authorities that may vouch for a server over TLS, as PEM; those that the machine trusts when it is not set.",
            read: |to, value| put_some(&mut to.store.shared.tls_ca, path(value)),
        },
        flag: None,
        shown: Shown::Whole,
    },
    Setting {
        field: Field {
            path: "store.tls_cert",
            form: Form::Text("FILE"),
            default: None,
            about: "File with the certificate to show to a server that asks for one, as PEM.",
            read: |to, value| put_some(&mut to.store.shared.tls_cert, path(value)),
        },
        flag: None,
        shown: Shown::Whole,
    },
    Setting {
        field: Field {
            path: "store.tls_key",
            form: Form::Text("FILE"),
            default: None,
            about: "File with the key of that certificate.",
            read: |to, value| put_some(&mut to.store.shared.tls_key, path(value)),
        },
        flag: None,
        shown: Shown::Whole,
    },
    Setting {
        field: Field {
            path: "http.listen",
            form: Form::Text("ADDRESS:PORT"),
            default: Some("127.0.0.1:7070"),
            about: "Address to listen on; port 0 picks a free one. One that others can reach takes tokens and TLS.",
            read: |to, value| put(&mut to.http.listen, text(value).and_then(listen::check_form)),
        },
        flag: Some("listen"),
        shown: Shown::Whole,
    },
    Setting {
        field: Field {
            path: "http.token_file",
            form: Form::Text("FILE"),
            default: None,
            about: "File with the tokens that are valid, one line each: NAME SCOPES sha256:HEX. `laneway config token` makes one.",
            read: |to, value| put_some(&mut to.http.token_file, path(value)),
        },
        flag: Some("token-file"),
        shown: Shown::Whole,
    },
    Setting {
        field: Field {
            path: "http.tokens",
            form: Form::Text("LINES"),
            default: None,
            about: "The same lines, with semicolons between them, for where the environment holds secrets.",
            read: |to, value| put_some(&mut to.http.tokens, text(value).map(Secret::new)),
        },
        flag: None,
        shown: Shown::Nothing,
    },
    Setting {
        field: Field {
            path: "http.tls_cert",
            form: Form::Text("FILE"),
            default: None,
            about: "Certificate, and those that vouch for it, as PEM.",
            read: |to, value| put_some(&mut to.http.tls_cert, path(value)),
        },
        flag: Some("tls-cert"),
        shown: Shown::Whole,
    },
    Setting {
        field: Field {
            path: "http.tls_key",
            form: Form::Text("FILE"),
            default: None,
            about: "Key of the certificate as PEM, in a file that only its owner may read.",
            read: |to, value| put_some(&mut to.http.tls_key, path(value)),
        },
        flag: Some("tls-key"),
        shown: Shown::Whole,
    },
    Setting {
        field: Field {
            path: "http.tls_client_ca",
            form: Form::Text("FILE"),
            default: None,
            about: "Certificates as PEM that vouch for callers; a caller without such a certificate is refused.",
            read: |to, value| put_some(&mut to.http.tls_client_ca, path(value)),
        },
        flag: Some("tls-client-ca"),
        shown: Shown::Whole,
    },
    Setting {
        field: Field {
            path: "http.hosts",
            form: Form::List("NAME"),
            default: None,
            about: "Names by which callers may mean this server, beside localhost and addresses.",
            read: |to, value| put(&mut to.http.hosts, list(value)),
        },
        flag: Some("hosts"),
        shown: Shown::Whole,
    },
    Setting {
        field: Field {
            path: "http.allow_plaintext",
            form: Form::YesNo,
            default: Some("false"),
            about: "Lets others connect without TLS: for a server behind an ingress. Tokens are still needed.",
            read: |to, value| put(&mut to.http.allow_plaintext, yes_no(value)),
        },
        flag: Some("allow-plaintext"),
        shown: Shown::Whole,
    },
    Setting {
        field: Field {
            path: "http.allow_anonymous",
            form: Form::YesNo,
            default: Some("false"),
            about: "Lets others call without a token: whoever can connect can do everything.",
            read: |to, value| put(&mut to.http.allow_anonymous, yes_no(value)),
        },
        flag: Some("allow-anonymous"),
        shown: Shown::Whole,
    },
    Setting {
        field: Field {
            path: "http.read_only",
            form: Form::YesNo,
            default: Some("false"),
            about: "Refuses every change, and runs nothing.",
            read: |to, value| put(&mut to.http.read_only, yes_no(value)),
        },
        flag: Some("read-only"),
        shown: Shown::Whole,
    },
    Setting {
        field: Field {
            path: "http.body_bytes_max",
            form: Form::Number,
            default: Some("1048576"),
            about: "Longest body in bytes, after it is unpacked. A settlement may have 16 MiB of results beside it.",
            read: |to, value| put(&mut to.http.limits.body_bytes, bounded(value, 1024, 16777216)),
        },
        flag: None,
        shown: Shown::Whole,
    },
    Setting {
        field: Field {
            path: "http.url_bytes_max",
            form: Form::Number,
            default: Some("8192"),
            about: "Longest path with its query in bytes.",
            read: |to, value| put(&mut to.http.limits.url_bytes, bounded(value, 256, 16384)),
        },
        flag: None,
        shown: Shown::Whole,
    },
    Setting {
        field: Field {
            path: "http.headers_max",
            form: Form::Number,
            default: Some("64"),
            about: "Most headers of a request.",
            read: |to, value| put(&mut to.http.limits.headers, bounded(value, 8, 96)),
        },
        flag: None,
        shown: Shown::Whole,
    },
    Setting {
        field: Field {
            path: "http.header_bytes_max",
            form: Form::Number,
            default: Some("16384"),
            about: "Longest headers of a request in bytes, together.",
            read: |to, value| put(&mut to.http.limits.header_bytes, bounded(value, 1024, 32768)),
        },
        flag: None,
        shown: Shown::Whole,
    },
    Setting {
        field: Field {
            path: "http.calls_max",
            form: Form::Number,
            default: Some("1024"),
            about: "Most calls under way at once; one more is answered with 503.",
            read: |to, value| put(&mut to.http.limits.calls, bounded(value, 1, 1000000)),
        },
        flag: None,
        shown: Shown::Whole,
    },
    Setting {
        field: Field {
            path: "http.waiting_max",
            form: Form::Number,
            default: Some("4096"),
            about: "Most calls at once that wait for something to happen, or stream; one more is answered with 503.",
            read: |to, value| put(&mut to.http.limits.waiting, bounded(value, 1, 1000000)),
        },
        flag: None,
        shown: Shown::Whole,
    },
    Setting {
        field: Field {
            path: "http.body_memory_bytes_max",
            form: Form::Number,
            default: Some("268435456"),
            about: "Most bytes of bodies in memory at once, of all calls together.",
            read: |to, value| {
                put(&mut to.http.limits.body_memory_bytes, bounded(value, 33554432, 1099511627776))
            },
        },
        flag: None,
        shown: Shown::Whole,
    },
    Setting {
        field: Field {
            path: "http.rate_max",
            form: Form::Number,
            default: None,
            about: "Most calls per second of one token; one more is answered with 429.",
            read: |to, value| put_some(&mut to.http.limits.rate, number(value).and_then(not_zero)),
        },
        flag: None,
        shown: Shown::Whole,
    },
    Setting {
        field: Field {
            path: "http.connections_max",
            form: Form::Number,
            default: Some("4096"),
            about: "Most connections at once; one more takes the place of the one that has kept the server waiting longest.",
            read: |to, value| put(&mut to.http.patience.count_max, bounded(value, 1, 1000000)),
        },
        flag: None,
        shown: Shown::Whole,
    },
    Setting {
        field: Field {
            path: "http.header_timeout",
            form: Form::Length,
            default: Some("10s"),
            about: "Longest time for a handshake and the head of a request.",
            read: |to, value| put(&mut to.http.patience.head, length(value)),
        },
        flag: None,
        shown: Shown::Whole,
    },
    Setting {
        field: Field {
            path: "http.body_timeout",
            form: Form::Length,
            default: Some("30s"),
            about: "Longest time between two pieces of a body.",
            read: |to, value| put(&mut to.http.patience.body, length(value)),
        },
        flag: None,
        shown: Shown::Whole,
    },
    Setting {
        field: Field {
            path: "http.idle_timeout",
            form: Form::Length,
            default: Some("75s"),
            about: "Longest time between an answer and the next request of a connection.",
            read: |to, value| put(&mut to.http.patience.idle, length(value)),
        },
        flag: None,
        shown: Shown::Whole,
    },
    Setting {
        field: Field {
            path: "node.role",
            form: Form::Choice(&["all", "api", "engine"]),
            default: Some("all"),
            about: "What this process is for: `api` answers calls and remote workers and runs no handler, `engine` runs handlers. Both need a store that several processes share; `file:` and `memory:` have `all` only.",
            read: |to, value| put(&mut to.node.role, choice(value, &Role::WORDS)),
        },
        flag: Some("role"),
        shown: Shown::Whole,
    },
    Setting {
        field: Field {
            path: "node.processors",
            form: Form::List("NAME"),
            default: None,
            about: "The only processors that are run here, of the file and of the store; the others are left alone. Default: all.",
            read: |to, value| put(&mut to.node.processors, list(value)),
        },
        flag: Some("processor"),
        shown: Shown::Whole,
    },
    Setting {
        field: Field {
            path: "node.tags",
            form: Form::List("TAG"),
            default: None,
            about: "What people know this process by; `GET /v1/nodes` shows it. Default: none.",
            read: |to, value| put(&mut to.node.tags, list(value)),
        },
        flag: Some("tag"),
        shown: Shown::Whole,
    },
    Setting {
        field: Field {
            path: "node.name",
            form: Form::Text("NAME"),
            default: None,
            about: "What other nodes and people call this one. Default: the machine's name and the number of the process.",
            read: |to, value| put_some(&mut to.member.name, text(value)),
        },
        flag: Some("node-name"),
        shown: Shown::Whole,
    },
    Setting {
        field: Field {
            path: "node.weight",
            form: Form::Number,
            default: Some("1"),
            about: "How many partitions this node takes in comparison to others, 1 to 1000.",
            read: |to, value| put(&mut to.member.weight, number(value)),
        },
        flag: None,
        shown: Shown::Whole,
    },
    Setting {
        field: Field {
            path: "node.standby",
            form: Form::YesNo,
            default: Some("false"),
            about: "Own something only when no other node can.",
            read: |to, value| put(&mut to.member.standby, yes_no(value)),
        },
        flag: Some("standby"),
        shown: Shown::Whole,
    },
    Setting {
        field: Field {
            path: "node.lease",
            form: Form::Length,
            default: Some("10s"),
            about: "How long this node is believed to live after it was last heard of, 1s to 10m: so long its work waits when it dies.",
            read: |to, value| put(&mut to.member.lease, length(value)),
        },
        flag: None,
        shown: Shown::Whole,
    },
    Setting {
        field: Field {
            path: "node.settle",
            form: Form::Length,
            default: Some("2s"),
            about: "How long a node that has joined takes nothing from others, at most 1h. The leader's setting counts.",
            read: |to, value| put(&mut to.member.settle, length(value)),
        },
        flag: None,
        shown: Shown::Whole,
    },
    Setting {
        field: Field {
            path: "node.grace",
            form: Form::Length,
            default: Some("10s"),
            about: "How long runs may go on when their partition moves to another node, at most 1h; then they are asked to stop and run there.",
            read: |to, value| put(&mut to.member.grace, length(value)),
        },
        flag: None,
        shown: Shown::Whole,
    },
    Setting {
        field: Field {
            path: "webhook.secret",
            form: Form::Text("SECRET"),
            default: None,
            about: "What calls to endpoints that were named over the API are signed with: `whsec_` and base64, or any text. Without it none can be named.",
            read: |to, value| put_some(&mut to.webhook.secret, text(value).map(Secret::new)),
        },
        flag: None,
        shown: Shown::Nothing,
    },
    Setting {
        field: Field {
            path: "webhook.ports",
            form: Form::List("PORT"),
            default: Some("443"),
            about: "Ports that such endpoints may have.",
            read: |to, value| put(&mut to.webhook.ports, list(value).and_then(webhook::ports)),
        },
        flag: None,
        shown: Shown::Whole,
    },
    Setting {
        field: Field {
            path: "webhook.allow_private",
            form: Form::List("RANGE"),
            default: None,
            about: "Addresses that such endpoints may have although they are not public, such as `10.1.0.0/16`. Default: none.",
            read: |to, value| put(&mut to.webhook.allow_private, list(value).and_then(webhook::ranges)),
        },
        flag: None,
        shown: Shown::Whole,
    },
    Setting {
        field: Field {
            path: "webhook.allow_http",
            form: Form::YesNo,
            default: Some("false"),
            about: "Lets such endpoints be called without TLS.",
            read: |to, value| put(&mut to.webhook.allow_http, yes_no(value)),
        },
        flag: None,
        shown: Shown::Whole,
    },
    Setting {
        field: Field {
            path: "webhook.ca_file",
            form: Form::Text("FILE"),
            default: None,
            about: "Certificates as PEM that vouch for such endpoints, beside those that the system trusts.",
            read: |to, value| put_some(&mut to.webhook.ca_file, path(value)),
        },
        flag: None,
        shown: Shown::Whole,
    },
    Setting {
        field: Field {
            path: "otlp.endpoint",
            form: Form::Text("URL"),
            default: None,
            about: "Collector of OpenTelemetry that gets the spans of requests and runs, such as `http://127.0.0.1:4318`. Only in a program that was built with `--features otlp`.",
            read: |to, value| put_some(&mut to.otlp, text(value).and_then(collector)),
        },
        flag: None,
        shown: Shown::WithoutUser,
    },
    Setting {
        field: Field {
            path: "log.level",
            form: Form::Choice(&["error", "warn", "info", "debug", "trace"]),
            default: Some("warn"),
            about: "How important something must be to be logged.",
            read: |to, value| put(&mut to.log.level, choice(value, &LEVELS)),
        },
        flag: Some("log-level"),
        shown: Shown::Whole,
    },
    Setting {
        field: Field {
            path: "log.format",
            form: Form::Choice(&["text", "json"]),
            default: Some("text"),
            about: "What a line on stderr looks like: `text` for people, `json` for programs, one object per line. What a handler says there is passed on as it is.",
            read: |to, value| put(&mut to.log.format, choice(value, &Format::WORDS)),
        },
        flag: Some("log-format"),
        shown: Shown::Whole,
    },
];

const LEVELS: [(&str, LevelFilter); 5] = [
    ("error", LevelFilter::ERROR),
    ("warn", LevelFilter::WARN),
    ("info", LevelFilter::INFO),
    ("debug", LevelFilter::DEBUG),
    ("trace", LevelFilter::TRACE),
];

fn not_zero(count: u32) -> Result<u32, String> {
    if count == 0 { Err("must be more than nothing".to_owned()) } else { Ok(count) }
}

fn collector(url: String) -> Result<String, String> {
    if cfg!(not(feature = "otlp")) {
        return Err(
            "cannot be used: this program was built without it; build it with --features otlp".to_owned()
        );
    }
    if !url.starts_with("http://") && !url.starts_with("https://") {
        return Err("must be a URL such as http://127.0.0.1:4318".to_owned());
    }
    Ok(url)
}

fn url(url: String) -> Result<String, String> {
    if url.contains(':') {
        return Ok(url);
    }
    Err("is no URL, must be file:PATH, redis://HOST:PORT or memory: (for a folder, write file: before it)"
        .to_owned())
}

fn replicas(value: &serde_json::Value) -> Result<u8, String> {
    let wanted = bounded(value, 1, REPLICAS_MAX)?;
    Ok(u8::try_from(wanted).expect("the bound is below 256"))
}
