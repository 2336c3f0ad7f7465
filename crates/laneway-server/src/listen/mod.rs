//! Connections: who may listen where, TLS, how many there may be, and how long they may keep us waiting.
//!
//! `exposure` judges an address before it is bound. `accept` takes connections, `tls` speaks for them, `line` knows whom
//! a connection waits for, `connections` counts them and closes the ones that wait too long, `bodies` tells a line of
//! what is read and written.

mod accept;
mod bodies;
mod connections;
mod exposure;
mod line;
mod tls;
mod watched;

pub(crate) use accept::{Door, open};
pub(crate) use bodies::BodyFault;
pub(crate) use connections::Patience;
pub(crate) use exposure::{Consent, Exposure, check as check_exposure, remind};
pub(crate) use tls::{Tls, TlsFiles};
