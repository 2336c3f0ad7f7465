//! The samples as a plot: four panels below each other, written as SVG by hand.

use std::fmt::Write;

use super::samples::Sample;

const WIDTH: f64 = 900.0;
const PANEL_HEIGHT: f64 = 190.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 150.0;
const TOP: f64 = 30.0;
/// Above and below the curves of a panel.
const MARGIN: f64 = 28.0;
const COLOURS: [&str; 3] = ["#1f77b4", "#d62728", "#9467bd"];
const LINES: usize = 4;

/// One curve.
struct Curve {
    name: &'static str,
    figure: fn(&Sample) -> f64,
}

/// Curves with one axis.
struct Panel {
    title: &'static str,
    scale: Scale,
    curves: &'static [Curve],
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Scale {
    Linear,
    Logarithmic,
}

const PANELS: [Panel; 4] = [
    Panel {
        title: "append, ms (logarithmic)",
        scale: Scale::Logarithmic,
        curves: &[
            Curve { name: "p50", figure: |sample| sample.append.p50 },
            Curve { name: "p99", figure: |sample| sample.append.p99 },
            Curve { name: "p99.9", figure: |sample| sample.append.p999 },
        ],
    },
    Panel {
        title: "append to run of quiet streams, ms (logarithmic)",
        scale: Scale::Logarithmic,
        curves: &[
            Curve { name: "p50", figure: |sample| sample.run.p50 },
            Curve { name: "p99", figure: |sample| sample.run.p99 },
            Curve { name: "p99.9", figure: |sample| sample.run.p999 },
        ],
    },
    Panel {
        title: "memory, MiB",
        scale: Scale::Linear,
        curves: &[
            Curve { name: "resident", figure: |sample| sample.resident_mib },
            Curve { name: "server", figure: |sample| sample.server_mib },
        ],
    },
    Panel {
        title: "disk, MiB",
        scale: Scale::Linear,
        curves: &[Curve { name: "disk", figure: |sample| sample.disk_mib }],
    },
];

/// Draws the samples under a title.
pub(super) fn svg(title: &str, samples: &[Sample]) -> String {
    let height = TOP + PANEL_HEIGHT * PANELS.len() as f64 + MARGIN;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n<text x=\"{LEFT}\" y=\"20\" \
         font-size=\"14\">{}</text>\n",
        escaped(title)
    );
    let minutes = samples.last().map_or(1.0, |sample| sample.minute);
    for (number, panel) in PANELS.iter().enumerate() {
        let frame = Frame::new(panel, samples, minutes, TOP + PANEL_HEIGHT * number as f64);
        text.push_str(&frame.axes(panel.title));
        for (number, curve) in panel.curves.iter().enumerate() {
            text.push_str(&frame.curve(curve, number, samples));
        }
    }
    text.push_str("</svg>\n");
    text
}

/// Where the values of a panel are drawn.
struct Frame {
    top: f64,
    minutes: f64,
    scale: Scale,
    low: f64,
    high: f64,
}

impl Frame {
    fn new(panel: &Panel, samples: &[Sample], minutes: f64, top: f64) -> Self {
        let values = panel.curves.iter().flat_map(|curve| samples.iter().map(curve.figure));
        let values: Vec<f64> = values.filter(|value| value.is_finite() && *value > 0.0).collect();
        let highest = values.iter().copied().fold(0.0, f64::max).max(f64::MIN_POSITIVE);
        let (low, high) = match panel.scale {
            Scale::Linear => (0.0, highest * 1.1),
            Scale::Logarithmic => {
                let lowest = values.iter().copied().fold(highest, f64::min);
                (10f64.powf(lowest.log10().floor()), 10f64.powf(highest.log10().ceil()))
            }
        };
        // One value alone has no extent.
        Self { top, minutes, scale: panel.scale, low, high: if high > low { high } else { low * 10.0 } }
    }

    fn x(&self, minute: f64) -> f64 {
        LEFT + (WIDTH - LEFT - RIGHT) * minute / self.minutes
    }

    fn y(&self, value: f64) -> f64 {
        let share = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Logarithmic => (value / self.low).log10() / (self.high / self.low).log10(),
        };
        let (top, bottom) = (self.top + MARGIN, self.top + PANEL_HEIGHT - MARGIN / 2.0);
        bottom - (bottom - top) * share.clamp(0.0, 1.0)
    }

    /// The value at a share of the height.
    fn value(&self, share: f64) -> f64 {
        match self.scale {
            Scale::Linear => self.low + (self.high - self.low) * share,
            Scale::Logarithmic => self.low * (self.high / self.low).powf(share),
        }
    }

    fn axes(&self, title: &str) -> String {
        let (left, right) = (self.x(0.0), self.x(self.minutes));
        let mut text =
            format!("<text x=\"{left}\" y=\"{:.1}\" font-weight=\"bold\">{title}</text>\n", self.top + 18.0);
        for line in 0..=LINES {
            let value = self.value(line as f64 / LINES as f64);
            let y = self.y(value);
            writeln!(
                text,
                "<line x1=\"{left}\" y1=\"{y:.1}\" x2=\"{right}\" y2=\"{y:.1}\" stroke=\"#ddd\"/><text x=\"{:.1}\" \
                 y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                left - 6.0,
                y + 4.0,
                short(value)
            )
            .expect("a text takes everything");
        }
        let below = self.y(self.low) + 14.0;
        for line in 0..=LINES {
            let minute = self.minutes * line as f64 / LINES as f64;
            let x = self.x(minute);
            writeln!(
                text,
                "<text x=\"{x:.1}\" y=\"{below:.1}\" text-anchor=\"middle\">{} min</text>",
                short(minute)
            )
            .expect("a text takes everything");
        }
        text
    }

    fn curve(&self, curve: &Curve, number: usize, samples: &[Sample]) -> String {
        let colour = COLOURS[number % COLOURS.len()];
        let figures = samples.iter().map(|sample| (sample.minute, (curve.figure)(sample)));
        let points: Vec<String> = figures
            .filter(|(_, value)| value.is_finite())
            .map(|(minute, value)| format!("{:.1},{:.1}", self.x(minute), self.y(value)))
            .collect();
        let (x, y) = (self.x(self.minutes) + 12.0, self.top + MARGIN + 16.0 * number as f64 + 6.0);
        format!(
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\"/>\n<text x=\"{x:.1}\" \
             y=\"{y:.1}\" fill=\"{colour}\">{}</text>\n",
            points.join(" "),
            curve.name
        )
    }
}

/// A number in as few digits as an axis needs.
fn short(value: f64) -> String {
    match value {
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 1.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::soak::samples::Shares;

    #[test]
    fn all_panels_and_points_are_drawn_inside_the_picture() {
        let shares = |scale| Shares { p50: 0.2 * scale, p99: scale, p999: 9.0 * scale };
        let sample = |minute: f64| Sample {
            minute,
            append: shares(minute),
            run: shares(2.0 * minute),
            resident_mib: 100.0 + minute,
            disk_mib: 1_000.0,
            ..Sample::default()
        };
        let text = svg("a < b", &(1..=60).map(|minute| sample(f64::from(minute))).collect::<Vec<_>>());
        assert_eq!(text.matches("<polyline").count(), 9);
        assert!(text.contains("a &lt; b") && text.contains("60.0 min"), "{text}");
        let points = text.split("points=\"").skip(1).flat_map(|rest| rest.split('"').next());
        for point in points.flat_map(|points| points.split(' ')) {
            let (x, y) = point.split_once(',').unwrap();
            let (x, y): (f64, f64) = (x.parse().unwrap(), y.parse().unwrap());
            assert!((LEFT..=WIDTH - RIGHT).contains(&x) && (TOP..=TOP + 4.0 * PANEL_HEIGHT).contains(&y));
        }
    }

    #[test]
    fn values_that_are_missing_or_all_equal_do_no_harm() {
        let nothing = Sample {
            minute: 1.0,
            append: Shares { p50: f64::NAN, ..Shares::default() },
            ..Sample::default()
        };
        assert!(!svg("empty", &[nothing]).contains("NaN"));
        assert!(!svg("none", &[]).contains("NaN"));
    }
}
