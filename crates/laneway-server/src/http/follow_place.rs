//! The place of a follower: the last id of every partition that it follows, as the text `PARTITION:ID,PARTITION:ID`.

use std::fmt;

use laneway::core::StreamInfo;
use laneway::{EventId, Partition};

use super::error::{Failure, Result};

/// Most partitions of one follower: all of them are in the id of every event.
pub(super) const PARTITIONS_MAX: u32 = 256;

/// Where a follower is in each partition, by number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Places(Vec<(Partition, EventId)>);

impl Places {
    pub(super) fn at(places: impl IntoIterator<Item = (Partition, EventId)>) -> Self {
        Self(places.into_iter().collect())
    }

    /// The places of an id; every partition that is followed must be in it.
    pub(super) fn read(field: &str, text: &str, info: &StreamInfo, followed: &[Partition]) -> Result<Self> {
        let malformed = || {
            Failure::value(
                field,
                format!("{text:?}"),
                "the id of an event that was followed, such as 0:17,1:4",
            )
        };
        let mut places = Vec::new();
        for place in text.split(',') {
            let (partition, id) = place.split_once(':').ok_or_else(malformed)?;
            let partition: u32 = partition.parse().map_err(|_| malformed())?;
            let id: u64 = id.parse().map_err(|_| malformed())?;
            if partition >= info.settings.partitions {
                let limit = format!("about partitions 0 to {}", info.settings.partitions - 1);
                return Err(Failure::value(field, format!("{text:?}"), limit));
            }
            places.push((Partition(partition), EventId(id)));
        }
        let found = followed.iter().map(|partition| {
            let mut given = places.iter().filter(|(given, _)| given == partition);
            match (given.next(), given.next()) {
                (Some(place), None) => Ok(*place),
                _ => {
                    let told = format!("{text:?}");
                    Err(Failure::value(
                        field,
                        told,
                        format!("once about partition {partition}, which is followed"),
                    ))
                }
            }
        });
        Ok(Self(found.collect::<Result<_>>()?))
    }

    pub(super) fn partitions(&self) -> impl Iterator<Item = Partition> {
        self.0.iter().map(|(partition, _)| *partition)
    }

    pub(super) fn after(&self, at: usize) -> EventId {
        self.0[at].1
    }

    pub(super) fn advance(&mut self, at: usize, id: EventId) {
        self.0[at].1 = id;
    }
}

impl fmt::Display for Places {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (partition, id)) in self.0.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            write!(to, "{comma}{}:{}", partition.0, id.0)?;
        }
        Ok(())
    }
}
