//! Schedules: events or jobs that are sent by the clock.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::payload::Json;

/// What a schedule is asked to be: a target, and one of `cron` and `every`. What is left out has its default.
///
/// ```
/// use laneway_client::wire::ScheduleSettings;
///
/// let nightly: ScheduleSettings = serde_json::from_str(
///     r#"{"stream":"reports","type":"nightly","cron":"30 2 * * *","zone":"Europe/Berlin","catch_up":"last"}"#,
/// )?;
/// assert_eq!((nightly.stream.as_str(), nightly.every), ("reports", None));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, default)]
pub struct ScheduleSettings {
    /// The stream it sends to.
    pub stream: String,
    /// When: minute, hour, day, month, weekday, with seconds before them if there are six fields.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cron: Option<String>,
    /// The time zone of `cron`, such as `Europe/Berlin`. Default `UTC`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// Or how often, such as `10m`; the beat is that of midnight UTC, and the same after a restart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every: Option<String>,
    /// What happens when the firing before has not ended. Default `queue`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overlap: Option<Overlap>,
    /// What happens to firings that nobody was there for. Default `last`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub catch_up: Option<CatchUp>,
    /// With `"catch_up":"all"`: at most so many, the newest ones, 1 to 1,000. Default 1,000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub catch_up_max: Option<u32>,
    /// The lane it sends to. Default: one named after the schedule, or none with `"overlap":"allow"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The lane in base64, when the key is no UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_b64: Option<String>,
    /// Type of its events.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Their payload; any JSON, kept as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Value>))]
    pub data: Option<Json>,
    /// Names and values that travel with them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Makes each a job that this processor answers. Default: plain events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processor: Option<String>,
    /// Passes over what is due until this is false again. Default false.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
}

/// What happens when a firing is due and the one before has not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Overlap {
    /// It waits behind it in its lane.
    Queue,
    /// It is passed over; only with `processor`.
    Skip,
    /// Both run side by side; only without a key.
    Allow,
}

/// What happens to firings that nobody was there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum CatchUp {
    /// They are passed over.
    None,
    /// The newest one is made up for.
    Last,
    /// All are made up for, oldest first.
    All,
}

/// A schedule as it stands.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Schedule {
    /// Its name.
    pub name: String,
    /// What it was asked to be, with all defaults.
    pub settings: ScheduleSettings,
    /// The next three times it is due; none while it is paused.
    pub next: Vec<String>,
    /// The newest time that fired or was passed over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_due_at: Option<String>,
    /// The last job it made by its time table, if it makes jobs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_job: Option<String>,
}

/// All schedules, by name.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Schedules {
    /// One entry each.
    pub items: Vec<Schedule>,
}

/// A firing besides the time table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ScheduleRun {
    /// The one name of its event.
    #[serde(rename = "ref")]
    pub reference: String,
    /// Its job, if the schedule makes jobs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
}
