//! The description of the API, made from the calls and the types they carry.

use std::collections::BTreeMap;

use axum::http::Method;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use bytes::Bytes;
use laneway_client::Problem;
use utoipa::openapi::path::Operation;
use utoipa::openapi::schema::{AllOfBuilder, ObjectBuilder, Type};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{Content, ContentBuilder, Info, License, OpenApi, Ref, RefOr, Response};
use utoipa::{PartialSchema as _, ToSchema as _};

use super::code::Code;
use super::scopes::Need;
use super::{refusals, scopes};

const PROBLEM: &str = "application/problem+json";
/// What the description calls the token of a caller.
const TOKEN: &str = "token";

/// What is said of the API as a whole.
pub(super) fn head() -> OpenApi {
    let mut info = Info::new("Laneway", env!("CARGO_PKG_VERSION"));
    info.description = Some("Runs work in order, per key.".to_owned());
    info.license = Some(License::new("MIT OR Apache-2.0"));
    OpenApi::new(info, utoipa::openapi::Paths::new())
}

/// The description as JSON. What a call answers besides success is added to all of them in one place.
pub(super) fn text(mut described: OpenApi) -> Bytes {
    let mut problems = BTreeMap::new();
    for (path, item) in &mut described.paths.paths {
        for (method, call) in refusals::calls(item) {
            call.security = Some(tokens_of(&method, path));
            for (status, codes) in refusals::of(&method, path, call) {
                add_problem(call, status, &codes, &mut problems);
            }
        }
    }
    let components = described.components.get_or_insert_default();
    components.schemas.insert(Problem::name().into_owned(), Problem::schema());
    components.responses.extend(problems);
    components.add_security_scheme(TOKEN, bearer());
    let mut text = serde_json::to_vec_pretty(&described).expect("a description is plain data");
    text.push(b'\n');
    Bytes::from(text)
}

/// How a token is sent.
fn bearer() -> SecurityScheme {
    let about = "Beside each call stands the scope that its token needs. On loopback a server may take calls without one.";
    let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some(about));
    SecurityScheme::Http(bearer.build())
}

/// The token that a call needs, or none where the server takes calls without one.
fn tokens_of(method: &Method, path: &str) -> Vec<SecurityRequirement> {
    let without = SecurityRequirement::default();
    match scopes::need(method, Some(path)) {
        Need::Scope(scope) => vec![SecurityRequirement::new(TOKEN, [scope.name()]), without],
        Need::Health | Need::Token => vec![without],
    }
}

/// Adds a status to a call. The same codes are described once, and named by what they are.
fn add_problem(
    call: &mut Operation,
    status: u16,
    codes: &[Code],
    problems: &mut BTreeMap<String, RefOr<Response>>,
) {
    if let Some(RefOr::T(told)) = call.responses.responses.get_mut(&status.to_string()) {
        // Readiness has the same status for what it tells at length.
        told.content.insert(PROBLEM.to_owned(), RefOr::T(problem(codes)));
        return;
    }
    let names: Vec<&str> = codes.iter().map(|code| code.name()).collect();
    let name = format!("{status}-{}", names.join("-"));
    call.responses.responses.insert(status.to_string(), RefOr::Ref(Ref::from_response_name(&name)));
    problems.entry(name).or_insert_with(|| {
        let told: Vec<String> =
            codes.iter().map(|code| format!("`{}`: {}", code.name(), code.title())).collect();
        let mut response = Response::new(told.join("; "));
        response.content.insert(PROBLEM.to_owned(), RefOr::T(problem(codes)));
        RefOr::T(response)
    });
}

/// A problem with one of these codes.
fn problem(codes: &[Code]) -> Content {
    let names: Vec<&str> = codes.iter().map(|code| code.name()).collect();
    let code = ObjectBuilder::new().schema_type(Type::String).enum_values(Some(names));
    let one_of_these = ObjectBuilder::new().property("code", code);
    let schema = AllOfBuilder::new().item(Ref::from_schema_name(Problem::name())).item(one_of_these);
    ContentBuilder::new().schema(Some(schema)).build()
}

pub(super) async fn answer(text: Bytes) -> impl IntoResponse {
    ([(CONTENT_TYPE, "application/json")], text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The copy lies in the tree so that a change of the API is seen in a review. `LANEWAY_WRITE_OPENAPI=1` writes it.
    #[test]
    fn the_copy_in_the_tree_is_the_description() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/openapi.json");
        let (_, described) = super::super::router::calls().split_for_parts();
        let made = text(described);
        if std::env::var_os("LANEWAY_WRITE_OPENAPI").is_some() {
            std::fs::write(path, &made).unwrap();
        }
        let copy = std::fs::read(path).unwrap();
        assert!(copy == made, "openapi.json is old: run the test again with LANEWAY_WRITE_OPENAPI=1");
    }
}
