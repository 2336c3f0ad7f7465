//! `docs/reference/http.md` against the description of the API.
//!
//! The head of the page is written by hand; everything behind the heading `## Calls` is what this file makes of the
//! description.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;

const HEADING: &str = "## Calls\n";
/// What every call may answer; the head of the page tells it once.
const GENERAL: [&str; 8] = ["401", "403", "408", "414", "415", "431", "500", "503"];

/// All calls by what they are about, then all that they carry.
fn reference() -> String {
    let (_, described) = super::router::calls().split_for_parts();
    let described: Value = serde_json::from_slice(&super::openapi::text(described)).unwrap();
    let mut by_tag: BTreeMap<&str, String> = BTreeMap::new();
    for (path, methods) in object(&described["paths"]) {
        for (method, call) in object(methods) {
            let tag = call["tags"][0].as_str().expect("every call has a tag");
            by_tag.entry(tag).or_default().push_str(&section(&method.to_uppercase(), path, call));
        }
    }
    let mut text = String::new();
    for (tag, calls) in by_tag {
        write!(text, "\n### About {tag}\n{calls}").unwrap();
    }
    text.push_str("\n## Types\n");
    for (name, schema) in object(&described["components"]["schemas"]) {
        text.push_str(&type_section(name, schema));
    }
    text
}

fn object(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

/// A text of the description on one line, as a cell of a table has it, without the example that may follow.
fn line(value: &Value) -> String {
    let text = value.as_str().unwrap_or_default().split("```").next().unwrap_or_default();
    text.trim().replace('\n', " ").replace('|', "\\|")
}

fn section(method: &str, path: &str, call: &Value) -> String {
    let mut text = format!("\n#### {method} {path}\n\n{}\n", line(&call["summary"]));
    if let Some(scope) = call["security"][0]["token"][0].as_str() {
        write!(text, "\nNeeds the scope `{scope}`.\n").unwrap();
    }
    let parameters: Vec<String> =
        call["parameters"].as_array().into_iter().flatten().map(parameter).collect();
    if !parameters.is_empty() {
        write!(text, "\n| parameter | in | meaning |\n| --- | --- | --- |\n{}\n", parameters.join("\n"))
            .unwrap();
    }
    let bodies: Vec<String> = content(&call["requestBody"]).collect();
    if !bodies.is_empty() {
        write!(text, "\nTakes {}.\n", bodies.join(", or ")).unwrap();
    }
    let (mut answers, mut codes) = (Vec::new(), Vec::new());
    for (status, answer) in object(&call["responses"]) {
        match answer["$ref"].as_str() {
            Some(_) if GENERAL.contains(&status.as_str()) => {}
            // A refusal is named by its status and its codes.
            Some(name) => codes.extend(name.split('-').skip(1).map(|code| format!("`{code}`"))),
            None => answers.push(success(status, answer)),
        }
    }
    write!(text, "\nAnswers {}.\n", answers.join("; ")).unwrap();
    if !codes.is_empty() {
        write!(text, "\nRefuses with {}.\n", codes.join(", ")).unwrap();
    }
    text
}

fn parameter(parameter: &Value) -> String {
    let needed = if parameter["required"] == true { ", needed" } else { "" };
    let (name, place) = (line(&parameter["name"]), line(&parameter["in"]));
    format!("| `{name}` | {place}{needed} | {} |", line(&parameter["description"]))
}

fn success(status: &str, answer: &Value) -> String {
    let bodies: Vec<String> = content(answer).collect();
    let with = if bodies.is_empty() { String::new() } else { format!(": {}", bodies.join(", or ")) };
    let told = line(&answer["description"]);
    if told.is_empty() { format!("`{status}`{with}") } else { format!("`{status}` ({told}){with}") }
}

/// What is carried, in each of its forms.
fn content(carrier: &Value) -> impl Iterator<Item = String> {
    object(&carrier["content"]).map(|(form, content)| format!("{} as `{form}`", type_of(&content["schema"])))
}

fn type_section(name: &str, schema: &Value) -> String {
    let about = line(&schema["description"]);
    let about = if about.is_empty() { String::new() } else { format!("{about}\n\n") };
    let rows: Vec<String> =
        object(&schema["properties"]).map(|(name, field)| row(schema, name, field)).collect();
    if rows.is_empty() {
        return format!("\n### {name}\n\n{about}{}.\n", type_of(schema));
    }
    format!("\n### {name}\n\n{about}| field | type | meaning |\n| --- | --- | --- |\n{}\n", rows.join("\n"))
}

fn row(schema: &Value, name: &str, field: &Value) -> String {
    let needed = schema["required"].as_array().is_some_and(|needed| needed.iter().any(|field| field == name));
    let mark = if needed { "" } else { "?" };
    format!("| `{name}`{mark} | {} | {} |", type_of(field), line(&field["description"]))
}

fn type_of(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str().and_then(|name| name.rsplit('/').next()) {
        return format!("[{name}](#{})", name.to_lowercase());
    }
    if let Some(values) = schema["enum"].as_array() {
        let values: Vec<String> = values.iter().map(|value| format!("`{value}`")).collect();
        return values.join(" or ");
    }
    for choice in ["oneOf", "anyOf", "allOf"] {
        if let Some(kinds) = schema[choice].as_array() {
            let kinds: Vec<String> = kinds.iter().map(type_of).collect();
            return kinds.join(if choice == "allOf" { " with " } else { " or " });
        }
    }
    match &schema["type"] {
        Value::String(kind) if kind == "array" => format!("list of {}", type_of(&schema["items"])),
        Value::String(kind) => kind.clone(),
        Value::Array(kinds) => kinds.iter().map(line).collect::<Vec<_>>().join(" or "),
        _ => "any JSON".to_owned(),
    }
}

#[test]
fn the_reference_of_calls_is_what_the_server_describes() {
    crate::reference::compare("http.md", HEADING, &reference());
}
