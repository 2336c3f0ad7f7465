//! Cron expressions on a clock that is never changed: croner's parser and search, with refusals a user can act on.
//!
//! Knows no zone: what a change of clocks does to an expression is decided in `cron.rs`.

use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use jiff::civil::{self, DateTime};
use laneway_core::Refusal;

/// Longest expression in bytes: every minute of an hour listed one by one fits.
const EXPRESSION_BYTES_MAX: usize = 512;

const FORM: &str = "5 fields (minute hour day month weekday), 6 with seconds first, or @hourly, @daily, @weekly, @monthly, @yearly";
const NONE: &[&str] = &[];
const MONTHS: &[&str] = &["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const WEEKDAYS: &[&str] = &["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

/// The fields in order.
const FIELDS: [Field; 6] = [
    Field {
        name: "second of cron",
        limit: "0 to 59, *, a list (0,30), a range (0-9) or a step (*/10)",
        words: NONE,
    },
    Field {
        name: "minute of cron",
        limit: "0 to 59, *, a list (0,30), a range (0-9) or a step (*/10)",
        words: NONE,
    },
    Field {
        name: "hour of cron",
        limit: "0 to 23, *, a list (6,18), a range (8-17) or a step (*/2)",
        words: NONE,
    },
    Field {
        name: "day of cron",
        limit: "1 to 31, *, a list, a range, a step, L (last day), 15W (weekday nearest the 15th) or LW",
        words: &["L", "W", "LW"],
    },
    Field {
        name: "month of cron",
        limit: "1 to 12, JAN to DEC, *, a list, a range (APR-SEP) or a step (*/3)",
        words: MONTHS,
    },
    Field {
        name: "weekday of cron",
        limit: "0 to 7 (0 and 7 are Sunday), SUN to SAT, *, a list, a range (MON-FRI), MON#2 (second Monday), 5L \
                (last Friday), or + first if the day must match too",
        words: WEEKDAYS,
    },
];

struct Field {
    name: &'static str,
    limit: &'static str,
    /// What its letters may spell.
    words: &'static [&'static str],
}

/// A checked expression that fires some day.
#[derive(Clone, Debug)]
pub(super) struct Pattern(Cron);

impl Pattern {
    /// Checks an expression.
    pub(super) fn parse(expression: &str) -> Result<Self, Refusal> {
        Refusal::check_max("cron bytes", expression.len(), EXPRESSION_BYTES_MAX)?;
        let parsed = parser().parse(expression);
        for (place, text) in fields(expression).into_iter().enumerate() {
            let field = &FIELDS[place];
            if !has_known_words(field, text) || (parsed.is_err() && !is_valid_alone(place, text)) {
                return Err(Refusal::new(field.name, format!("{text:?}"), field.limit));
            }
        }
        let pattern = Self(parsed.map_err(|_| Refusal::new("cron", format!("{expression:?}"), FORM))?);
        if pattern.first_from(civil::date(1970, 1, 1).at(0, 0, 0, 0)).is_none() {
            let limit = "an expression with a date that exists";
            return Err(Refusal::new("cron", format!("{expression:?}"), limit));
        }
        Ok(pattern)
    }

    /// The first match at or after a time; none if the calendar ends before.
    pub(super) fn first_from(&self, wall: DateTime) -> Option<DateTime> {
        self.0.find_next_occurrence(&wall, true).ok()
    }

    /// The last match at or before a time; none if the calendar begins after.
    pub(super) fn last_to(&self, wall: DateTime) -> Option<DateTime> {
        self.0.find_previous_occurrence(&wall, true).ok()
    }

    /// Whether the expression names the hour of this time.
    pub(super) fn names_hour_of(&self, wall: DateTime) -> bool {
        u32::try_from(wall.hour()).is_ok_and(|hour| self.0.pattern.hour_match(hour).unwrap_or(false))
    }
}

/// A year would end the schedule some day without a word, so there is no field for it.
fn parser() -> CronParser {
    CronParser::builder().seconds(Seconds::Optional).year(Year::Disallowed).build()
}

/// The six fields, the seconds filled in; none if it has another form.
fn fields(expression: &str) -> Vec<&str> {
    let mut fields: Vec<&str> = expression.split_whitespace().collect();
    if fields.len() == FIELDS.len() - 1 {
        fields.insert(0, "0");
    }
    if fields.len() == FIELDS.len() { fields } else { Vec::new() }
}

/// The parser does not say which field it stumbled over, but alone among stars each field answers for itself.
fn is_valid_alone(place: usize, text: &str) -> bool {
    let mut alone = ["*"; FIELDS.len()];
    alone[place] = text;
    parser().parse(&alone.join(" ")).is_ok()
}

/// The parser replaces the names of months and weekdays wherever they stand, so that `MONTUE` is minute 12 to it.
fn has_known_words(field: &Field, text: &str) -> bool {
    let words = text.split(|letter: char| !letter.is_alphabetic()).filter(|word| !word.is_empty());
    words.map(str::to_uppercase).all(|word| is_known(field, &word))
}

/// Whether a field may contain a word; the last Friday is written 5L, FRIL or FRI#L.
fn is_known(field: &Field, word: &str) -> bool {
    let day = word.strip_suffix('L').filter(|_| field.words == WEEKDAYS);
    field.words.contains(&word) || day.is_some_and(|day| day.is_empty() || WEEKDAYS.contains(&day))
}
