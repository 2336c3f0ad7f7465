//! The driver of the fuzz targets: replays the kept corpus, then mutates it for a while, and stops at the first
//! input that makes a target panic or lets memory grow. Needs nothing but stable Rust.

mod mutate;
mod seeds;
mod targets;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use targets::{TARGETS, Target};

/// More than this above the start is a leak or a length that was believed.
const GROWTH_KIB_MAX: u64 = 256 << 10;
const BRIEF: Duration = Duration::from_secs(10);
const INPUT_BYTES_MAX: usize = 64 << 10;

struct Orders {
    each: Duration,
    seed: u64,
    names: Vec<String>,
    replay: Option<PathBuf>,
    make_corpus: bool,
}

fn orders() -> Result<Orders, String> {
    let mut orders = Orders {
        each: Duration::from_secs(60),
        seed: 1,
        names: Vec::new(),
        replay: None,
        make_corpus: false,
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number = || {
            let value = arguments.next().ok_or(format!("{argument} needs a number"))?;
            value.parse::<u64>().map_err(|error| format!("{argument} {value}: {error}"))
        };
        match argument.as_str() {
            "--brief" => orders.each = BRIEF,
            "--seconds" => orders.each = Duration::from_secs(number()?),
            "--seed" => orders.seed = number()?,
            "--make-corpus" => orders.make_corpus = true,
            "--replay" => orders.replay = Some(arguments.next().ok_or("--replay needs a file")?.into()),
            name if TARGETS.iter().any(|target| target.name == name) => orders.names.push(name.to_owned()),
            other => return Err(format!("unknown argument '{other}' (see fuzz/run --help)")),
        }
    }
    Ok(orders)
}

fn corpus(target: &Target) -> Vec<Vec<u8>> {
    let Ok(entries) = fs::read_dir(Path::new("corpus").join(target.name)) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    paths.iter().filter_map(|path| fs::read(path).ok()).collect()
}

/// Most memory this process ever had, in KiB.
fn peak_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}

fn survives(target: &Target, input: &[u8]) -> Result<(), String> {
    if catch_unwind(AssertUnwindSafe(|| (target.run)(input))).is_ok() {
        return Ok(());
    }
    let folder = Path::new("artifacts").join(target.name);
    let name = folder.join(format!("{}.bin", input.len()));
    fs::create_dir_all(&folder).and_then(|()| fs::write(&name, input)).map_err(|error| error.to_string())?;
    Err(format!("panic; replay: fuzz/run --replay {} {}", name.display(), target.name))
}

fn fuzz(target: &Target, orders: &Orders) -> Result<(), String> {
    let corpus = corpus(target);
    if corpus.is_empty() {
        return Err(format!("corpus/{} is empty; make it: fuzz/run --make-corpus", target.name));
    }
    let (started, before) = (Instant::now(), peak_kib());
    let mut executions = corpus.len() as u64;
    corpus.iter().try_for_each(|input| survives(target, input))?;
    let mut rng = fastrand::Rng::with_seed(orders.seed);
    while started.elapsed() < orders.each {
        for _ in 0..16 {
            let mut input = mutate::next(&corpus, &mut rng);
            input.truncate(INPUT_BYTES_MAX);
            survives(target, &input)?;
            executions += 1;
        }
    }
    let growth = peak_kib().saturating_sub(before);
    println!(
        "fuzz {}: {executions} executions over {} kept inputs, seed {}, memory grew by {growth} KiB, 0 panics",
        target.name,
        corpus.len(),
        orders.seed
    );
    if growth > GROWTH_KIB_MAX {
        return Err(format!("memory grew by {growth} KiB, at most {GROWTH_KIB_MAX} are right"));
    }
    Ok(())
}

fn run() -> Result<(), String> {
    let orders = orders()?;
    if orders.make_corpus {
        return seeds::write(Path::new("corpus")).map_err(|error| error.to_string());
    }
    let wanted =
        |target: &&Target| orders.names.is_empty() || orders.names.iter().any(|name| name == target.name);
    for target in TARGETS.iter().filter(wanted) {
        let done = match &orders.replay {
            Some(path) => fs::read(path).map_err(|error| error.to_string()).map(|input| (target.run)(&input)),
            None => fuzz(target, &orders),
        };
        done.map_err(|error| format!("{}: {error}", target.name))?;
    }
    Ok(())
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("fuzz: {error}");
            ExitCode::FAILURE
        }
    }
}
