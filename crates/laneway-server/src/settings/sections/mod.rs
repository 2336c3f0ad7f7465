//! The lists of the file: `[[stream]]`, `[[processor]]`, `[[schedule]]`. One file each, one entry per field.

mod processor;
mod schedule;
mod section;
mod stream;

pub(crate) use processor::{Processor, ProcessorHandler, SecretPlace};
pub(crate) use schedule::Schedule;
pub(super) use section::Section;
pub(crate) use stream::Stream;
