//! Lengths of time as people write them: a number and a unit.

use std::time::Duration;

/// What a length must be, for messages.
pub(crate) const FORM: &str = "a number and a unit: 300ms, 5s, 2m, 1h or 7d";

const UNITS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// A length by its text.
pub(crate) fn parse(text: &str) -> Option<Duration> {
    let digits = text.len() - text.trim_start_matches(|letter: char| letter.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let (_, unit) = UNITS.iter().find(|(name, _)| *name == unit)?;
    Some(Duration::from_millis(number.parse::<u64>().ok()?.checked_mul(*unit)?))
}

/// A length as text, in the largest unit that fits evenly.
pub(crate) fn text(length: Duration) -> String {
    let millis = u64::try_from(length.as_millis()).unwrap_or(u64::MAX);
    let fits = |unit: u64| millis > 0 && millis.is_multiple_of(unit);
    let (name, unit) = UNITS.iter().find(|(_, unit)| fits(*unit)).unwrap_or(&("s", 1_000));
    format!("{}{name}", millis / unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_come_back_as_they_were() {
        for length in ["300ms", "5s", "2m", "1h", "7d", "90s", "0s"] {
            assert_eq!(text(parse(length).unwrap()), length);
        }
        for wrong in ["", "5", "s", "5 s", "-5s", "1.5s", "5y", "99999999999999999999d"] {
            assert_eq!(parse(wrong), None, "{wrong:?}");
        }
    }
}
