//! The only conversion between what is sent and what is inside: one file per noun.

mod cloud_event;
mod draft;
mod event;
mod key;
mod lane;
mod payload;
mod processor;
mod schedule;
mod settle;
mod stream;
mod time;
mod wall;

pub(super) use laneway::core::period::text as length_text;

pub(super) use cloud_event::{cloud_event, with_data};
pub(super) use draft::{appending, draft, expects_no_object};
pub(crate) use event::{claimed, last_done, reference};
pub(super) use event::{event, header_texts, kind};
pub(super) use key::key;
pub(crate) use key::{Named, named};
pub(super) use lane::{status_of, why};
pub(crate) use payload::payload;
pub(super) use processor::{RunsAt, settings_in, settings_out, start_in, start_text};
pub(super) use schedule::{schedule_in, schedule_out};
pub(crate) use settle::{answer, own_streams};
pub(super) use stream::{stream_in, stream_out};
pub(super) use time::{date, length};
pub(crate) use time::{date_of, due};
