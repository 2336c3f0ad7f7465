//! Pages of lists: `?limit=&cursor=` in, `{"items":…,"next":…}` and a `Link` header out.
//!
//! A cursor is where the next page begins, together with the call and the filter it was made for. With another filter it
//! would silently leave entries out, so that is refused. It is opaque and no secret: who makes one up can only begin a
//! list somewhere else.

use axum::http::header::LINK;
use axum::http::{HeaderValue, Uri};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::answer::Json;
use super::error::{Failure, Result};
use super::query::Query;

/// Most entries of a page, and how many there are unless it is said.
const LIMIT_MAX: usize = 1_000;
const LIMIT: usize = 100;

/// One page that is asked for.
#[derive(Debug)]
pub(super) struct Paging {
    /// How many entries it may have.
    pub(super) limit: usize,
    /// The filter; its names are those that the call knows.
    pub(super) filter: Query,
    /// The call with its filter: what a cursor is good for.
    list: String,
    cursor: Option<Vec<u8>>,
}

/// A page as it is answered: the entries, and the link to the next page.
#[derive(Debug)]
pub(super) struct Page<T> {
    body: T,
    link: Option<String>,
}

impl Paging {
    /// Reads what is asked for; `filters` are the names that the call knows besides `limit` and `cursor`.
    pub(super) fn read(uri: &Uri, filters: &[&str]) -> Result<Self> {
        let filter = Query::read(uri.query(), &[filters, &["limit", "cursor"]].concat())?;
        let limit = filter.number("limit", "1 to 1000")?.unwrap_or(LIMIT);
        if !(1..=LIMIT_MAX).contains(&limit) {
            return Err(Failure::value("query limit", limit, "1 to 1000"));
        }
        let list = format!("{}?{}", uri.path(), filter.written(filters));
        let cursor = filter.bytes("cursor").map(<[u8]>::to_vec);
        Ok(Self { limit, filter, list, cursor })
    }

    /// Where the page begins; nothing for the first one.
    pub(super) fn place<P: DeserializeOwned>(&self) -> Result<Option<P>> {
        place("query cursor", &self.list, self.cursor.as_deref())
    }

    /// The cursor of the page that begins at this place.
    pub(super) fn cursor(&self, place: &impl Serialize) -> String {
        cursor(&self.list, place)
    }

    /// The answer, with the link that its `next` is.
    pub(super) fn answer<T>(&self, body: T, next: Option<&str>) -> Page<T> {
        let mark = if self.list.ends_with('?') { "" } else { "&" };
        let link =
            next.map(|next| format!("<{}{mark}limit={}&cursor={next}>; rel=\"next\"", self.list, self.limit));
        Page { body, link }
    }
}

/// A cursor for this place of this list.
pub(super) fn cursor(list: &str, place: &impl Serialize) -> String {
    URL_SAFE_NO_PAD.encode(serde_json::to_vec(&(list, place)).expect("places are plain data"))
}

/// The place of a cursor that was made for this list; nothing without a cursor.
pub(super) fn place<P: DeserializeOwned>(
    field: &str,
    list: &str,
    cursor: Option<&[u8]>,
) -> Result<Option<P>> {
    let Some(cursor) = cursor else { return Ok(None) };
    let told = || format!("{:?}", String::from_utf8_lossy(cursor));
    let malformed = || Failure::value(field, told(), "the next of a page, as it was answered");
    let bytes = URL_SAFE_NO_PAD.decode(cursor).map_err(|_| malformed())?;
    let (made_for, place): (String, serde_json::Value) =
        serde_json::from_slice(&bytes).map_err(|_| malformed())?;
    if made_for != list {
        return Err(Failure::value(field, format!("made for {made_for}"), "used for the same list"));
    }
    serde_json::from_value(place).map(Some).map_err(|_| malformed())
}

impl<T: Serialize> IntoResponse for Page<T> {
    fn into_response(self) -> Response {
        let mut response = Json(self.body).into_response();
        // A path and an escaped query are always a header value.
        if let Some(link) = self.link.and_then(|link| HeaderValue::try_from(link).ok()) {
            response.headers_mut().insert(LINK, link);
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(uri: &str) -> Result<Paging> {
        Paging::read(&uri.parse().unwrap(), &["status", "key"])
    }

    #[test]
    fn a_cursor_is_good_for_the_list_it_was_made_for() {
        let first = asked("/v1/lanes?key=a%2Fb%0A&status=parked").unwrap();
        assert_eq!((first.limit, first.place::<(u32, String)>().unwrap()), (100, None));
        let next = first.cursor(&(3, "x"));
        // In whatever order the filter is written.
        let second = asked(&format!("/v1/lanes?limit=7&cursor={next}&status=parked&key=a/b%0a")).unwrap();
        assert_eq!(second.place().unwrap(), Some((3, "x".to_owned())));
        let answer = second.answer((), Some("n")).into_response();
        let link = r#"</v1/lanes?status=parked&key=a%2Fb%0A&limit=7&cursor=n>; rel="next""#;
        assert_eq!(answer.headers()[LINK], link);
        for other in
            ["/v1/lanes?status=parked", "/v1/lanes?status=paused&key=a%2Fb%0A", "/v1/other?status=parked"]
        {
            let told =
                asked(&format!("{other}&cursor={next}")).unwrap().place::<(u32, String)>().unwrap_err();
            assert!(told.detail.contains("must be used for the same list"), "{told:?}");
        }
    }

    #[test]
    fn what_is_no_cursor_is_refused() {
        for cursor in ["x", "!!", "bm9uZQ", ""] {
            let told = asked(&format!("/v1/lanes?cursor={cursor}")).unwrap().place::<u32>().unwrap_err();
            assert!(told.detail.contains("must be the next of a page"), "{told:?}");
        }
        let other = asked("/v1/lanes").unwrap().cursor(&"text");
        assert!(asked(&format!("/v1/lanes?cursor={other}")).unwrap().place::<u32>().is_err());
        assert!(asked("/v1/lanes?limit=0").unwrap_err().detail.contains("1 to 1000"));
    }
}
