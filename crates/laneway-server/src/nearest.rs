//! The nearest valid name to one that is not known.

/// Edits beyond which two names are not near.
const EDITS_MAX: usize = 3;

/// The known name that the fewest edits away from this one, if it is near at all.
pub(crate) fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let measured = known.iter().map(|&candidate| (edits(name, candidate), candidate));
    let (distance, candidate) = measured.min_by_key(|(distance, _)| *distance)?;
    (distance <= EDITS_MAX && distance < candidate.len()).then_some(candidate)
}

/// Letters to insert, remove or change to get from one to the other.
fn edits(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (line, letter) in one.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = line + 1;
        for (column, candidate) in other.iter().enumerate() {
            let change = diagonal + usize::from(letter != *candidate);
            diagonal = row[column + 1];
            row[column + 1] = change.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_found_and_a_far_one_is_not() {
        let known = ["key", "key_b64", "type", "data", "dedup_id"];
        assert_eq!(nearest("kye", &known), Some("key"));
        assert_eq!(nearest("dedupid", &known), Some("dedup_id"));
        assert_eq!(nearest("something", &known), None);
    }
}
