//! The rows of a run and the two ways to print them. Decides nothing about what is measured.

use serde_json::{Value, json};

/// One line of the table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) rate: f64,
    pub(crate) unit: &'static str,
    /// What it is compared with, in the same minute.
    pub(crate) baseline: Option<&'static str>,
    pub(crate) baseline_rate: Option<f64>,
    /// What else it is compared with.
    pub(crate) beside: Vec<Beside>,
    /// The rate that must be reached.
    pub(crate) must: Option<f64>,
    pub(crate) better: Better,
    pub(crate) cpu_s_per_million: Option<f64>,
    pub(crate) baseline_cpu_s_per_million: Option<f64>,
    pub(crate) durability: &'static str,
    pub(crate) syncs_per_second: Option<f64>,
    pub(crate) baseline_syncs_per_second: Option<f64>,
    pub(crate) bytes_per_event: Option<f64>,
    pub(crate) checkpoints: Option<u64>,
    pub(crate) p50_ms: Option<f64>,
    pub(crate) p99_ms: Option<f64>,
    pub(crate) rss_mb: Option<f64>,
    pub(crate) note: String,
}

/// A further baseline of the same minute.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Beside {
    pub(crate) name: &'static str,
    pub(crate) rate: f64,
    pub(crate) cpu_s_per_million: f64,
}

/// Which way of the rate is the good one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Better {
    #[default]
    Higher,
    Lower,
}

impl Row {
    /// The rate in units of the baseline's.
    fn ratio(&self) -> Option<f64> {
        self.baseline_rate.map(|baseline| self.rate / baseline)
    }

    /// Whether the rate is what it must be.
    pub(crate) fn reached(&self) -> Option<bool> {
        self.must.map(|must| match self.better {
            Better::Higher => self.rate >= must,
            Better::Lower => self.rate <= must,
        })
    }

    fn json(&self) -> Value {
        let round = |value: Option<f64>| value.map(|value| (value * 1e3).round() / 1e3);
        let beside = |beside: &Beside| {
            json!({
                "name": beside.name,
                "rate": round(Some(beside.rate)),
                "ratio": round(Some(self.rate / beside.rate)),
                "cpu_s_per_million": round(Some(beside.cpu_s_per_million)),
            })
        };
        json!({
            "name": self.name,
            "rate": round(Some(self.rate)),
            "unit": self.unit,
            "baseline": self.baseline,
            "baseline_rate": round(self.baseline_rate),
            "ratio": round(self.ratio()),
            "beside": self.beside.iter().map(beside).collect::<Vec<_>>(),
            "must": round(self.must),
            "must_reached": self.reached(),
            "better": if self.better == Better::Higher { "higher" } else { "lower" },
            "cpu_s_per_million": round(self.cpu_s_per_million),
            "baseline_cpu_s_per_million": round(self.baseline_cpu_s_per_million),
            "durability": self.durability,
            "syncs_per_second": round(self.syncs_per_second),
            "baseline_syncs_per_second": round(self.baseline_syncs_per_second),
            "bytes_per_event": round(self.bytes_per_event),
            "checkpoints": self.checkpoints,
            "p50_ms": round(self.p50_ms),
            "p99_ms": round(self.p99_ms),
            "rss_mb": round(self.rss_mb),
            "note": self.note,
        })
    }

    fn cells(&self) -> Vec<String> {
        vec![
            self.name.clone(),
            number(Some(self.rate)),
            self.unit.to_owned(),
            self.baseline.unwrap_or("-").to_owned(),
            number(self.baseline_rate),
            self.ratio().map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}")),
            self.must_cell(),
            number(self.cpu_s_per_million),
            number(self.syncs_per_second),
            number(self.baseline_syncs_per_second),
            number(self.p50_ms),
            number(self.p99_ms),
            self.durability.to_owned(),
        ]
    }

    fn must_cell(&self) -> String {
        match self.reached() {
            None => "-".to_owned(),
            Some(true) => format!("{} yes", number(self.must)),
            Some(false) => format!("{} NO", number(self.must)),
        }
    }

    /// What does not fit into the table.
    fn remarks(&self) -> String {
        let lower = if self.better == Better::Lower { "lower is better" } else { "" };
        let beside = self.beside.iter().map(|beside| {
            let ratio = self.rate / beside.rate;
            let (rate, cpu) = (number(Some(beside.rate)), number(Some(beside.cpu_s_per_million)));
            format!("{ratio:.2} of {} ({rate}/s, {cpu} CPU s per million)", beside.name)
        });
        let parts = std::iter::once(lower.to_owned()).chain(beside).chain([self.note.clone()]);
        parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ")
    }
}

const HEADS: [&str; 13] = [
    "row",
    "rate",
    "unit",
    "baseline",
    "base rate",
    "ratio",
    "must",
    "CPU s/M",
    "syncs/s",
    "base syncs/s",
    "p50 ms",
    "p99 ms",
    "durability",
];
/// Columns of words; the others are numbers and end at the right.
const WORDS: [usize; 4] = [0, 2, 3, 12];

/// The run as one JSON object.
pub(crate) fn json(rows: &[Row], about: &[(&str, String)]) -> String {
    let about: serde_json::Map<String, Value> =
        about.iter().map(|(name, text)| ((*name).to_owned(), json!(text))).collect();
    let rows: Vec<Value> = rows.iter().map(Row::json).collect();
    format!("{}\n", json!({ "rows": rows, "about": about }))
}

/// The run as a table for a terminal, with what does not fit into it below.
pub(crate) fn table(rows: &[Row], about: &[(&str, String)]) -> String {
    let lines: Vec<Vec<String>> =
        std::iter::once(HEADS.map(str::to_owned).to_vec()).chain(rows.iter().map(Row::cells)).collect();
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..HEADS.len()).map(width).collect();
    let mut text = String::new();
    for (name, value) in about {
        text.push_str(&format!("{name}: {value}\n"));
    }
    text.push('\n');
    for (at, line) in lines.iter().enumerate() {
        text.push_str(&aligned(line, &widths));
        if at == 0 {
            text.push_str(&"-".repeat(widths.iter().sum::<usize>() + 2 * (widths.len() - 1)));
            text.push('\n');
        }
    }
    text.push('\n');
    for (row, remarks) in rows.iter().map(|row| (row, row.remarks())).filter(|(_, text)| !text.is_empty()) {
        text.push_str(&format!("{}: {remarks}\n", row.name));
    }
    text
}

fn aligned(cells: &[String], widths: &[usize]) -> String {
    let padded = cells.iter().zip(widths).enumerate().map(|(column, (cell, &width))| {
        if WORDS.contains(&column) { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
    });
    let line = padded.collect::<Vec<_>>().join("  ");
    format!("{}\n", line.trim_end())
}

/// A figure with as many digits as it deserves; thousands are grouped.
fn number(value: Option<f64>) -> String {
    match value {
        None => "-".to_owned(),
        Some(value) if !value.is_finite() => "-".to_owned(),
        Some(value) if value.abs() < 10.0 => format!("{value:.2}"),
        Some(value) if value.abs() < 100.0 => format!("{value:.1}"),
        Some(value) => grouped(&format!("{value:.0}")),
    }
}

fn grouped(digits: &str) -> String {
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        let left = digits.len() - at;
        if at > 0 && left.is_multiple_of(3) && !text.ends_with('-') {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> Row {
        Row {
            name: "append".to_owned(),
            rate: 200_000.0,
            unit: "events/s",
            baseline: Some("raw log"),
            baseline_rate: Some(250_000.0),
            durability: "synced",
            note: "calm".to_owned(),
            ..Row::default()
        }
    }

    #[test]
    fn numbers_are_grouped_and_rounded() {
        assert_eq!(number(Some(1_234_567.8)), "1,234,568");
        assert_eq!(
            (number(Some(123.4)), number(Some(12.34)), number(Some(1.234))),
            ("123".into(), "12.3".into(), "1.23".into())
        );
        assert_eq!((number(None), number(Some(f64::NAN))), ("-".into(), "-".into()));
    }

    #[test]
    fn json_has_the_ratio_and_says_null_for_what_is_not_measured() {
        let value: Value = serde_json::from_str(&json(&[row()], &[("mode", "quick".to_owned())])).unwrap();
        let first = &value["rows"][0];
        assert_eq!((&first["ratio"], &first["syncs_per_second"]), (&json!(0.8), &Value::Null));
        assert_eq!(value["about"]["mode"], "quick");
    }

    #[test]
    fn what_must_be_reached_and_what_else_it_is_beside_are_told_in_both_forms() {
        let beside = vec![Beside { name: "bare", rate: 400_000.0, cpu_s_per_million: 3.0 }];
        let missed = Row { must: Some(200_001.0), beside, ..row() };
        let value: Value = serde_json::from_str(&json(std::slice::from_ref(&missed), &[])).unwrap();
        let first = &value["rows"][0];
        assert_eq!((&first["must"], &first["must_reached"]), (&json!(200_001.0), &json!(false)));
        assert_eq!(first["beside"][0]["ratio"], 0.5);
        let text = table(&[missed], &[]);
        assert!(text.contains("200,001 NO"), "{text}");
        assert!(text.contains("append: 0.50 of bare (400,000/s, 3.00 CPU s per million); calm"), "{text}");
        assert!(table(&[Row { must: Some(200_000.0), ..row() }], &[]).contains("200,000 yes"));
        let slower = Row { must: Some(200_000.0), better: Better::Lower, ..row() };
        assert!(Row { rate: 200_001.0, ..slower }.reached() == Some(false));
    }

    #[test]
    fn the_columns_of_the_table_are_aligned() {
        let long = Row { name: "a much longer name".to_owned(), ..row() };
        let text = table(&[row(), long], &[]);
        let lines: Vec<&str> = text.lines().filter(|line| line.contains("raw log")).collect();
        assert_eq!(lines[0].find("raw log"), lines[1].find("raw log"));
        assert!(text.contains("200,000") && text.contains("0.80") && text.contains("append: calm"));
    }
}
