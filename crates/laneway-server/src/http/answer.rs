//! Answers as JSON, each with a newline at its end: pasted into a terminal, answers and prompts stay apart.

use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde::Serialize;

/// An answer as JSON.
#[derive(Debug)]
pub(super) struct Json<T>(pub(super) T);

impl<T: Serialize> IntoResponse for Json<T> {
    fn into_response(self) -> Response {
        ([(CONTENT_TYPE, "application/json")], line(&self.0)).into_response()
    }
}

/// JSON in one line.
pub(super) fn line(told: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(told).expect("answers are plain data");
    line.push(b'\n');
    line
}
