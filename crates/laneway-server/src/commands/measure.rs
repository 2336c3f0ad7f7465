//! What is measured of this machine itself.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use crate::seam;

/// How often a sync is tried; the middle one counts.
const SYNCS: usize = 21;
const BLOCK: [u8; 4_096] = [0x5a; 4_096];

/// How long it takes until 4 KiB are on the disk of a folder.
pub(super) fn sync_time(folder: &Path) -> std::io::Result<Duration> {
    let path = folder.join(format!(".laneway-sync-{}", std::process::id()));
    let measured = File::create_new(&path).and_then(|mut file| {
        let mut times = Vec::with_capacity(SYNCS);
        for _ in 0..SYNCS {
            let begun = seam::steady();
            file.write_all(&BLOCK)?;
            file.sync_data()?;
            times.push(seam::steady().0.saturating_sub(begun.0));
        }
        times.sort_unstable();
        Ok(Duration::from_micros(times[SYNCS / 2]))
    });
    if measured.is_ok() {
        std::fs::remove_file(&path)?;
    }
    measured
}
