//! Headers that the engine writes itself. Names that begin with `laneway-` are its own: producers cannot set them, so a
//! handler can rely on what they say.

use laneway_core::{Headers, JobId, Refusal};

/// Names that begin so are the engine's.
pub const RESERVED: &str = "laneway-";
/// Who submitted a job, as the front end knows it.
pub const CALLER: &str = "laneway-caller";
/// The job that a job runs again.
pub const RETRY_OF: &str = "laneway-retry-of";

/// Refuses headers that only the engine may set.
pub(crate) fn check(headers: &Headers) -> Result<(), Refusal> {
    match headers.iter().find(|(name, _)| name.starts_with(RESERVED)) {
        Some((name, _)) => Err(Refusal::new("header", name, "a name that does not begin with laneway-")),
        None => Ok(()),
    }
}

/// The user's headers with those of the engine.
pub(super) fn with(
    headers: &Headers,
    caller: Option<&str>,
    retry_of: Option<JobId>,
) -> Result<Headers, Refusal> {
    if caller.is_none() && retry_of.is_none() {
        return Ok(headers.clone());
    }
    let own = headers.iter().map(|(name, value)| (name.to_owned(), value.to_vec()));
    let caller = caller.map(|caller| (CALLER.to_owned(), caller.as_bytes().to_vec()));
    let retry_of = retry_of.map(|id| (RETRY_OF.to_owned(), id.to_string().into_bytes()));
    Headers::new(own.chain(caller).chain(retry_of))
}

/// The user's headers alone.
pub(super) fn without_reserved(headers: &Headers) -> Headers {
    let own = headers.iter().filter(|(name, _)| !name.starts_with(RESERVED));
    Headers::new(own).expect("fewer than were taken before")
}

pub(super) fn caller_of(headers: &Headers) -> Option<String> {
    headers.get(CALLER).map(|caller| String::from_utf8_lossy(caller).into_owned())
}

pub(super) fn retry_of(headers: &Headers) -> Option<JobId> {
    std::str::from_utf8(headers.get(RETRY_OF)?).ok()?.parse().ok()
}
