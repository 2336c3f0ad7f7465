//! Streams.

use laneway::Mode;
use laneway::core::{StreamInfo, StreamSettings};
use laneway_client::wire;

use super::time::length;
use crate::http::error::Result;
use crate::length::text as length_text;

/// What a stream is to be. Partitions and mode never change, so leaving them out leaves them as they are.
pub(crate) fn stream_in(asked: &wire::StreamSettings, there: Option<&StreamInfo>) -> Result<StreamSettings> {
    let default = StreamSettings::default();
    let fixed = there.map_or(&default, |info| &info.settings);
    let mode = match asked.mode {
        Some(wire::Mode::Queue) => Mode::Queue,
        Some(wire::Mode::Latest) => Mode::Latest,
        None => fixed.mode,
    };
    let settings = StreamSettings {
        partitions: asked.partitions.unwrap_or(fixed.partitions),
        mode,
        keep: asked.keep.as_deref().map_or(Ok(default.keep), |keep| length("keep", keep))?,
        max_pending: asked.max_pending,
        ..fixed.clone()
    };
    settings.check()?;
    Ok(settings)
}

/// A stream as it is, without how far its processors are.
pub(crate) fn stream_out(info: &StreamInfo) -> wire::Stream {
    wire::Stream {
        name: info.name.clone(),
        partitions: info.settings.partitions,
        mode: match info.settings.mode {
            Mode::Queue => wire::Mode::Queue,
            Mode::Latest => wire::Mode::Latest,
        },
        keep: length_text(info.settings.keep),
        max_pending: info.settings.max_pending,
        heads: Vec::new(),
        processors: Vec::new(),
    }
}
