//! A file to begin with.

use super::table::TABLE;

/// A `laneway.toml` to begin with: all settings with their defaults, and one of each list, all behind `#`.
pub(crate) fn template() -> String {
    let mut text = "# Settings of laneway serve. What is behind # has its default.\n".to_owned();
    let mut section = "";
    for setting in TABLE {
        let (table, name) = setting.field.path.split_once('.').unwrap_or(("", setting.field.path));
        if table != section {
            section = table;
            text.push_str(&format!("\n[{table}]\n"));
        }
        let form = setting.field.form;
        let value = match setting.field.default {
            Some(default) => format!("{name} = {}", form.in_file(default)),
            // What stands for a value is none.
            None => format!("{name}: {}, not set", form.name()),
        };
        text.push_str(&format!("# {}\n# {value}\n", setting.field.about));
    }
    text.push_str(EXAMPLE);
    text
}

const EXAMPLE: &str = r#"
# [[stream]]
# name = "orders"
# partitions = 16

# [[processor]]
# name = "charge"
# stream = "orders"
# exec = ["./charge.sh"]        # or: http = "http://127.0.0.1:9000/charge", or: pull = true
# concurrency = 64
# timeout = "30s"
# retry = { max_attempts = 5, backoff = "1s", backoff_max = "5m" }
# on_failure = "park"

# [[schedule]]
# name = "nightly"
# stream = "orders"
# cron = "0 3 * * *"
# zone = "Europe/Berlin"
# data = { kind = "report" }
"#;
