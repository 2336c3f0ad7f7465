//! Schedules.

use http::Method;

use super::{Client, escaped};
use crate::error::ClientError;
use crate::wire::{Schedule, ScheduleRun, ScheduleSettings, Schedules};

impl Client {
    /// Creates a schedule, or changes one that is there.
    pub async fn put_schedule(
        &self,
        name: &str,
        settings: &ScheduleSettings,
    ) -> Result<Schedule, ClientError> {
        self.call_with(Method::PUT, &path(name), settings).await
    }

    /// A schedule as it stands.
    pub async fn schedule(&self, name: &str) -> Result<Schedule, ClientError> {
        self.call(Method::GET, &path(name)).await
    }

    /// All schedules.
    pub async fn schedules(&self) -> Result<Vec<Schedule>, ClientError> {
        Ok(self.call::<Schedules>(Method::GET, "/v1/schedules").await?.items)
    }

    /// Fires a schedule now, besides its time table.
    pub async fn run_schedule(&self, name: &str) -> Result<ScheduleRun, ClientError> {
        self.call(Method::POST, &format!("{}/run", path(name))).await
    }

    /// Removes a schedule; what it fired stays.
    pub async fn delete_schedule(&self, name: &str) -> Result<(), ClientError> {
        self.send(Method::DELETE, &path(name), &[], None).await?.succeeded().map(drop)
    }
}

fn path(name: &str) -> String {
    format!("/v1/schedules/{}", escaped(name))
}
