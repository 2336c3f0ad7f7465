//! `laneway work`: workers that are processes of their own.

use std::path::Path;
use std::time::Duration;

use laneway_client::wire::{EventDraft, Job, JobDraft, ProcessorSettings, StreamSettings, json};
use laneway_client::{Client, Submission};
use rustix::process::Signal;

use crate::program::{Program, is_alive};
use crate::seam;

async fn server(folder: &Path) -> (Program, Client) {
    let program = Program::serve(folder).await;
    let client = program.client();
    let stream = StreamSettings { partitions: Some(2), ..StreamSettings::default() };
    client.put_stream("orders", &stream).await.unwrap();
    let settings =
        ProcessorSettings { stream: "orders".to_owned(), pull: true, ..ProcessorSettings::default() };
    client.put_processor("charge", &settings).await.unwrap();
    (program, client)
}

fn worker(server: &Program, folder: &Path, args: &[&str]) -> Program {
    Program::start(folder, &[&["work", "charge", "--server", server.address()], args].concat())
}

fn event(key: &str, data: u32) -> EventDraft {
    EventDraft { key: Some(key.to_owned()), data: Some(json(&data).unwrap()), ..EventDraft::default() }
}

async fn submit(client: &Client, key: &str, data: u32) -> Job {
    let job = JobDraft { key: Some(key.to_owned()), data: Some(json(&data).unwrap()), ..JobDraft::default() };
    match client.submit("orders", &job, Some(Duration::from_secs(50)), None).await.unwrap() {
        Submission::Settled(job) => *job,
        Submission::Accepted(receipt) => panic!("still {}", receipt.status),
    }
}

async fn file(path: &Path) -> String {
    seam::until("a file", || async { std::fs::read_to_string(path).ok().filter(|text| text.ends_with('\n')) })
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_runs_a_command_per_event_and_a_kept_one() {
    let folder = tempfile::tempdir().unwrap();
    let (program, client) = server(folder.path()).await;
    let exec = worker(&program, folder.path(), &["--", "sh", "-c", "echo \"{\\\"$LANEWAY_KEY\\\":$(cat)}\""]);
    assert_eq!(submit(&client, "ann", 7).await.result.unwrap().get(), r#"{"ann":7}"#);
    exec.stop().await;
    let handler = "import json,sys\nfor line in sys.stdin:\n  run=json.loads(line); n=(run.get('state') or 0)+1\n  \
                   print(json.dumps({'claim':run['claim'],'outcome':'done','result':n,'state':n}),flush=True)";
    let pipe = worker(&program, folder.path(), &["--pipe", "--", "python3", "-c", handler]);
    assert_eq!(submit(&client, "ann", 8).await.result.unwrap().get(), "1");
    assert_eq!(submit(&client, "ann", 9).await.result.unwrap().get(), "2");
    pipe.stop().await;
    program.stop().await;
}

/// What runs is finished; only then does the worker end.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_is_asked_to_end_finishes_its_run() {
    let folder = tempfile::tempdir().unwrap();
    let (program, client) = server(folder.path()).await;
    let handler = "mkfifo go; echo began > began; cat go > /dev/null; echo said";
    let mut crew = worker(&program, folder.path(), &["--", "sh", "-c", handler]);
    let job = JobDraft { key: Some("ann".to_owned()), ..JobDraft::default() };
    let Submission::Accepted(receipt) = client.submit("orders", &job, None, None).await.unwrap() else {
        panic!("it has not ended");
    };
    file(&folder.path().join("began")).await;
    crew.signal(Signal::TERM);
    std::fs::write(folder.path().join("go"), "on").unwrap();
    assert!(crew.ended().await.success(), "{}", crew.errors());
    let job = client.job(&receipt.id, None).await.unwrap();
    assert_eq!((job.status.as_str(), job.result.unwrap().get()), ("done", "\"said\""));
    program.stop().await;
}

/// A frozen worker's lane goes on after its lease, with a higher fence; the late one ends what it ran.
#[tokio::test(flavor = "multi_thread")]
async fn the_lane_of_a_frozen_worker_goes_on_with_a_higher_fence() {
    let folder = tempfile::tempdir().unwrap();
    let (program, client) = server(folder.path()).await;
    let frozen = "echo $$ > pid.part; echo $LANEWAY_FENCE > first; mv pid.part pid; exec sleep 1000";
    let late = worker(&program, folder.path(), &["--lease", "1s", "--", "sh", "-c", frozen]);
    client.append("orders", &[event("ann", 1)]).await.unwrap();
    let pid = file(&folder.path().join("pid")).await;
    late.signal(Signal::STOP);
    let next = worker(&program, folder.path(), &["--", "sh", "-c", "echo $LANEWAY_FENCE > second; cat"]);
    let second = file(&folder.path().join("second")).await;
    let first = file(&folder.path().join("first")).await;
    assert!(first < second, "{first} {second}");
    assert_eq!(submit(&client, "ann", 2).await.status, "done");
    assert!(is_alive(&pid), "nobody could end it while its worker was frozen");
    late.signal(Signal::CONT);
    seam::until("the end of the late run", || std::future::ready((!is_alive(&pid)).then_some(()))).await;
    seam::until("a word about it", || {
        std::future::ready(late.errors().contains("a claim was lost").then_some(()))
    })
    .await;
    late.stop().await;
    next.stop().await;
    program.stop().await;
}

/// The worker goes on with its run while the server is away, and settles it with the next one.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_outlives_a_restart_of_its_server() {
    let folder = tempfile::tempdir().unwrap();
    let (program, client) = server(folder.path()).await;
    let handler = "echo \"$LANEWAY_REF $LANEWAY_ATTEMPT\" >> runs; if [ ! -e go ]; then mkfifo go; cat go > /dev/null; fi";
    let crew = worker(&program, folder.path(), &["--lease", "30s", "--", "sh", "-c", handler]);
    client.append("orders", &[event("ann", 1), event("ann", 2)]).await.unwrap();
    file(&folder.path().join("runs")).await;
    let address = program.address().strip_prefix("http://").unwrap().to_owned();
    program.stop().await;
    let program = Program::serve_at(folder.path(), &address).await;
    std::fs::write(folder.path().join("go"), "on").unwrap();
    let runs = seam::until("both runs", || async {
        let runs = std::fs::read_to_string(folder.path().join("runs")).unwrap();
        (runs.lines().count() == 2).then_some(runs)
    })
    .await;
    let attempts: Vec<&str> = runs.lines().map(|line| line.rsplit_once(' ').unwrap().1).collect();
    assert_eq!(attempts, ["1", "1"], "nothing ran twice: {runs}");
    crew.stop().await;
    program.stop().await;
}

/// What takes longer than the grace is ended and given back: another worker begins anew at once, and not when the lease ends.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_too_long_for_the_end_of_its_worker_is_given_back() {
    let folder = tempfile::tempdir().unwrap();
    let (program, client) = server(folder.path()).await;
    let endless = "echo $$ > pid.part; mv pid.part pid; exec sleep 1000";
    let args = ["--lease", "1h", "--grace", "100ms", "--", "sh", "-c", endless];
    let mut crew = worker(&program, folder.path(), &args);
    client.append("orders", &[event("ann", 1)]).await.unwrap();
    let pid = file(&folder.path().join("pid")).await;
    crew.signal(Signal::TERM);
    assert!(crew.ended().await.success(), "{}", crew.errors());
    assert!(!is_alive(&pid));
    let next = worker(&program, folder.path(), &["--", "sh", "-c", "echo $LANEWAY_ATTEMPT > attempt"]);
    assert_eq!(file(&folder.path().join("attempt")).await, "2\n");
    next.stop().await;
    program.stop().await;
}

/// The server takes a lane back: whoever extends is told, and ends what runs for it.
#[tokio::test(flavor = "multi_thread")]
async fn a_claim_that_is_lost_ends_the_processes_of_its_run() {
    let folder = tempfile::tempdir().unwrap();
    let (program, client) = server(folder.path()).await;
    let endless = "echo $$ > pid.part; mv pid.part pid; sleep 1000 & wait";
    let crew = worker(&program, folder.path(), &["--lease", "2s", "--", "sh", "-c", endless]);
    let job = JobDraft { key: Some("ann".to_owned()), ..JobDraft::default() };
    let Submission::Accepted(receipt) = client.submit("orders", &job, None, None).await.unwrap() else {
        panic!("it has not ended");
    };
    let pid = file(&folder.path().join("pid")).await;
    client.cancel(&receipt.id, None).await.unwrap();
    seam::until("the end of the run", || std::future::ready((!is_alive(&pid)).then_some(()))).await;
    crew.stop().await;
    program.stop().await;
}

/// What is wrong from the beginning is told at once; a server that is not there yet is waited for.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_says_what_it_cannot_do_and_waits_for_its_server() {
    let folder = tempfile::tempdir().unwrap();
    let (program, _) = server(folder.path()).await;
    for (args, code, words) in [
        (&["--concurrency", "0", "charge", "--", "true"][..], 2, "--concurrency 0: must be 1 to 1000"),
        (&["--lease", "1ms", "charge", "--", "true"], 2, "--lease 1ms: must be 1s to 1h"),
        (&["charge", "--", "no-such-program"], 2, "no-such-program"),
        (&["nobody", "--", "true"], 3, "processor_not_found"),
    ] {
        let at = ["work", "--server", program.address()];
        let output = crate::program::run(folder.path(), &[&at, args].concat());
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{told}");
        assert!(told.contains(words), "{told}");
    }
    let address = program.address().strip_prefix("http://").unwrap().to_owned();
    let url = program.address().to_owned();
    program.stop().await;
    let early = Program::start(folder.path(), &["work", "charge", "--server", &url, "--", "cat"]);
    seam::until("a word about the server", || {
        std::future::ready(early.errors().contains("no work can be claimed now").then_some(()))
    })
    .await;
    let program = Program::serve_at(folder.path(), &address).await;
    assert_eq!(submit(&program.client(), "ann", 5).await.result.unwrap().get(), "5");
    early.stop().await;
    program.stop().await;
}

/// Many workers, few lanes: one run per lane at a time, in order.
#[tokio::test(flavor = "multi_thread")]
async fn no_lane_is_ever_with_two_workers() {
    let folder = tempfile::tempdir().unwrap();
    let (program, client) = server(folder.path()).await;
    // A folder is there once: two runs of a lane at a time would meet at it.
    let handler = "mkdir \"lock-$LANEWAY_KEY\" || exit 65; cat >> \"log-$LANEWAY_KEY\"; echo >> \"log-$LANEWAY_KEY\"; \
                   rmdir \"lock-$LANEWAY_KEY\"";
    let args = ["--concurrency", "3", "--", "sh", "-c", handler];
    let workers: Vec<Program> = (0..3).map(|_| worker(&program, folder.path(), &args)).collect();
    let keys = ["a", "b", "c", "d"];
    for number in 0..15 {
        let events: Vec<EventDraft> = keys.iter().map(|key| event(key, number)).collect();
        client.append("orders", &events).await.unwrap();
    }
    for key in keys {
        assert_eq!(submit(&client, key, 15).await.status, "done", "{key}");
        let log = std::fs::read_to_string(folder.path().join(format!("log-{key}"))).unwrap();
        let numbers: Vec<u32> = log.lines().map(|line| line.parse().unwrap()).collect();
        assert_eq!(numbers, (0..=15).collect::<Vec<u32>>(), "{key}");
    }
    for worker in workers {
        worker.stop().await;
    }
    program.stop().await;
}
