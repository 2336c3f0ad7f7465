//! Power cuts on a real file system: ext4 on a loop file, shut down by the kernel without flushing its journal.
//!
//! Needs root and a loop device; without them it says so, and the simulated cuts must do. The worker is stopped
//! before the cut: a sync in flight at that moment claims success without having written anything.

use std::path::{Path, PathBuf};
use std::process::Command;

use laneway_embedded::SyncMode;
use rustix::process::{Pid, Signal, kill_process};

use super::actor::Sort;
use super::child::Working;
use super::killed::{Folder, copy};
use super::print;

const CUTS: u64 = 50;
const IMAGE_BYTES: u64 = 192 << 20;
/// The call that shuts a file system down; its argument 2 means: without flushing the journal.
const SHUTDOWN: &str = "open(my $file, '<', $ARGV[0]) or die \"open: $!\"; my $how = pack('L', 2); \
                        ioctl($file, 0x8004587d, $how) or die \"ioctl: $!\";";

fn run(program: &str, arguments: &[&str]) -> Result<(), String> {
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    let output = Command::new(program).args(arguments).env("PATH", path).output();
    let output = output.map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{program} {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim()))
}

/// A mounted file system in a file; unmounted when dropped.
struct Mounted {
    folder: tempfile::TempDir,
    mounted: bool,
}

impl Mounted {
    fn new() -> Result<Self, String> {
        if !rustix::process::geteuid().is_root() {
            return Err("not root".to_owned());
        }
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let mut made = Self { folder, mounted: false };
        let image = std::fs::File::create(made.image()).map_err(|error| error.to_string())?;
        image.set_len(IMAGE_BYTES).map_err(|error| error.to_string())?;
        run("mkfs.ext4", &["-q", "-F", &made.image().display().to_string()])?;
        std::fs::create_dir(made.point()).map_err(|error| error.to_string())?;
        made.mount()?;
        std::fs::write(made.point().join("probe"), b"x").map_err(|error| error.to_string())?;
        made.cut()?;
        made.remount()?;
        Ok(made)
    }

    fn image(&self) -> PathBuf {
        self.folder.path().join("image")
    }

    fn point(&self) -> PathBuf {
        self.folder.path().join("mounted")
    }

    fn mount(&mut self) -> Result<(), String> {
        run(
            "mount",
            &["-o", "loop", &self.image().display().to_string(), &self.point().display().to_string()],
        )?;
        self.mounted = true;
        Ok(())
    }

    fn unmount(&mut self) -> Result<(), String> {
        run("umount", &[&self.point().display().to_string()])?;
        self.mounted = false;
        Ok(())
    }

    fn remount(&mut self) -> Result<(), String> {
        self.unmount()?;
        self.mount()
    }

    /// From now on nothing reaches the image.
    fn cut(&self) -> Result<(), String> {
        run("perl", &["-e", SHUTDOWN, &self.point().display().to_string()])
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if self.mounted
            && let Err(error) = self.unmount()
        {
            print(&format!("could not unmount: {error}"));
        }
    }
}

/// Stops all threads of the worker, except those that wait inside the kernel for the disk.
fn stop(working: &Working) {
    let number = i32::try_from(working.process.id()).expect("process ids are small");
    let pid = Pid::from_raw(number).expect("a child has a number");
    kill_process(pid, Signal::STOP).expect("a child can be stopped");
    let tasks = PathBuf::from(format!("/proc/{number}/task"));
    while states(&tasks).iter().any(|state| !matches!(state, 'T' | 't' | 'D' | 'Z')) {
        std::thread::yield_now();
    }
}

/// What each thread does, as the kernel's letter for it.
fn states(tasks: &Path) -> Vec<char> {
    let Ok(tasks) = std::fs::read_dir(tasks) else { return Vec::new() };
    let stat = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("stat")).ok());
    stat.filter_map(|stat| stat.rsplit(") ").next()?.chars().next()).collect()
}

/// Lets a worker run for so many answers, then cuts the power. Gives what it reported.
fn run_and_cut(disk: &mut Mounted, folder: &Folder, answers: usize) -> Result<Vec<String>, String> {
    let mut working = Working::start(&folder.orders);
    let (mut lines, mut found) = (Vec::new(), 0);
    while found < answers
        && let Some(line) = working.line()
    {
        found += usize::from(line.starts_with("step") || line.starts_with("sent"));
        lines.push(line);
    }
    stop(&working);
    disk.cut()?;
    lines.extend(working.kill());
    disk.remount()?;
    Ok(lines)
}

/// One store that loses its power again and again.
fn synced(disk: &mut Mounted, rng: &mut fastrand::Rng) -> Result<Folder, String> {
    let dir = disk.point().join("store");
    let mut folder = Folder::found(&dir, 77, SyncMode::Always);
    for cut in 0..CUTS {
        let lines = run_and_cut(disk, &folder, rng.usize(1..100))?;
        folder.hear(&lines)?;
        if cut % 2 == 0 {
            folder.check(&dir)?;
        } else {
            let temporary = tempfile::tempdir().map_err(|error| error.to_string())?;
            folder.check(&copy(&dir, &temporary.path().join("copy")))?;
        }
        folder.next();
    }
    Ok(folder)
}

/// The same without syncs, in a new folder each time: how often something was lost.
fn unsynced(disk: &mut Mounted, rng: &mut fastrand::Rng, rounds: u64) -> Result<u64, String> {
    let mut lost = 0;
    for round in 0..rounds {
        let dir = disk.point().join(format!("unsynced-{round}"));
        let mut folder = Folder::found(&dir, 500 + round, SyncMode::Os);
        let lines = run_and_cut(disk, &folder, rng.usize(100..300))?;
        folder.hear(&lines)?;
        lost += u64::from(folder.check(&dir).is_err());
    }
    Ok(lost)
}

#[test]
fn nothing_acknowledged_is_lost_in_power_cuts_of_a_real_file_system() {
    let mut disk = match Mounted::new() {
        Ok(disk) => disk,
        Err(reason) => {
            return print(&format!("power cuts on a real file system: not possible here: {reason}"));
        }
    };
    let mut rng = fastrand::Rng::with_seed(5);
    let folder = synced(&mut disk, &mut rng).unwrap_or_else(|wrong| panic!("replay: seed 5: {wrong}"));
    let (appends, commits) = (folder.appends(), folder.oracle.count(Sort::Commit));
    print(&format!(
        "{CUTS} power cuts of ext4: {appends} appends, {commits} commits acknowledged, {} unanswered calls were there \
         whole, 0 lost",
        folder.oracle.unknown_kept
    ));
    assert!(appends > 500 && commits > 100, "{appends} appends and {commits} commits show too little");
    let lost = unsynced(&mut disk, &mut rng, 8).unwrap_or_else(|wrong| panic!("{wrong}"));
    print(&format!("control, sync = os: {lost} of 8 power cuts of ext4 lost something"));
    assert!(lost > 0, "the cuts do not lose what was not synced");
}
