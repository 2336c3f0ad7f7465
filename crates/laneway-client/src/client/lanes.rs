//! Lanes.

use http::Method;

use super::{Client, escaped};
use crate::error::ClientError;
use crate::wire::{Count, Lane, LaneRequest};

impl Client {
    /// One lane as it stands.
    pub async fn lane(&self, stream: &str, key: &[u8]) -> Result<Lane, ClientError> {
        self.call(Method::GET, &format!("/v1/streams/{}/lane?key={}", escaped(stream), escaped(key))).await
    }

    /// Stops a lane; what runs goes on.
    pub async fn pause_lane(&self, stream: &str, lane: &LaneRequest) -> Result<Count, ClientError> {
        self.call_with(Method::POST, &format!("/v1/streams/{}/lanes/pause", escaped(stream)), lane).await
    }

    /// Lets a paused, parked or diverting lane go on.
    pub async fn resume_lane(&self, stream: &str, lane: &LaneRequest) -> Result<Count, ClientError> {
        self.call_with(Method::POST, &format!("/v1/streams/{}/lanes/resume", escaped(stream)), lane).await
    }

    /// Tries the head of a lane again now; a parked one gets all its attempts again.
    pub async fn retry_lane(&self, stream: &str, lane: &LaneRequest) -> Result<Count, ClientError> {
        self.call_with(Method::POST, &format!("/v1/streams/{}/lanes/retry", escaped(stream)), lane).await
    }

    /// Passes the head of a lane over.
    pub async fn skip_lane(&self, stream: &str, lane: &LaneRequest) -> Result<Count, ClientError> {
        self.call_with(Method::POST, &format!("/v1/streams/{}/lanes/skip", escaped(stream)), lane).await
    }
}
