//! From a type and its attributes to the `impl` blocks.
//!
//! Calls into the traits carry the span of the attribute's text, so that a field of a type that can be no key is
//! reported at the line that made it one.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::{DeriveInput, LitStr, Member, Type};

use crate::attributes::{Attributed, Attributes, Faults};
use crate::fields::Named;
use crate::{kind, period};

/// Longest name of a processor in bytes; the same bound as the store's.
const NAME_BYTES_MAX: usize = 128;

/// `impl Record`.
pub(crate) fn record(input: &DeriveInput) -> syn::Result<TokenStream> {
    let mut faults = Faults::default();
    let attributes = Attributes::read(Attributed::Record, input, &mut faults);
    let record = record_impl(input, &attributes, &mut faults);
    faults.into_result()?;
    Ok(record)
}

/// `impl Record` and `impl JobRecord`.
pub(crate) fn job(input: &DeriveInput) -> syn::Result<TokenStream> {
    let mut faults = Faults::default();
    let attributes = Attributes::read(Attributed::Job, input, &mut faults);
    let record = record_impl(input, &attributes, &mut faults);
    let output = output(&attributes, &mut faults);
    let processor = processor(&attributes, &mut faults);
    let timeout = length_of_time("timeout", quote!(TIMEOUT), &attributes, &mut faults);
    let keep = length_of_time("keep", quote!(KEEP), &attributes, &mut faults);
    faults.into_result()?;
    let owner = &input.ident;
    Ok(quote! {
        #record
        #[automatically_derived]
        impl ::laneway::JobRecord for #owner {
            type Output = #output;
            #processor
            #timeout
            #keep
        }
    })
}

fn record_impl(input: &DeriveInput, attributes: &Attributes, faults: &mut Faults) -> TokenStream {
    let owner = &input.ident;
    let kind = kind_of(attributes, faults);
    let Some(named) = Named::of(input, faults) else { return TokenStream::new() };
    let key = key(&named, attributes, faults);
    let field = |name: &'static str, faults: &mut Faults| -> Option<(LitStr, Member)> {
        let text = attributes.text(name)?;
        Some((text.clone(), faults.note(named.find(attributes, name, text))?))
    };
    let generation = field("generation", faults).map(|(text, member)| {
        let value = quote_spanned!(text.span()=> ::laneway::record::NumberField::number(&self.#member));
        quote! { fn generation(&self) -> ::core::option::Option<u64> { #value } }
    });
    let incarnation = field("incarnation", faults).map(|(text, member)| {
        let value = quote_spanned!(text.span()=> ::laneway::record::NumberField::number(&self.#member));
        quote! { fn incarnation(&self) -> u64 { #value.unwrap_or(0) } }
    });
    let deleted = field("deleted", faults).map(|(text, member)| {
        let value = quote_spanned!(text.span()=> let deleted: &bool = &self.#member;);
        quote! { fn deleted(&self) -> bool { #value *deleted } }
    });
    quote! {
        #[automatically_derived]
        impl ::laneway::Record for #owner {
            const KIND: &'static str = #kind;
            fn key(&self) -> ::core::option::Option<::std::borrow::Cow<'_, [u8]>> { #key }
            #generation
            #incarnation
            #deleted
        }
    }
}

fn kind_of(attributes: &Attributes, faults: &mut Faults) -> String {
    let Some(text) = attributes.text("kind") else {
        return kind::of_type(&syn::ext::IdentExt::unraw(attributes.owner()).to_string());
    };
    check_len("kind", text, kind::KIND_BYTES_MAX, attributes, faults);
    text.value()
}

fn key(named: &Named, attributes: &Attributes, faults: &mut Faults) -> TokenStream {
    let (owner, word) = (attributes.owner(), attributes.word());
    match (attributes.text("key"), attributes.keyless()) {
        (Some(text), None) => {
            let Some(member) = faults.note(named.find(attributes, "key", text)) else {
                return TokenStream::new();
            };
            quote_spanned!(text.span()=> ::laneway::record::KeyField::key(&self.#member))
        }
        (Some(text), Some(_)) => {
            faults.push(attributes.fault("key", text, "`keyless` beside it says that there is none"));
            TokenStream::new()
        }
        (None, Some(span)) => {
            if ["generation", "incarnation", "deleted"].iter().any(|name| attributes.text(name).is_some()) {
                let wrong = "`keyless` leaves nothing whose newest event could win; name a `key`";
                faults.push(syn::Error::new(span, format!("#[{word}(keyless)]: {wrong}")));
            }
            quote!(::core::option::Option::None)
        }
        (None, None) => {
            let wrong = format!(
                "`{owner}` needs #[{word}(key = \"…\")], the field whose events run in order, \
                 or #[{word}(keyless)] if no order is wanted"
            );
            faults.push(syn::Error::new(owner.span(), wrong));
            TokenStream::new()
        }
    }
}

fn output(attributes: &Attributes, faults: &mut Faults) -> Option<Type> {
    let Some(text) = attributes.text("output") else {
        let wrong = "needs #[job(output = \"…\")], the type of its result (\"()\" for none)";
        faults.push(syn::Error::new(attributes.owner().span(), format!("`{}` {wrong}", attributes.owner())));
        return None;
    };
    let parsed = text.parse().map_err(|_| attributes.fault("output", text, "this is no type"));
    faults.note(parsed)
}

fn processor(attributes: &Attributes, faults: &mut Faults) -> Option<TokenStream> {
    let text = attributes.text("processor")?;
    check_len("processor", text, NAME_BYTES_MAX, attributes, faults);
    Some(quote! {
        const PROCESSOR: ::core::option::Option<&'static str> = ::core::option::Option::Some(#text);
    })
}

fn length_of_time(
    name: &str,
    constant: TokenStream,
    attributes: &Attributes,
    faults: &mut Faults,
) -> Option<TokenStream> {
    let text = attributes.text(name)?;
    let parsed = period::parse(&text.value())
        .ok_or_else(|| attributes.fault(name, text, &format!("must be {}", period::FORM)));
    let length = faults.note(parsed)?;
    let length_us = u64::try_from(length.as_micros()).expect("it was made from microseconds in a u64");
    Some(quote! {
        const #constant: ::core::option::Option<::core::time::Duration> =
            ::core::option::Option::Some(::core::time::Duration::from_micros(#length_us));
    })
}

fn check_len(name: &str, text: &LitStr, max: usize, attributes: &Attributes, faults: &mut Faults) {
    let len = text.value().len();
    if len == 0 || len > max {
        faults.push(attributes.fault(name, text, &format!("has {len} bytes, must be 1 to {max}")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All messages of one expansion, in order; an expansion without fault must parse as items.
    #[track_caller]
    fn check(expand: fn(&DeriveInput) -> syn::Result<TokenStream>, source: &str, expected: &[&str]) {
        let input = syn::parse_str(source).expect("the test's own source is Rust");
        let messages: Vec<String> = match expand(&input) {
            Ok(_) => Vec::new(),
            Err(faults) => faults.into_iter().map(|fault| fault.to_string()).collect(),
        };
        assert_eq!(messages, expected);
    }

    #[track_caller]
    fn check_record(attribute: &str, expected: &[&str]) {
        check(record, &format!("{attribute} struct Payment {{ account: String, cents: i64 }}"), expected);
    }

    #[track_caller]
    fn check_job(attribute: &str, expected: &[&str]) {
        check(
            job,
            &format!("{attribute} struct MakeStatement {{ account: String, month: String }}"),
            expected,
        );
    }

    #[test]
    fn a_field_that_does_not_exist_is_named_with_the_nearest_one() {
        check_record(
            "#[record(key = \"acount\")]",
            &["#[record(key = \"acount\")]: `Payment` has no field `acount`; did you mean `account`?"],
        );
        check_record(
            "#[record(key = \"account\", generation = \"revision\")]",
            &[
                "#[record(generation = \"revision\")]: `Payment` has no field `revision`; its fields are `account`, `cents`",
            ],
        );
        check(
            record,
            "#[record(key = \"account\")] struct Tick;",
            &["#[record(key = \"account\")]: `Tick` has no field `account`; it has no fields at all"],
        );
        check(
            record,
            "#[record(key = \"2\")] struct Pair(String, i64);",
            &["#[record(key = \"2\")]: `Pair` has no field `2`; its fields are `0`, `1`"],
        );
    }

    #[test]
    fn a_record_without_a_key_must_say_so() {
        let wrong = "`Payment` needs #[record(key = \"…\")], the field whose events run in order, \
                     or #[record(keyless)] if no order is wanted";
        check_record("", &[wrong]);
        check_record("#[record(kind = \"paid\")]", &[wrong]);
        check_record("#[record(keyless)]", &[]);
        check_record(
            "#[record(keyless, key = \"account\")]",
            &["#[record(key = \"account\")]: `keyless` beside it says that there is none"],
        );
        check_record(
            "#[record(keyless, generation = \"cents\")]",
            &["#[record(keyless)]: `keyless` leaves nothing whose newest event could win; name a `key`"],
        );
    }

    #[test]
    fn unknown_repeated_and_misspelled_attributes_are_all_reported_at_once() {
        check_record(
            "#[record(keys = \"account\", kind = paid, timeout = \"5s\", key = \"account\", key = \"cents\", keyless())]",
            &[
                "#[record(…)] has no `keys`: did you mean `key`?",
                "`kind` in #[record(…)] is written `kind = \"…\"`",
                "#[record(…)] has no `timeout`: known are `key`, `keyless`, `kind`, `generation`, `incarnation`, `deleted`",
                "`key` is given twice in #[record(…)]",
                "`keyless` in #[record(…)] is written `keyless`",
            ],
        );
    }

    #[test]
    fn a_job_needs_an_output_that_is_a_type() {
        check_job("#[job(key = \"account\", output = \"Statement\")]", &[]);
        check_job("#[job(key = \"account\", output = \"Vec<(u32, Statement)>\")]", &[]);
        check_job(
            "#[job(key = \"account\")]",
            &["`MakeStatement` needs #[job(output = \"…\")], the type of its result (\"()\" for none)"],
        );
        check_job(
            "#[job(key = \"account\", output = \"State ment\")]",
            &["#[job(output = \"State ment\")]: this is no type"],
        );
    }

    #[test]
    fn lengths_and_names_are_checked_while_compiling() {
        check_job(
            "#[job(key = \"account\", output = \"()\", processor = \"\", timeout = \"30\", keep = \"1y\")]",
            &[
                "#[job(processor = \"\")]: has 0 bytes, must be 1 to 128",
                "#[job(timeout = \"30\")]: must be a number and a unit (us, ms, s, m, h, d, w), such as \"30s\" or \"1h30m\"",
                "#[job(keep = \"1y\")]: must be a number and a unit (us, ms, s, m, h, d, w), such as \"30s\" or \"1h30m\"",
            ],
        );
        check_record(
            "#[record(key = \"account\", kind = \"\")]",
            &["#[record(kind = \"\")]: has 0 bytes, must be 1 to 128"],
        );
    }

    #[test]
    fn types_that_can_be_no_record_say_why() {
        check(
            record,
            "#[record(key = \"order\")] enum Change { Paid { order: u64 } }",
            &["`Change`: only a struct can be derived; implement `laneway::Record` by hand for other types"],
        );
        check(
            record,
            "#[record(key = \"0\")] struct Wrapped<T>(T);",
            &["`Wrapped`: a record has one kind and owns what is in it, so it takes no parameters"],
        );
    }
}
