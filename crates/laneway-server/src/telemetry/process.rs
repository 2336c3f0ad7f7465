//! What the system knows of this process, under the names that Prometheus gives it. Read at the moment somebody asks, from
//! /proc; where there is none, nothing is told.

use std::fmt::Write as _;
use std::fs;

/// One metric of the process.
struct Known {
    name: &'static str,
    kind: &'static str,
    help: &'static str,
    value: Option<f64>,
}

/// Writes what is known.
pub(super) fn write(text: &mut String) {
    for Known { name, kind, help, value } in known() {
        if let Some(value) = value {
            writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n")
                .expect("a string takes everything");
        }
    }
}

fn known() -> [Known; 5] {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let gauge = |name, help, value| Known { name, kind: "gauge", help, value };
    [
        Known {
            name: "process_cpu_seconds_total",
            kind: "counter",
            help: "User and system CPU time spent in seconds.",
            value: cpu_seconds(&stat),
        },
        gauge("process_resident_memory_bytes", "Resident memory size in bytes.", resident_bytes(&stat)),
        gauge("process_threads", "Number of threads.", field(&stat, THREADS)),
        gauge("process_open_fds", "Number of open file descriptors.", open_files()),
        gauge("process_max_fds", "Maximum number of open file descriptors.", max_files(&limits)),
    ]
}

// Fields of /proc/self/stat behind the name of the program, which may contain anything but ends with the last `)`.
const USER_TICKS: usize = 11;
const SYSTEM_TICKS: usize = 12;
const THREADS: usize = 17;
const RESIDENT_PAGES: usize = 21;

fn field(stat: &str, place: usize) -> Option<f64> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(place)?.parse().ok()
}

#[expect(clippy::cast_precision_loss, reason = "a small number")]
fn cpu_seconds(stat: &str) -> Option<f64> {
    let ticks = field(stat, USER_TICKS)? + field(stat, SYSTEM_TICKS)?;
    Some(ticks / rustix::param::clock_ticks_per_second() as f64)
}

#[expect(clippy::cast_precision_loss, reason = "a small number")]
fn resident_bytes(stat: &str) -> Option<f64> {
    Some(field(stat, RESIDENT_PAGES)? * rustix::param::page_size() as f64)
}

#[expect(clippy::cast_precision_loss, reason = "a small number")]
fn open_files() -> Option<f64> {
    // The folder that is being read is one of them.
    Some(fs::read_dir("/proc/self/fd").ok()?.count().saturating_sub(1) as f64)
}

fn max_files(limits: &str) -> Option<f64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_behind_any_name_of_a_program() {
        let stat = "7 (a) (b c) S 1 7 7 0 -1 4194560 9 0 0 0 250 50 0 0 20 0 9 0 100 1000 300 0";
        assert_eq!(field(stat, USER_TICKS), Some(250.0));
        assert_eq!(field(stat, SYSTEM_TICKS), Some(50.0));
        assert_eq!(field(stat, THREADS), Some(9.0));
        assert_eq!(field(stat, RESIDENT_PAGES), Some(300.0));
        assert_eq!(field("", THREADS), None);
    }

    #[test]
    fn this_process_is_known() {
        let found: Vec<(&str, bool)> =
            known().iter().map(|known| (known.name, known.value.is_some_and(|value| value > 0.0))).collect();
        let cpu = found[0];
        assert_eq!(cpu.0, "process_cpu_seconds_total");
        assert!(found[1..].iter().all(|(_, is_known)| *is_known), "{found:?}");
        let mut text = String::new();
        write(&mut text);
        assert!(
            text.contains("# TYPE process_resident_memory_bytes gauge\nprocess_resident_memory_bytes "),
            "{text}"
        );
    }
}
