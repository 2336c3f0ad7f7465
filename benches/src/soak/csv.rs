//! The samples as comma-separated values.

use super::samples::{Sample, Shares};

const HEADS: &str = "minute,appends_per_second,append_p50_ms,append_p99_ms,append_p999_ms,run_p50_ms,run_p99_ms,run_p999_ms,\
                     waiting,resident_mib,server_mib,disk_mib";

pub(super) fn csv(samples: &[Sample]) -> String {
    let lines = samples.iter().map(line);
    std::iter::once(HEADS.to_owned()).chain(lines).map(|line| line + "\n").collect()
}

fn line(sample: &Sample) -> String {
    let Sample { minute, appends_per_second, append, run, waiting, resident_mib, server_mib, disk_mib } =
        sample;
    let shares = |Shares { p50, p99, p999 }: &Shares| format!("{p50:.3},{p99:.3},{p999:.3}");
    format!(
        "{minute:.2},{appends_per_second:.0},{},{},{waiting:.0},{resident_mib:.1},{server_mib:.1},{disk_mib:.1}",
        shares(append),
        shares(run)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_has_as_many_values_as_heads() {
        let run = Shares { p50: 0.5, p99: 1.25, p999: 2.0 };
        let text = csv(&[Sample { minute: 1.0, run, disk_mib: 17.25, ..Sample::default() }]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[0].split(',').count(), lines[1].split(',').count());
        assert!(lines[1].ends_with("0.500,1.250,2.000,0,0.0,0.0,17.2"), "{}", lines[1]);
    }
}
