//! What the rows over HTTP need: a lean client, the server as users start it, and a bare one to compare with.
//!
//! `connection` sends requests that `requests` made before, `laneway` is the program as a child, `bare` the baseline,
//! `echo` the handler that a kept process runs.

mod bare;
mod connection;
mod echo;
mod laneway;
mod lines;
mod requests;

pub(crate) use bare::{Bare, child as bare_child};
pub(crate) use connection::{Answer, Connection};
pub(crate) use echo::{answer as echo_answer, child as echo_child};
pub(crate) use laneway::{LanewayServer, check_program};
pub(crate) use lines::{LineAnswers, Lines};
pub(crate) use requests::{event, get, lines_head, post, post_with};
