//! One process that is kept between its events.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout};

use crate::handlers::process::{Group, end, keep, spawn, tail};
use crate::http::SETTLE_BYTES_MAX;
use crate::seam;

/// Longest line that is read: a settlement over HTTP has the same bound.
const LINE_BYTES_MAX: usize = SETTLE_BYTES_MAX;
/// How long the end of what a dead process said on stderr may take to arrive.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// A process that waits for its next event. Dropped, it is ended with its whole group.
pub(super) struct Kept {
    child: Child,
    group: Group,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    complained: Arc<Mutex<Vec<u8>>>,
    complaints: tokio::task::JoinHandle<()>,
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Silence {
    /// It ended, or closed its output.
    Died(String),
    /// Its line has no end.
    TooLong,
    /// Its pipes broke.
    Io(io::Error),
}

impl Kept {
    pub(super) fn start(command: &[String]) -> io::Result<Self> {
        let (mut child, group) = spawn(command, Vec::new())?;
        let absent = || io::Error::other("a pipe is missing");
        let stdin = child.stdin.take().ok_or_else(absent)?;
        let stdout = BufReader::with_capacity(64 << 10, child.stdout.take().ok_or_else(absent)?);
        let complained = Arc::new(Mutex::new(Vec::new()));
        let (stderr, kept) = (child.stderr.take(), Arc::clone(&complained));
        let complaints = seam::spawn(async move {
            if let Err(error) = tail(stderr, |words| keep(&mut kept.lock(), words)).await {
                tracing::warn!(%error, "the stderr of a handler cannot be read");
            }
        });
        Ok(Self { child, group, stdin, stdout, complained, complaints })
    }

    /// Whether it still runs.
    pub(super) fn lives(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Says a line and hears the next one. It reads while it writes: a process may speak before it has read all.
    pub(super) async fn ask(&mut self, question: &[u8]) -> Result<Vec<u8>, Silence> {
        let Self { stdin, stdout, .. } = self;
        let say = async {
            match stdin.write_all(question).await {
                // Whether it has died is told by its own end.
                Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Silence::Io(error)),
                _ => Ok(()),
            }
        };
        let (said, line) = tokio::join!(say, line(stdout));
        said?;
        match line {
            Ok(Some(line)) => Ok(line),
            Ok(None) => Err(Silence::Died(self.last_words().await)),
            Err(silence) => Err(silence),
        }
    }

    /// How it died, with the end of what it complained about.
    async fn last_words(&mut self) -> String {
        self.group.signal(rustix::process::Signal::KILL);
        let how = match self.child.wait().await {
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        };
        seam::within(LAST_WORDS, &mut self.complaints).await;
        let words = String::from_utf8_lossy(&self.complained.lock()).trim().to_owned();
        if words.is_empty() { how } else { format!("{how}: {words}") }
    }

    /// Asks it to end, and kills what is left of its group after a grace.
    pub(super) async fn end(mut self, grace: Duration) {
        if let Err(error) = end(&mut self.child, &self.group, grace).await {
            tracing::warn!(%error, "a handler's process could not be waited for");
        }
    }
}

/// The next line without its end; nothing when there is none any more.
async fn line(stdout: &mut BufReader<ChildStdout>) -> Result<Option<Vec<u8>>, Silence> {
    let mut line = Vec::new();
    loop {
        let piece = stdout.fill_buf().await.map_err(Silence::Io)?;
        if piece.is_empty() {
            return Ok(None);
        }
        let end = piece.iter().position(|byte| *byte == b'\n');
        let taken = end.unwrap_or(piece.len());
        if line.len() + taken > LINE_BYTES_MAX {
            return Err(Silence::TooLong);
        }
        line.extend_from_slice(&piece[..taken]);
        stdout.consume(end.map_or(taken, |end| end + 1));
        if end.is_some() {
            return Ok(Some(line));
        }
    }
}

impl Silence {
    /// For people.
    pub(super) fn words(&self) -> String {
        match self {
            Self::Died(how) => format!("its process ended without an answer: {how}"),
            Self::TooLong => format!("its answer has more than {LINE_BYTES_MAX} bytes"),
            Self::Io(error) => format!("lost its process: {error}"),
        }
    }
}
