//! Times as people say them.

use laneway::Timestamp;

const UNITS: [(i64, &str); 4] = [(86_400, "d"), (3_600, "h"), (60, "m"), (1, "s")];

/// How far away a date is: `5s ago`, `in 3m`. A text that is no date is shown as it is.
pub(super) fn relative(date: &str, now: Timestamp) -> String {
    let Ok(then) = date.parse::<jiff::Timestamp>() else { return date.to_owned() };
    let away_us = then.as_microsecond() - i64::try_from(now.0).unwrap_or(i64::MAX);
    let size = away_us.abs() / 1_000_000;
    if size == 0 {
        return "now".to_owned();
    }
    let (unit, name) = UNITS.into_iter().find(|(unit, _)| size >= *unit).unwrap_or((1, "s"));
    let count = size / unit;
    if away_us > 0 { format!("in {count}{name}") } else { format!("{count}{name} ago") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_said_in_its_largest_unit() {
        let now: jiff::Timestamp = "2026-11-17T12:00:00Z".parse().unwrap();
        let now = Timestamp(u64::try_from(now.as_microsecond()).unwrap());
        for (date, said) in [
            ("2026-11-17T12:00:00.400Z", "now"),
            ("2026-11-17T11:59:55Z", "5s ago"),
            ("2026-11-17T12:01:59Z", "in 1m"),
            ("2026-11-17T09:30:00Z", "2h ago"),
            ("2026-11-10T12:00:00Z", "7d ago"),
            ("tomorrow", "tomorrow"),
        ] {
            assert_eq!(relative(date, now), said, "{date}");
        }
    }
}
