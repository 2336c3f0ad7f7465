//! Follows the events of a stream as they come.

use bytes::BytesMut;
use http::Method;
use http::header::{ACCEPT, HeaderName};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;

use super::{Answer, Client, escaped};
use crate::error::ClientError;
use crate::wire::Event;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Events as they come; see [`Client::follow`].
#[derive(Debug)]
pub struct Following {
    client: Client,
    path: String,
    body: Incoming,
    buffer: BytesMut,
    last_id: Option<String>,
}

/// What a follower is told.
#[derive(Debug, Clone)]
pub enum Followed {
    /// An event.
    Event(Box<Event>),
    /// What came next went by retention; it goes on with the first event still there. As JSON: `partition`, `after`, `first`.
    Trimmed(String),
    /// Nothing more comes on this connection, and why, as JSON: the follower was too slow, or the server ends.
    Ended(String),
}

/// What to follow of a stream, and from where on.
///
/// ```no_run
/// use laneway_client::{Client, ClientError, Follow};
///
/// # async fn example(client: Client) -> Result<(), ClientError> {
/// let all_of_ann = Follow { key: Some(b"ann".to_vec()), from_beginning: true, ..Follow::default() };
/// let mut following = client.follow_as("orders", &all_of_ann).await?;
/// println!("{:?}", following.next().await?);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Follow {
    /// Only this partition. Default: all.
    pub partition: Option<u32>,
    /// Only this lane.
    pub key: Option<Vec<u8>>,
    /// Whether it begins with the first event that is still there, unless there is a `last_id`. Default: with what comes.
    pub from_beginning: bool,
    /// Goes on behind what was followed so far.
    pub last_id: Option<String>,
}

impl Client {
    /// Follows a stream: one partition or all, from the id of an event that was followed on, or from now on.
    ///
    /// ```no_run
    /// use laneway_client::{Client, ClientError, Followed};
    ///
    /// # async fn example(client: Client) -> Result<(), ClientError> {
    /// let mut last_id: Option<String> = None;
    /// loop {
    ///     let mut following = client.follow("orders", None, last_id.as_deref()).await?;
    ///     while let Some(Followed::Event(event)) = following.next().await? {
    ///         println!("{} {:?}", event.reference, event.data);
    ///     }
    ///     last_id = following.last_id().map(str::to_owned);
    /// }
    /// # }
    /// ```
    pub async fn follow(
        &self,
        stream: &str,
        partition: Option<u32>,
        last_id: Option<&str>,
    ) -> Result<Following, ClientError> {
        let last_id = last_id.map(str::to_owned);
        self.follow_as(stream, &Follow { partition, last_id, ..Follow::default() }).await
    }

    /// As [`follow`](Self::follow), also of one lane only, or from the first event that is still there.
    pub async fn follow_as(&self, stream: &str, wish: &Follow) -> Result<Following, ClientError> {
        let mut query = Vec::new();
        query.extend(wish.partition.map(|partition| format!("partition={partition}")));
        query.extend(wish.key.as_ref().map(|key| format!("key={}", escaped(key))));
        query.extend(wish.from_beginning.then(|| "after=0".to_owned()));
        let path = format!("/v1/streams/{}/events?{}", escaped(stream), query.join("&"));
        let mut headers = vec![(ACCEPT, "text/event-stream")];
        headers.extend(wish.last_id.as_deref().map(|last_id| (LAST_EVENT_ID, last_id)));
        let answer = self.in_time(&path, self.begin(Method::GET, &path, &headers, None)).await?;
        if !answer.status().is_success() {
            let (parts, body) = answer.into_parts();
            let body = body.collect().await.map_err(|error| self.unreachable(&path, error))?.to_bytes();
            return Err(Answer { status: parts.status, headers: parts.headers, body }.refusal());
        }
        let last_id = wish.last_id.clone();
        Ok(Following {
            client: self.clone(),
            path,
            body: answer.into_body(),
            buffer: BytesMut::new(),
            last_id,
        })
    }
}

impl Following {
    /// The id to come back with.
    pub fn last_id(&self) -> Option<&str> {
        self.last_id.as_deref()
    }

    /// What comes next; nothing when the connection has ended.
    ///
    /// # Errors
    /// When the connection was cut, or what came is no event of ours.
    pub async fn next(&mut self) -> Result<Option<Followed>, ClientError> {
        loop {
            if let Some(block) = self.block() {
                if let Some(told) = self.told(&block)? {
                    return Ok(Some(told));
                }
                continue;
            }
            match self.body.frame().await {
                None => return Ok(None),
                Some(Ok(frame)) => {
                    if let Some(data) = frame.data_ref() {
                        self.buffer.extend_from_slice(data);
                    }
                }
                Some(Err(error)) => return Err(self.client.unreachable(&self.path, error)),
            }
        }
    }

    /// The lines up to the next empty one.
    fn block(&mut self) -> Option<String> {
        let end = self.buffer.windows(2).position(|pair| pair == b"\n\n")?;
        let block = self.buffer.split_to(end + 2);
        Some(String::from_utf8_lossy(&block).into_owned())
    }

    fn told(&mut self, block: &str) -> Result<Option<Followed>, ClientError> {
        let (mut kind, mut data) = ("message", Vec::new());
        for line in block.lines() {
            match line.split_once(": ") {
                Some(("event", value)) => kind = value,
                Some(("data", value)) => data.push(value),
                Some(("id", value)) => self.last_id = Some(value.to_owned()),
                _ => {}
            }
        }
        let data = data.join("\n");
        Ok(match kind {
            _ if data.is_empty() => None,
            "message" => {
                let event = serde_json::from_str(&data)
                    .map_err(|source| ClientError::Foreign { status: http::StatusCode::OK, source })?;
                Some(Followed::Event(Box::new(event)))
            }
            "trimmed" => Some(Followed::Trimmed(data)),
            _ => Some(Followed::Ended(data)),
        })
    }
}
