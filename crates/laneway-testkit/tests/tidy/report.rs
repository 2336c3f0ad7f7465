//! What a rule reports: where, what is wrong, and what to do about it.
//!
//! Holds no rule.

use std::fmt;

/// Whether a finding makes the test fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weight {
    /// Printed, does not fail.
    Warning,
    /// Fails the test.
    Fault,
}

/// One broken rule at one place.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    pub(crate) path: String,
    /// From 1; 1 also when the whole file is meant.
    pub(crate) line: usize,
    pub(crate) weight: Weight,
    pub(crate) message: String,
    pub(crate) remedy: String,
}

impl Finding {
    pub(crate) fn fault(
        path: &str,
        line: usize,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            path: path.into(),
            line,
            weight: Weight::Fault,
            message: message.into(),
            remedy: remedy.into(),
        }
    }

    pub(crate) fn warning(
        path: &str,
        line: usize,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { weight: Weight::Warning, ..Self::fault(path, line, message, remedy) }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}: {}\n    remedy: {}", self.path, self.line, self.message, self.remedy)
    }
}

/// Findings as `line: message`, for the tests of the rules.
pub(crate) fn lines(findings: &[Finding]) -> Vec<String> {
    findings.iter().map(|finding| format!("{}:{}: {}", finding.path, finding.line, finding.message)).collect()
}

/// Asserts that there is one finding, at this place and with this text in it.
#[track_caller]
pub(crate) fn assert_only(findings: &[Finding], place: &str, part: &str) {
    let lines = lines(findings);
    assert_eq!(lines.len(), 1, "expected one finding at {place}, got {lines:#?}");
    assert!(lines[0].starts_with(&format!("{place}: ")), "expected a finding at {place}, got {}", lines[0]);
    assert!(lines[0].contains(part), "expected {part:?} in {}", lines[0]);
    assert!(!findings[0].remedy.is_empty(), "the finding at {place} has no remedy");
}

#[test]
fn a_finding_names_file_line_and_remedy() {
    let finding = Finding::fault("a/b.rs", 7, "is wrong", "make it right");
    assert_eq!(finding.to_string(), "a/b.rs:7: is wrong\n    remedy: make it right");
}
