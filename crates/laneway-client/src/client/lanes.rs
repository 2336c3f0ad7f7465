//! Lanes.

use http::Method;

use super::{Client, escaped};
use crate::error::ClientError;
use crate::wire::{Lane, LaneAnswer, LaneRequest, LaneStatus, Lanes};

impl Client {
    /// One lane as it stands.
    pub async fn lane(&self, stream: &str, key: &[u8]) -> Result<Lane, ClientError> {
        self.call(Method::GET, &format!("/v1/streams/{}/lane?key={}", escaped(stream), escaped(key))).await
    }

    /// A page of the lanes that stand so, or of all that are held up.
    pub async fn lanes(
        &self,
        stream: &str,
        status: Option<LaneStatus>,
        cursor: Option<&str>,
    ) -> Result<Lanes, ClientError> {
        let status = status.map(serde_json::to_value).transpose()?;
        let given = [("status", status.as_ref().and_then(serde_json::Value::as_str)), ("cursor", cursor)];
        let given = given.iter().filter_map(|(name, value)| Some(format!("{name}={}", escaped((*value)?))));
        let query = given.collect::<Vec<_>>().join("&");
        self.call(Method::GET, &format!("/v1/streams/{}/lanes?{query}", escaped(stream))).await
    }

    /// Stops a lane; what runs goes on.
    pub async fn pause_lane(&self, stream: &str, lane: &LaneRequest) -> Result<LaneAnswer, ClientError> {
        self.call_with(Method::POST, &format!("/v1/streams/{}/lanes/pause", escaped(stream)), lane).await
    }

    /// Lets a paused, parked or diverting lane go on.
    pub async fn resume_lane(&self, stream: &str, lane: &LaneRequest) -> Result<LaneAnswer, ClientError> {
        self.call_with(Method::POST, &format!("/v1/streams/{}/lanes/resume", escaped(stream)), lane).await
    }

    /// Tries the head of a lane again now; a parked one gets all its attempts again.
    pub async fn retry_lane(&self, stream: &str, lane: &LaneRequest) -> Result<LaneAnswer, ClientError> {
        self.call_with(Method::POST, &format!("/v1/streams/{}/lanes/retry", escaped(stream)), lane).await
    }

    /// Passes the head of a lane over.
    pub async fn skip_lane(&self, stream: &str, lane: &LaneRequest) -> Result<LaneAnswer, ClientError> {
        self.call_with(Method::POST, &format!("/v1/streams/{}/lanes/skip", escaped(stream)), lane).await
    }
}
