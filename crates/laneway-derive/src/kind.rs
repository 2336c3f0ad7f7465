//! The type of an event when its record does not name one: the name of the Rust type, in small letters with hyphens.
//!
//! It is stored with every event, so the rule never changes.

/// Longest type in bytes; the same bound as the store's.
pub(crate) const KIND_BYTES_MAX: usize = 128;

/// `OrderPaid` becomes `order-paid`, `HTTPRequest` becomes `http-request`.
pub(crate) fn of_type(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    let mut kind = String::new();
    for (index, &letter) in letters.iter().enumerate() {
        if letter == '_' {
            push_hyphen(&mut kind);
            continue;
        }
        let after_small = index > 0 && !letters[index - 1].is_uppercase();
        let before_small = letters.get(index + 1).is_some_and(|next| next.is_lowercase());
        if letter.is_uppercase() && (after_small || before_small) {
            push_hyphen(&mut kind);
        }
        kind.extend(letter.to_lowercase());
    }
    kind
}

fn push_hyphen(kind: &mut String) {
    if !kind.is_empty() && !kind.ends_with('-') {
        kind.push('-');
    }
}

#[cfg(test)]
mod tests {
    use super::of_type;

    #[test]
    fn words_of_a_type_name_are_joined_by_hyphens() {
        let check = |name, kind| assert_eq!(of_type(name), kind);
        check("Payment", "payment");
        check("OrderPaid", "order-paid");
        check("HTTPRequest", "http-request");
        check("PaidByHTTP", "paid-by-http");
        check("Order2Paid", "order2-paid");
        check("Order_Paid", "order-paid");
        check("Überweisung", "überweisung");
    }
}
