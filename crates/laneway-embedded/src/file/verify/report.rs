//! What a verification counted and found.

use std::fmt;

use super::finding::{Finding, FindingKind};

/// Most findings that are kept; the others are counted. One damaged page can spoil any number of lanes.
const FINDINGS_MAX: usize = 1_000;

/// Counts and findings of one verification.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VerifyReport {
    /// Segments of the log.
    pub segments: u64,
    /// Frames in them.
    pub frames: u64,
    /// Bytes of these frames' bodies.
    pub bytes: u64,
    /// Events in them, also those that are trimmed.
    pub events: u64,
    /// Lanes that have an event in the log.
    pub lanes: u64,
    /// Ends of jobs.
    pub job_ends: u64,
    /// Footers of sealed segments.
    pub footers: u64,
    /// Ends of lanes in the index and in the log after it.
    pub tails: u64,
    /// Rows in the index and in the log after it.
    pub rows: u64,
    /// Bytes of a torn tail. What was begun and never acknowledged is no finding; the next start cuts it.
    pub torn_bytes: u64,
    /// The first findings, in the order in which they were made.
    pub findings: Vec<Finding>,
    /// How many more there were.
    pub more: u64,
}

impl VerifyReport {
    /// Whether nothing was found.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }

    /// Whether something of this kind was found.
    pub fn has(&self, kind: FindingKind) -> bool {
        self.findings.iter().any(|finding| finding.kind == kind)
    }

    pub(super) fn add(&mut self, finding: Finding) {
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(finding);
        } else {
            self.more += 1;
        }
    }
}

impl fmt::Display for VerifyReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "read {} segments, {} frames and {} bytes: {} events in {} lanes, {} job ends",
            self.segments, self.frames, self.bytes, self.events, self.lanes, self.job_ends
        )?;
        writeln!(f, "read {} lane ends, {} rows and {} footers", self.tails, self.rows, self.footers)?;
        if self.torn_bytes > 0 {
            writeln!(
                f,
                "{} bytes at the end were never acknowledged; the next start cuts them",
                self.torn_bytes
            )?;
        }
        for finding in &self.findings {
            writeln!(f, "{finding}")?;
        }
        match self.findings.len() as u64 + self.more {
            0 => f.write_str("nothing is wrong"),
            count if self.more > 0 => {
                write!(f, "{count} findings, of which the first {FINDINGS_MAX} are listed")
            }
            count => write!(f, "{count} findings"),
        }
    }
}
