//! Which known name a mistyped one was probably meant to be. Only for messages: nothing is ever guessed.

/// The known name that differs in the fewest letters, if that is few enough to be a slip.
pub(crate) fn nearest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let by_distance = known.into_iter().map(|name| (distance(given, name), name));
    let (distance, name) = by_distance.min_by_key(|(distance, _)| *distance)?;
    let len = given.chars().count();
    let is_slip = distance < len && distance <= 1 + len / 4;
    is_slip.then_some(name)
}

/// How many letters must be added, removed or replaced.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (line, left) in left.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = line + 1;
        for (column, &right) in right.iter().enumerate() {
            let replaced = diagonal + usize::from(left != right);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_its_name_and_another_word_finds_none() {
        let known = ["account", "cents", "key"];
        assert_eq!(nearest("acount", known), Some("account"));
        assert_eq!(nearest("keys", known), Some("key"));
        assert_eq!(nearest("customer", known), None);
        assert_eq!(nearest("2", ["0", "1"]), None);
        assert_eq!(nearest("anything", []), None);
    }
}
