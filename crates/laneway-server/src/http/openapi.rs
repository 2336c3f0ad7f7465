//! The description of the API, made from the calls and the types they carry.

use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use bytes::Bytes;
use laneway_client::Problem;
use utoipa::openapi::path::Operation;
use utoipa::openapi::{ContentBuilder, Info, License, OpenApi, Ref, RefOr, Response};
use utoipa::{PartialSchema as _, ToSchema as _};

/// What is said of the API as a whole.
pub(super) fn head() -> OpenApi {
    let mut info = Info::new("Laneway", env!("CARGO_PKG_VERSION"));
    info.description = Some("Runs work in order, per key.".to_owned());
    info.license = Some(License::new("MIT OR Apache-2.0"));
    OpenApi::new(info, utoipa::openapi::Paths::new())
}

/// The description as JSON. Every call may answer a problem, so that is added to all of them in one place.
pub(super) fn text(mut described: OpenApi) -> Bytes {
    for item in described.paths.paths.values_mut() {
        let operations = [&mut item.get, &mut item.put, &mut item.post, &mut item.delete];
        operations.into_iter().flatten().for_each(add_problem);
    }
    let components = described.components.get_or_insert_default();
    components.schemas.insert(Problem::name().into_owned(), Problem::schema());
    let mut text = serde_json::to_vec_pretty(&described).expect("a description is plain data");
    text.push(b'\n');
    Bytes::from(text)
}

fn add_problem(operation: &mut Operation) {
    let schema = Ref::from_schema_name(Problem::name());
    let content = ContentBuilder::new().schema(Some(schema)).build();
    let mut problem = Response::new("why it was not done");
    problem.content.insert("application/problem+json".to_owned(), RefOr::T(content));
    operation.responses.responses.insert("default".to_owned(), RefOr::T(problem));
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
