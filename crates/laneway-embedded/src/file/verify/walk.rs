//! The walk over the log: every frame, every record, the contents of every segment.

use std::path::PathBuf;

use laneway_core::store::JobResult;
use laneway_core::{Shard, Timestamp};

use super::chain::Chains;
use super::finding::{Finding, FindingKind, Place};
use super::report::VerifyReport;
use crate::file::log::{Frame, LogError, frame};
use crate::file::state::{FileState, Footers, Record, RecordReader, SegmentContents, contents_of};
use crate::machine::StoredEnd;

/// What the walk knows.
pub(super) struct Walk<'a> {
    pub(super) report: &'a mut VerifyReport,
    pub(super) chains: Chains,
    /// Frames from this number on are not in the index.
    pub(super) replay_from: u64,
    /// What index and log together say; `None` if the index cannot be read.
    pub(super) state: Option<FileState>,
    pub(super) footers: Option<&'a Footers>,
    /// The segment being read.
    current: Option<(u64, SegmentContents)>,
    /// Ends of jobs whose results lie in chunks.
    pub(super) stashed: Vec<(Shard, StoredEnd, Place)>,
    /// Time of the last frame.
    pub(super) time: Timestamp,
}

/// The place of a record of a frame.
fn place_of(frame: &Frame, at: usize) -> Place {
    Place {
        file: PathBuf::from(format!("log/{:020}.seg", frame.position.serial)),
        offset: frame.position.offset + (frame::HEADER_BYTES + at) as u64,
    }
}

impl<'a> Walk<'a> {
    pub(super) fn new(
        report: &'a mut VerifyReport,
        replay_from: u64,
        state: Option<FileState>,
        footers: Option<&'a Footers>,
    ) -> Self {
        Self {
            report,
            chains: Chains::default(),
            replay_from,
            state,
            footers,
            current: None,
            stashed: Vec::new(),
            time: Timestamp(0),
        }
    }

    /// One frame, whose checksum was right.
    pub(super) fn frame(&mut self, frame: &Frame) -> Result<(), LogError> {
        self.report.frames += 1;
        self.report.bytes += frame.body.len() as u64;
        self.time = self.time.max(Timestamp(frame.stamp.calendar));
        if self.current.as_ref().is_none_or(|(serial, _)| *serial != frame.position.serial) {
            self.end_segment();
            self.current = Some((frame.position.serial, SegmentContents::default()));
        }
        if !self.records(frame) {
            return Ok(());
        }
        if let (Some((_, contents)), Ok(added)) = (&mut self.current, contents_of(frame)) {
            let offset = u32::try_from(frame.position.offset).expect("segments are at most 1 GiB");
            contents.add(offset, Timestamp(frame.stamp.calendar), &added);
        }
        match &mut self.state {
            Some(state) if frame.number >= self.replay_from => state.replay(frame),
            _ => Ok(()),
        }
    }

    /// Looks at every record; false if one makes no sense, then nothing more is known of the frame.
    fn records(&mut self, frame: &Frame) -> bool {
        let mut reader = RecordReader::new(frame.body.clone());
        let mut last = 0;
        loop {
            match reader.next() {
                Ok(Some((at, record))) => {
                    last = at;
                    if !self.record(frame, at, record) {
                        break;
                    }
                }
                Ok(None) => return true,
                Err(_) => break,
            }
        }
        let what = "a record of a frame whose checksum is right makes no sense";
        self.report.add(Finding::new(FindingKind::Damage, what).at(place_of(frame, last)));
        false
    }

    fn record(&mut self, frame: &Frame, at: usize, record: Record) -> bool {
        match record {
            Record::Events(section) => {
                let (shard, place) = (section.shard, place_of(frame, at));
                for event in section.events() {
                    let Ok(event) = event else { return false };
                    self.report.events += 1;
                    for finding in self.chains.event(shard, &event, &place) {
                        self.report.add(finding);
                    }
                }
            }
            Record::JobEnds(shard, ends) => {
                self.report.job_ends += ends.len() as u64;
                let stashed = |end: &StoredEnd| matches!(end.end.result, JobResult::Stashed { .. });
                let ends = ends.into_iter().filter(|(_, end)| stashed(end));
                self.stashed.extend(ends.map(|(at, end)| (shard, end, place_of(frame, at))));
            }
            Record::Tail(shard, key, tail) => self.chains.tail(shard, key, tail),
            Record::TailGone(shard, key) => self.chains.forget_lane(shard, key),
            Record::RemoveStream(stream) => self.chains.forget(stream),
            _ => {}
        }
        true
    }

    /// The segment is read to its end: its footer must say the same.
    pub(super) fn end_segment(&mut self) {
        let Some((serial, contents)) = self.current.take() else { return };
        let Some(footers) = self.footers else { return };
        let file = PathBuf::from(format!("contents/{serial:020}.idx"));
        let finding = match check_footer(footers, serial, &contents) {
            Ok(None) => return,
            Ok(Some(true)) => {
                self.report.footers += 1;
                return;
            }
            Ok(Some(false)) => {
                self.report.footers += 1;
                Finding::new(FindingKind::Mismatch, "the footer does not say what its segment holds")
            }
            Err(error) => Finding::new(FindingKind::Damage, error.to_string()),
        };
        self.report.add(finding.at(Place { file, offset: 0 }));
    }
}

/// Whether a footer says what its segment holds; `None` if there is none, or one that is made again at the next start.
fn check_footer(
    footers: &Footers,
    serial: u64,
    contents: &SegmentContents,
) -> laneway_core::Result<Option<bool>> {
    if footers.serials()?.binary_search(&serial).is_err() {
        return Ok(None);
    }
    footers.agrees(serial, contents)
}
