//! Lengths of time as people write them: `500ms`, `30s`, `1h30m`, `7d`. One notation for headers, HTTP and settings.

use std::time::Duration;

/// What a length of time must look like, for messages.
pub const FORM: &str = "a number and a unit (us, ms, s, m, h, d, w), such as \"30s\" or \"1h30m\"";

const SECOND_US: u64 = 1_000_000;

/// The length of time, if the text is one.
///
/// ```
/// use std::time::Duration;
/// use laneway_core::period;
/// assert_eq!(period::parse("1h30m"), Some(Duration::from_secs(5_400)));
/// assert_eq!(period::parse("5"), None);
/// ```
pub fn parse(text: &str) -> Option<Duration> {
    let mut total_us: u64 = 0;
    let mut rest = text;
    loop {
        let digits_len = rest.find(|letter: char| !letter.is_ascii_digit())?;
        let (digits, after) = rest.split_at(digits_len);
        let unit_len = after.find(|letter: char| letter.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at(unit_len);
        let unit_us: u64 = match unit {
            "us" => 1,
            "ms" => 1_000,
            "s" => SECOND_US,
            "m" => 60 * SECOND_US,
            "h" => 3_600 * SECOND_US,
            "d" => 24 * 3_600 * SECOND_US,
            "w" => 7 * 24 * 3_600 * SECOND_US,
            _ => return None,
        };
        total_us = digits.parse::<u64>().ok()?.checked_mul(unit_us)?.checked_add(total_us)?;
        if after.is_empty() {
            return Some(Duration::from_micros(total_us));
        }
        rest = after;
    }
}

/// A length of time as text, in the largest unit that fits evenly; whole microseconds.
///
/// ```
/// use std::time::Duration;
/// use laneway_core::period;
/// assert_eq!(period::text(Duration::from_secs(120)), "2m");
/// assert_eq!(period::text(Duration::from_millis(1_500)), "1500ms");
/// ```
pub fn text(length: Duration) -> String {
    const UNITS: [(&str, u64); 6] = [
        ("d", 24 * 3_600 * SECOND_US),
        ("h", 3_600 * SECOND_US),
        ("m", 60 * SECOND_US),
        ("s", SECOND_US),
        ("ms", 1_000),
        ("us", 1),
    ];
    let micros = u64::try_from(length.as_micros()).unwrap_or(u64::MAX);
    let fits = |unit: u64| micros > 0 && micros.is_multiple_of(unit);
    let (name, unit) = UNITS.iter().find(|(_, unit)| fits(*unit)).unwrap_or(&("s", SECOND_US));
    format!("{}{name}", micros / unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_come_back_as_they_were() {
        for length in ["250us", "300ms", "5s", "2m", "1h", "7d", "90s", "0s"] {
            assert_eq!(parse(length).map(text).as_deref(), Some(length));
        }
    }

    #[test]
    fn lengths_of_time_are_a_number_and_a_unit() {
        let check = |text, ms: Option<u64>| assert_eq!(parse(text), ms.map(Duration::from_millis), "{text}");
        check("2000us", Some(2));
        check("500ms", Some(500));
        check("30s", Some(30_000));
        check("1h30m", Some(5_400_000));
        check("7d", Some(604_800_000));
        for wrong in ["", "5", "s", "5 s", "5x", "-5s", "1.5s", "1h30", "99999999999999999999s", "ü"] {
            check(wrong, None);
        }
    }
}
