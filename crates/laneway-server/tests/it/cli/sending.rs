//! `laneway stream send`, also when it is cut short, and `laneway verify`.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};

use super::{fed, on, with_stream};
use crate::program::{self, Program};
use crate::seam;

fn lines(range: std::ops::Range<u64>) -> String {
    range.map(|number| format!("{{\"key\":\"k{}\",\"data\":{number}}}\n", number % 7)).collect()
}

/// Events of a stream, as the server counts them.
fn count(program: &Program) -> u64 {
    let row = on(program, &["stream", "ls"]).good();
    let row = row.lines().find(|row| row.starts_with("mails\t")).unwrap().to_owned();
    row.split('\t').nth(3).unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_become_events_and_bad_ones_hinder_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    with_stream(&program);
    let long = "k".repeat(600);
    let input = format!("{}\n[1\n{{\"kee\":1}}\n{{\"key\":\"{long}\"}}\n{}", lines(0..3), lines(3..1_200));
    let sent = fed(program.address(), &["stream", "send", "mails"], &input);
    assert_eq!(sent.code, 1);
    assert!(sent.out.starts_with("1,200 events to mails in "), "{}", sent.out);
    assert!(sent.out.ends_with(": 1,200 new, synced; 3 bad lines were passed over\n"), "{}", sent.out);
    let told: Vec<&str> = sent.err.lines().collect();
    assert!(told[0].starts_with("line 5: it is no event in JSON: "), "{}", sent.err);
    assert!(told[1].starts_with("line 6: it is no event in JSON: unknown field `kee`"), "{}", sent.err);
    assert!(told[2].starts_with("line 7: ") && told[2].contains("512"), "{}", sent.err);
    assert_eq!(count(&program), 1_200);
    let checked = on(&program, &["verify", "mails"]).good();
    assert_eq!(checked, "mails is in order: 1,200 events of 7 lanes\n");
    let strict = fed(program.address(), &["send", "mails", "--strict"], "[1\n").bad(1);
    assert!(strict.starts_with("laneway: line 1: "), "{strict}");
}

#[tokio::test(flavor = "multi_thread")]
async fn payloads_take_their_key_from_a_field_or_the_command() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    with_stream(&program);
    let shown = |reference: &str| on(&program, &["event", "get", reference.trim()]).good();
    let keyed = ["send", "mails", "--key-field", "id", "--type", "mail.sent", "-o", "id"];
    let reference = fed(program.address(), &keyed, "{\"id\": 17}\n").good();
    let event = shown(&reference);
    assert!(event.contains("key\t17\n") && event.contains("type\tmail.sent\n"), "{event}");
    let raw = ["send", "mails", "--key", "ann", "--raw", "-o", "id"];
    let reference = fed(program.address(), &raw, "say \"hi\"\n").good();
    assert!(shown(&reference).contains("data\t\"say \\\"hi\\\"\"\n"));
    let missing = fed(program.address(), &["send", "mails", "--key-field", "id"], "{}\n").bad(1);
    assert!(missing.contains("line 1: there is no field \"id\""), "{missing}");
}

/// The signal comes after some lines were sent and before the rest was read; the same input again sends only the rest.
#[tokio::test(flavor = "multi_thread")]
async fn a_sending_that_was_cut_short_goes_on_without_duplicates() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    with_stream(&program);
    let args = ["stream", "send", "mails", "-o", "id", "--server", program.address()];
    let mut child = program::command(folder.path(), &args).stdin(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(lines(0..50).as_bytes()).unwrap();
    let mut refs = BufReader::new(child.stdout.take().unwrap()).lines();
    for _ in 0..50 {
        refs.next().unwrap().unwrap();
    }
    kill_process(Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap(), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    drop(input);
    let mut told = String::new();
    child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
    let hint = told.lines().last().unwrap();
    assert!(hint.contains("--resume send-") && hint.ends_with("--from-line 51"), "{told}");
    let name = hint.split(' ').skip_while(|word| *word != "--resume").nth(1).unwrap();

    // Without the number of the line everything is sent again, and known.
    let all = lines(0..120);
    let again = fed(program.address(), &["send", "mails", "--resume", name], &all).good();
    assert!(again.contains(": 70 new, 50 sent before, synced"), "{again}");
    let rest =
        fed(program.address(), &["send", "mails", "--resume", name, "--from-line", "101"], &all).good();
    assert!(rest.contains(": 0 new, 20 sent before, synced"), "{rest}");
    assert_eq!(count(&program), 120);
    assert_eq!(on(&program, &["verify", "mails"]).good(), "mails is in order: 120 events of 7 lanes\n");
}

/// Far more lines than the stream remembers names of, cut short and repeated, with a longer input each time.
#[tokio::test(flavor = "multi_thread")]
async fn named_lines_are_sent_once_however_many_there_are() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    on(&program, &["stream", "create", "mails", "--partitions", "4", "--dedup-max", "10"]).good();
    let keyless =
        |range: std::ops::Range<u64>| range.map(|number| format!("{{\"data\":{number}}}\n")).collect();
    let inputs: [&dyn Fn(std::ops::Range<u64>) -> String; 2] = [&lines, &keyless];
    for (at, input) in (0..).zip(inputs) {
        let send = |range| {
            let (name, batch) = (format!("day-{at}"), "100");
            fed(program.address(), &["send", "mails", "--name", &name, "--batch", batch], &input(range))
                .good()
        };
        assert!(send(0..700).contains(": 700 new, synced"));
        let again = send(0..700);
        assert!(again.contains(": 0 new, 700 sent before, synced"), "{again}");
        let longer = send(0..1_500);
        assert!(longer.contains(": 800 new, 700 sent before, synced"), "{longer}");
        assert_eq!(count(&program), 1_500 * (at + 1));
    }
    let given = ["send", "mails", "1", "2", "--key", "ann", "--name", "few"];
    on(&program, &given).good();
    on(&program, &given).good();
    assert_eq!(count(&program), 3_002);
    on(&program, &["verify", "mails"]).good();
}

/// A server that is gone for a moment is waited for, and nothing is sent twice.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_starts_again_meanwhile_gets_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    with_stream(&program);
    let address = program.address().to_owned();
    let args = ["stream", "send", "mails", "--server", &address];
    let mut child = program::command(folder.path(), &args).stdin(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(lines(0..10).as_bytes()).unwrap();
    seam::until("the first lines", || async { (count(&program) == 10).then_some(()) }).await;
    program.stop().await;
    input.write_all(lines(10..20).as_bytes()).unwrap();
    drop(input);
    let program = Program::serve_at(folder.path(), address.strip_prefix("http://").unwrap()).await;
    let ended = child.wait_with_output().unwrap();
    let told = String::from_utf8(ended.stdout).unwrap();
    assert!(ended.status.success() && told.starts_with("20 events to mails"), "{told}");
    assert_eq!(count(&program), 20);
}
