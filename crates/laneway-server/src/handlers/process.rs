//! One process in a group of its own, with bounded output. However its run ends, nothing of the group is left behind.
//!
//! A server that is killed ends no run: its handlers go on until they find their pipes closed, beside the run of the same
//! event by the next server. What they do outside is refused by `LANEWAY_FENCE`, which is higher for every later run.

use std::ffi::OsString;
use std::future::Future;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};

use super::facts::VARIABLES;
use crate::seam;

/// Most bytes of a result.
pub(super) const STDOUT_BYTES_MAX: usize = laneway::core::limits::RESULT_BYTES_MAX;
/// The end of what it says on stderr that is kept with a failure.
const STDERR_BYTES_KEPT: usize = 2 << 10;
/// How long a group may take to end after it was asked to, unless it is said.
pub(super) const GRACE: Duration = Duration::from_secs(5);
/// How often it is looked whether a group that winds up is gone: nothing tells the end of a group.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// How long its output is read on after its end.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// How a process ended.
pub(super) enum Ended {
    /// By itself.
    Exited { code: Option<i32>, signal: Option<i32>, stdout: Vec<u8>, stderr: String },
    /// It said more than a result may have.
    TooMuchOutput,
    /// It took too long.
    TimedOut,
    /// It was asked to stop.
    Cancelled,
}

/// A process that runs.
pub(super) struct Process {
    child: Child,
    group: Group,
    grace: Duration,
}

/// A process group. What is left of it ends with this.
pub(super) struct Group(Option<Pid>);

impl Group {
    fn of(child: &Child) -> Self {
        Self(child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)))
    }

    pub(super) fn signal(&self, signal: Signal) {
        if let Some(group) = self.0
            && let Err(error) = kill_process_group(group, signal)
            && error != rustix::io::Errno::SRCH
        {
            tracing::warn!(%error, "a handler's process group could not be signalled");
        }
    }

    /// Waits until nothing of it is left.
    async fn gone(&self) {
        while self.0.is_some_and(|group| test_kill_process_group(group).is_ok()) {
            seam::pass(LOOK_AGAIN).await;
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

impl Process {
    pub(super) fn start(command: &[String], environment: Vec<(&'static str, OsString)>) -> io::Result<Self> {
        let (child, group) = spawn(command, environment)?;
        Ok(Self { child, group, grace: GRACE })
    }

    /// Feeds it and waits for its end, whichever that is.
    pub(super) async fn run(
        mut self,
        data: Bytes,
        timeout: Option<Duration>,
        cancelled: impl Future<Output = ()>,
    ) -> io::Result<Ended> {
        let timed_out = async {
            match timeout {
                Some(timeout) => seam::pass(timeout).await,
                None => std::future::pending().await,
            }
        };
        let winds_up = AtomicBool::new(false);
        let talk = talk(&mut self.child, &self.group, data, &winds_up);
        tokio::pin!(talk);
        let ended = tokio::select! {
            biased;
            ended = &mut talk => return ended,
            () = cancelled => Ended::Cancelled,
            () = timed_out => Ended::TimedOut,
        };
        // It is listened to until its end: whoever cleans up may say so, and would die of a closed pipe.
        winds_up.store(true, Ordering::Relaxed);
        self.group.signal(Signal::TERM);
        if seam::within(self.grace, &mut talk).await.transpose()?.is_none() {
            self.group.signal(Signal::KILL);
            talk.await?;
        }
        Ok(ended)
    }
}

/// Starts a command in a group of its own, with pipes to and from it.
pub(super) fn spawn(
    command: &[String],
    environment: Vec<(&'static str, OsString)>,
) -> io::Result<(Child, Group)> {
    let mut process = Command::new(&command[0]);
    process.args(&command[1..]).process_group(0);
    process.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    for name in VARIABLES {
        process.env_remove(name);
    }
    let child = process.envs(environment).spawn()?;
    let group = Group::of(&child);
    Ok((child, group))
}

/// Asks a group to end, and kills what is left of it after a grace.
pub(super) async fn end(child: &mut Child, group: &Group, grace: Duration) -> io::Result<()> {
    group.signal(Signal::TERM);
    let gone = async {
        let status = child.wait().await;
        group.gone().await;
        status
    };
    if seam::within(grace, gone).await.transpose()?.is_none() {
        group.signal(Signal::KILL);
        child.wait().await?;
    }
    Ok(())
}

/// Feeds a process and hears it until its end. What it started ends with it, at once, or by itself while it winds up.
async fn talk(child: &mut Child, group: &Group, data: Bytes, winds_up: &AtomicBool) -> io::Result<Ended> {
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (mut said, mut complained) = (Vec::new(), Vec::new());
    let feed = async {
        if let Some(mut stdin) = stdin {
            // A handler need not read what it does not want.
            match stdin.write_all(&data).await {
                Err(error) if error.kind() != io::ErrorKind::BrokenPipe => return Err(error),
                _ => {}
            }
        }
        Ok(())
    };
    let ended = async {
        let status = child.wait().await;
        if winds_up.load(Ordering::Relaxed) {
            group.gone().await;
        }
        // What it left behind would keep its output open.
        group.signal(Signal::KILL);
        status
    };
    let status = {
        let words = async {
            tokio::try_join!(
                feed,
                read(stdout, group, &mut said),
                tail(stderr, |words| keep(&mut complained, words))
            )
        };
        tokio::pin!(words, ended);
        tokio::select! {
            biased;
            words = &mut words => {
                if words.is_err() {
                    group.signal(Signal::KILL);
                }
                let status = ended.await?;
                words?;
                status
            }
            status = &mut ended => {
                // Something that left the group may hold the output open for as long as it lives: it is not waited for.
                seam::within(LAST_WORDS, words).await.transpose()?;
                status?
            }
        }
    };
    if said.len() > STDOUT_BYTES_MAX {
        return Ok(Ended::TooMuchOutput);
    }
    let stderr = String::from_utf8_lossy(&complained).trim().to_owned();
    Ok(Ended::Exited { code: status.code(), signal: status.signal(), stdout: said, stderr })
}

/// All it says, unless that is too much: then it is ended.
async fn read(from: Option<impl AsyncRead + Unpin>, group: &Group, said: &mut Vec<u8>) -> io::Result<()> {
    let Some(from) = from else { return Ok(()) };
    from.take(STDOUT_BYTES_MAX as u64 + 1).read_to_end(said).await?;
    if said.len() > STDOUT_BYTES_MAX {
        group.signal(Signal::KILL);
    }
    Ok(())
}

/// Hands over what it says on stderr; all of it goes to ours.
pub(super) async fn tail(
    from: Option<impl AsyncRead + Unpin>,
    mut kept: impl FnMut(&[u8]),
) -> io::Result<()> {
    let Some(mut from) = from else { return Ok(()) };
    let mut ours = tokio::io::stderr();
    let mut piece = vec![0; 4 << 10];
    loop {
        let read = from.read(&mut piece).await?;
        if read == 0 {
            return Ok(());
        }
        // Whoever reads our stderr may have gone; that is no fault of the handler.
        drop(ours.write_all(&piece[..read]).await);
        kept(&piece[..read]);
    }
}

/// Keeps the end of what is said.
pub(super) fn keep(kept: &mut Vec<u8>, words: &[u8]) {
    kept.extend_from_slice(words);
    let surplus = kept.len().saturating_sub(STDERR_BYTES_KEPT);
    kept.drain(..surplus);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What it started needs a while to clean up after it was asked to end, and says so; the process itself ends at once.
    #[tokio::test]
    async fn everything_in_a_group_has_its_grace_and_is_heard_meanwhile() {
        let folder = tempfile::tempdir().unwrap();
        let (ready, hold, clean) =
            (folder.path().join("ready"), folder.path().join("hold"), folder.path().join("clean"));
        for pipe in [&ready, &hold] {
            rustix::fs::mknodat(rustix::fs::CWD, pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        }
        // The child cleans up when it is let go on, which is after its parent has ended. It waits in short pieces: a shell
        // hears of a signal that came just before a long one when that one is over.
        let child = format!(
            "trap 'read line < {}; echo cleaning up >&2 && echo clean > {}; exit' TERM; echo > {}; \
             while :; do sleep 0.05; done",
            hold.display(),
            clean.display(),
            ready.display()
        );
        let command = ["sh", "-c", "sh -c \"$1\" & wait", "sh", &child].map(str::to_owned);
        let process = Process::start(&command, Vec::new()).unwrap();
        let leader = process.child.id().unwrap();
        let fifo = |path| tokio::net::unix::pipe::OpenOptions::new().read_write(true).open_receiver(path);
        let written = fifo(&ready).unwrap();
        let can_be_asked = async { written.readable().await.unwrap() };
        let let_go_on = async {
            while std::fs::read_to_string(format!("/proc/{leader}/stat"))
                .is_ok_and(|stat| !stat.contains(") Z "))
            {
                tokio::task::yield_now().await;
            }
            let mut hold = std::fs::OpenOptions::new().read(true).write(true).open(&hold).unwrap();
            io::Write::write_all(&mut hold, b"on\n").unwrap();
            // Open until it was read.
            hold
        };
        let (ended, _hold) = tokio::join!(process.run(Bytes::new(), None, can_be_asked), let_go_on);
        assert!(matches!(ended.unwrap(), Ended::Cancelled));
        assert_eq!(std::fs::read_to_string(clean).unwrap(), "clean\n");
    }

    /// It does not heed the request to end, and neither does what it started.
    #[tokio::test]
    async fn a_group_that_does_not_end_when_asked_is_killed_after_its_grace() {
        let folder = tempfile::tempdir().unwrap();
        let (pipe, pid) = (folder.path().join("ready"), folder.path().join("pid"));
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        let script = format!(
            "trap '' TERM; echo $$ > {}; echo > {}; while :; do sleep 1000; done",
            pid.display(),
            pipe.display()
        );
        let command = ["sh".to_owned(), "-c".to_owned(), script];
        let mut process = Process::start(&command, Vec::new()).unwrap();
        process.grace = Duration::from_millis(50);
        // It writes when it ignores the signal: only then is it asked to end.
        let written =
            tokio::net::unix::pipe::OpenOptions::new().read_write(true).open_receiver(&pipe).unwrap();
        let is_deaf = async { written.readable().await.unwrap() };
        let ended = process.run(Bytes::new(), None, is_deaf).await.unwrap();
        assert!(matches!(ended, Ended::Cancelled));
        let pid = std::fs::read_to_string(pid).unwrap();
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
        assert!(stat.is_empty() || stat.contains(") Z "), "it still runs: {stat}");
    }
}
