//! The handler of the rows with kept processes: answers every line with `done` and a result. It is as lean as a program can
//! be, so that what is measured is the way to it and back.

use std::io::{BufRead, Write};

use crate::Failure;
use crate::workload::RESULT_BYTES;

/// Answers lines until there are none.
pub(crate) fn child() -> Result<(), Failure> {
    let (mut input, mut output) = (std::io::stdin().lock(), std::io::stdout().lock());
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line)? > 0 {
        let mut said = answer(claim_of(&line)?);
        said.push('\n');
        output.write_all(said.as_bytes())?;
        output.flush()?;
        line.clear();
    }
    Ok(())
}

/// What is answered to a claim of this name.
pub(crate) fn answer(claim: &str) -> String {
    // The quotes are part of the result.
    let result = "r".repeat(RESULT_BYTES - 2);
    format!(r#"{{"claim":"{claim}","outcome":"done","result":"{result}"}}"#)
}

/// The name of a claim is the first thing that is said of it.
fn claim_of(line: &[u8]) -> Result<&str, Failure> {
    let name = line.strip_prefix(br#"{"claim":""#).and_then(|rest| rest.split(|byte| *byte == b'"').next());
    let name = name.ok_or_else(|| format!("no claim: {}", String::from_utf8_lossy(line)))?;
    Ok(std::str::from_utf8(name)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_answered_under_its_name() {
        assert_eq!(claim_of(br#"{"claim":"17","stream":"x"}"#).unwrap(), "17");
        assert!(claim_of(b"{}").is_err());
        let said: serde_json::Value = serde_json::from_str(&answer("17")).unwrap();
        assert_eq!((&said["claim"], &said["outcome"]), (&"17".into(), &"done".into()));
        assert_eq!(said["result"].to_string().len(), RESULT_BYTES);
    }
}
