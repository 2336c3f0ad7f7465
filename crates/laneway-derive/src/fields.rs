//! The fields that attributes name.

use syn::ext::IdentExt;
use syn::{Data, DeriveInput, Fields, Index, LitStr, Member};

use crate::attributes::{Attributes, Faults, listed};
use crate::nearest::nearest;

/// The fields of one struct, by the names that attributes use.
pub(crate) struct Named(Vec<(String, Member)>);

impl Named {
    /// The fields of a type; a type that can be no record goes to `faults` and has none.
    pub(crate) fn of(input: &DeriveInput, faults: &mut Faults) -> Option<Self> {
        if let Some(parameter) = input.generics.params.first() {
            let wrong = "a record has one kind and owns what is in it, so it takes no parameters";
            faults.push(syn::Error::new_spanned(parameter, format!("`{}`: {wrong}", input.ident)));
        }
        let Data::Struct(structure) = &input.data else {
            let wrong = "only a struct can be derived; implement `laneway::Record` by hand for other types";
            faults.push(syn::Error::new(input.ident.span(), format!("`{}`: {wrong}", input.ident)));
            return None;
        };
        Some(Self(match &structure.fields {
            Fields::Named(fields) => {
                fields.named.iter().filter_map(|field| field.ident.as_ref()).map(by_name).collect()
            }
            Fields::Unnamed(fields) => (0..fields.unnamed.len()).map(by_number).collect(),
            Fields::Unit => Vec::new(),
        }))
    }

    /// The field that the text under `option` names.
    pub(crate) fn find(&self, attributes: &Attributes, option: &str, text: &LitStr) -> syn::Result<Member> {
        let wanted = text.value();
        if let Some((_, member)) = self.0.iter().find(|(name, _)| *name == wanted) {
            return Ok(member.clone());
        }
        let names = || self.0.iter().map(|(name, _)| name.as_str());
        let hint = match nearest(&wanted, names()) {
            Some(near) => format!("did you mean `{near}`?"),
            None if self.0.is_empty() => "it has no fields at all".to_owned(),
            None => format!("its fields are {}", listed(names())),
        };
        let wrong = format!("`{}` has no field `{wanted}`; {hint}", attributes.owner());
        Err(attributes.fault(option, text, &wrong))
    }
}

fn by_name(field: &syn::Ident) -> (String, Member) {
    (field.unraw().to_string(), Member::Named(field.clone()))
}

fn by_number(number: usize) -> (String, Member) {
    (number.to_string(), Member::Unnamed(Index::from(number)))
}
