//! One process per folder.
//!
//! The lock is the operating system's, on an open file, so it ends with the process however that ends. The
//! text in the file only tells the next one who holds it; it decides nothing.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::seam;

const NAME: &str = "LOCK";
/// More than the text ever has; a foreign file of this name is not read to its end.
const TEXT_BYTES_MAX: u64 = 256;

/// The right to use a folder, until dropped.
#[derive(Debug)]
pub(crate) struct DirectoryLock {
    file: File,
}

/// Why the folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LockError {
    /// Another opener, in this or another process, holds it: stop it, or use another folder.
    #[error("{} is in use by {}", dir.display(), holder.as_ref().map_or_else(|| "another process".to_owned(), Holder::to_string))]
    Held {
        /// The folder.
        dir: PathBuf,
        /// Who holds it, unless that was being written just then.
        holder: Option<Holder>,
    },
    /// The system refused.
    #[error("could not lock {}", path.display())]
    Io {
        /// The lock file.
        path: PathBuf,
        /// The answer of the system.
        #[source]
        source: io::Error,
    },
}

/// Who holds a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Holder {
    /// Its process id.
    pub(crate) pid: u32,
    /// When it took the lock, in microseconds since 1970.
    pub(crate) since_micros: u64,
}

impl std::fmt::Display for Holder {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let age = seam::calendar_micros().saturating_sub(self.since_micros) / 1_000_000;
        write!(formatter, "process {}, for {age} s", self.pid)
    }
}

impl DirectoryLock {
    /// Takes the lock of an existing folder or is refused at once.
    pub(crate) fn acquire(dir: &Path) -> Result<DirectoryLock, LockError> {
        let path = dir.join(NAME);
        let fail = |source| LockError::Io { path: path.clone(), source };
        let mut options = OpenOptions::new();
        // Not truncated here: until the lock is held the text belongs to its holder.
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let mut file = options.open(&path).map_err(fail)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(LockError::Held {
                    dir: dir.to_owned(),
                    holder: read_holder(&mut file).map_err(fail)?,
                });
            }
            Err(TryLockError::Error(source)) => return Err(fail(source)),
        }
        let text = format!("pid {}\nsince_micros {}\n", std::process::id(), seam::calendar_micros());
        file.set_len(0).and_then(|()| file.write_all(text.as_bytes())).map_err(fail)?;
        Ok(DirectoryLock { file })
    }
}

impl Drop for DirectoryLock {
    fn drop(&mut self) {
        // Only so that the text does not name a process that has gone; the lock itself ends below.
        if let Err(error) = self.file.set_len(0) {
            tracing::debug!(%error, "could not clear the lock file");
        }
        // Closing is not enough: a process that is being started elsewhere may hold a copy of the file for a moment.
        if let Err(error) = self.file.unlock() {
            tracing::debug!(%error, "could not unlock the folder; closing the file does");
        }
    }
}

fn read_holder(file: &mut File) -> io::Result<Option<Holder>> {
    let mut text = String::new();
    file.rewind()?;
    file.take(TEXT_BYTES_MAX).read_to_string(&mut text)?;
    let field = |name: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))
            .and_then(|value| value.parse().ok())
    };
    let pid = field("pid").and_then(|pid| u32::try_from(pid).ok());
    Ok(pid.zip(field("since_micros")).map(|(pid, since_micros)| Holder { pid, since_micros }))
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    use super::*;

    const CHILD_DIR: &str = "LANEWAY_LOCK_TEST_DIR";

    fn holder_of(dir: &Path) -> Holder {
        match DirectoryLock::acquire(dir) {
            Err(LockError::Held { holder: Some(holder), .. }) => holder,
            other => panic!("expected a held lock, got {other:?}"),
        }
    }

    #[test]
    fn second_opener_is_refused_and_told_the_pid() {
        let dir = tempfile::tempdir().unwrap();
        let lock = DirectoryLock::acquire(dir.path()).unwrap();
        assert_eq!(holder_of(dir.path()).pid, std::process::id());
        let message = DirectoryLock::acquire(dir.path()).unwrap_err().to_string();
        assert!(message.contains(&format!("process {}", std::process::id())), "{message}");
        drop(lock);
        DirectoryLock::acquire(dir.path()).unwrap();
    }

    /// Runs as a child of the next test; without its variable there is nothing to hold.
    #[test]
    fn child_holds_the_lock() {
        let Some(dir) = std::env::var_os(CHILD_DIR) else { return };
        let _lock = DirectoryLock::acquire(Path::new(&dir)).unwrap();
        let mut out = io::stdout();
        writeln!(out, "\nlocked").unwrap();
        out.flush().unwrap();
        // Ends only by being killed: the parent never writes.
        io::stdin().read_line(&mut String::new()).unwrap();
    }

    #[test]
    fn lock_of_a_killed_process_does_not_hinder() {
        let dir = tempfile::tempdir().unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "--nocapture", "file::lock::tests::child_holds_the_lock"])
            .env(CHILD_DIR, dir.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap() == "locked"), "the child must get the lock");
        assert_eq!(holder_of(dir.path()).pid, child.id());
        child.kill().unwrap();
        child.wait().unwrap();
        DirectoryLock::acquire(dir.path()).unwrap();
    }
}
