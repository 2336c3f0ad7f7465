//! What stands in `#[record(…)]` or `#[job(…)]`, read without looking at the fields.
//!
//! Every fault is kept and reported together with the others, so that one build shows them all.

use proc_macro2::Span;
use syn::meta::ParseNestedMeta;
use syn::{Attribute, DeriveInput, Expr, ExprLit, Ident, Lit, LitStr, Token};

use crate::nearest::nearest;

/// The word for "no key, no order".
const KEYLESS: &str = "keyless";
const RECORD_NAMES: [&str; 6] = ["key", KEYLESS, "kind", "generation", "incarnation", "deleted"];
const JOB_NAMES: [&str; 4] = ["output", "processor", "timeout", "keep"];

/// Which of the two macros is at work.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attributed {
    Record,
    Job,
}

impl Attributed {
    /// The name of its attribute.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Record => "record",
            Self::Job => "job",
        }
    }

    fn names(self) -> impl Iterator<Item = &'static str> {
        let job_names: &[&str] = if self == Self::Job { &JOB_NAMES } else { &[] };
        RECORD_NAMES.into_iter().chain(job_names.iter().copied())
    }
}

/// Faults found so far.
#[derive(Default)]
pub(crate) struct Faults(Option<syn::Error>);

impl Faults {
    pub(crate) fn push(&mut self, fault: syn::Error) {
        match &mut self.0 {
            Some(first) => first.combine(fault),
            None => self.0 = Some(fault),
        }
    }

    /// Keeps the fault, if it is one.
    pub(crate) fn note<T>(&mut self, result: syn::Result<T>) -> Option<T> {
        result.map_err(|fault| self.push(fault)).ok()
    }

    pub(crate) fn into_result(self) -> syn::Result<()> {
        self.0.map_or(Ok(()), Err)
    }
}

/// The attributes of one type, by name.
pub(crate) struct Attributes {
    of: Attributed,
    owner: Ident,
    given: Vec<(Ident, Option<LitStr>)>,
}

impl Attributes {
    /// Reads the attributes of a type; what is wrong with them goes to `faults`.
    pub(crate) fn read(of: Attributed, input: &DeriveInput, faults: &mut Faults) -> Self {
        let mut found = Self { of, owner: input.ident.clone(), given: Vec::new() };
        for attribute in input.attrs.iter().filter(|attribute| attribute.path().is_ident(of.word())) {
            let read = found.read_one(attribute, faults);
            faults.note(read);
        }
        found
    }

    fn read_one(&mut self, attribute: &Attribute, faults: &mut Faults) -> syn::Result<()> {
        attribute.parse_nested_meta(|meta| {
            let name = meta.path.require_ident()?.clone();
            let value = text_of(&meta)?;
            let checked = self.check(&name, &value);
            if faults.note(checked).is_some() {
                let text = if let Value::Text(text) = value { Some(text) } else { None };
                self.given.push((name, text));
            }
            Ok(())
        })
    }

    fn check(&self, name: &Ident, value: &Value) -> syn::Result<()> {
        let (word, text) = (self.of.word(), name.to_string());
        if !self.of.names().any(|known| known == text) {
            let hint = match nearest(&text, self.of.names()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("known are {}", listed(self.of.names())),
            };
            return Err(syn::Error::new(name.span(), format!("#[{word}(…)] has no `{text}`: {hint}")));
        }
        if self.given.iter().any(|(earlier, _)| *earlier == text) {
            return Err(syn::Error::new(name.span(), format!("`{text}` is given twice in #[{word}(…)]")));
        }
        let is_right = matches!((text == KEYLESS, value), (true, Value::None) | (false, Value::Text(_)));
        let form = if text == KEYLESS { KEYLESS.to_owned() } else { format!("{text} = \"…\"") };
        let message = || format!("`{text}` in #[{word}(…)] is written `{form}`");
        if is_right { Ok(()) } else { Err(syn::Error::new(value.span().unwrap_or(name.span()), message())) }
    }

    /// The attribute's name, for messages.
    pub(crate) fn word(&self) -> &'static str {
        self.of.word()
    }

    /// The type they stand on.
    pub(crate) fn owner(&self) -> &Ident {
        &self.owner
    }

    /// The text under a name.
    pub(crate) fn text(&self, name: &str) -> Option<&LitStr> {
        self.given.iter().find(|(given, _)| given == name).and_then(|(_, text)| text.as_ref())
    }

    /// Where `keyless` stands, if it does.
    pub(crate) fn keyless(&self) -> Option<Span> {
        self.given.iter().find(|(given, _)| given == KEYLESS).map(|(given, _)| given.span())
    }

    /// A fault in the text under a name: names the attribute, quotes the text, says what is wrong.
    pub(crate) fn fault(&self, name: &str, text: &LitStr, wrong: &str) -> syn::Error {
        let word = self.word();
        syn::Error::new(text.span(), format!("#[{word}({name} = {:?})]: {wrong}", text.value()))
    }
}

/// What stands after a name.
enum Value {
    None,
    Text(LitStr),
    Other(Span),
}

impl Value {
    fn span(&self) -> Option<Span> {
        match self {
            Self::None => None,
            Self::Text(text) => Some(text.span()),
            Self::Other(span) => Some(*span),
        }
    }
}

/// Reads over whatever stands after the name, so that the names behind it are still looked at.
fn text_of(meta: &ParseNestedMeta<'_>) -> syn::Result<Value> {
    if meta.input.peek(syn::token::Paren) {
        let content;
        let parentheses = syn::parenthesized!(content in meta.input);
        content.parse::<proc_macro2::TokenStream>()?;
        return Ok(Value::Other(parentheses.span.join()));
    }
    if !meta.input.peek(Token![=]) {
        return Ok(Value::None);
    }
    let value = meta.value()?;
    let start = value.span();
    Ok(match value.parse()? {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Value::Text(text),
        _ => Value::Other(start),
    })
}

/// Names in backticks, with commas.
pub(crate) fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let quoted: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}
