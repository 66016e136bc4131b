//! Plots as SVG: lines over logarithmic axes, nothing more.

use std::fmt::Write as _;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 400.0;
const LEFT: f64 = 80.0;
const BOTTOM: f64 = 56.0;
const TOP: f64 = 44.0;
const RIGHT: f64 = 170.0;
const COLOURS: [&str; 5] = ["#1f6feb", "#d1242f", "#1a7f37", "#9a6700", "#8250df"];

/// One line of a plot.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, f64)>,
}

/// A plot with two logarithmic axes.
#[derive(Debug, Clone)]
pub(crate) struct Plot {
    pub(crate) title: String,
    pub(crate) across: String,
    pub(crate) up: String,
    pub(crate) lines: Vec<Line>,
}

/// The powers of ten that an axis spans, and the pixels it has.
struct Axis {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Axis {
    fn new(values: impl Iterator<Item = f64>, from: f64, to: f64) -> Axis {
        let logs: Vec<f64> = values
            .filter(|value| *value > 0.0)
            .map(f64::log10)
            .collect();
        let low = logs.iter().copied().fold(f64::INFINITY, f64::min);
        let high = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let (low, high) = if low > high {
            (0.0, 1.0)
        } else {
            (low.floor(), high.ceil())
        };
        Axis {
            low,
            high: if high > low { high } else { low + 1.0 },
            from,
            to,
        }
    }

    fn at(&self, value: f64) -> f64 {
        let part = (value.max(f64::MIN_POSITIVE).log10() - self.low) / (self.high - self.low);
        self.from + part * (self.to - self.from)
    }

    fn decades(&self) -> impl Iterator<Item = f64> {
        let (low, high) = (self.low, self.high);
        (0..40)
            .map(move |step| low + f64::from(step))
            .take_while(move |power| *power <= high)
    }
}

impl Plot {
    /// The whole picture.
    pub(crate) fn svg(&self) -> String {
        let points = || self.lines.iter().flat_map(|line| &line.points);
        let across = Axis::new(points().map(|point| point.0), LEFT, WIDTH - RIGHT);
        let up = Axis::new(points().map(|point| point.1), HEIGHT - BOTTOM, TOP);
        let mut picture = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" \
             font-size=\"12\">\n<rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n"
        );
        self.frame(&mut picture, &across, &up);
        for (line, colour) in self.lines.iter().zip(COLOURS.iter().cycle()) {
            draw(&mut picture, line, colour, &across, &up);
        }
        self.legend(&mut picture);
        picture + "</svg>\n"
    }

    fn frame(&self, picture: &mut String, across: &Axis, up: &Axis) {
        text(picture, WIDTH / 2.0, 20.0, "middle", &self.title);
        text(
            picture,
            f64::midpoint(LEFT, WIDTH - RIGHT),
            HEIGHT - 12.0,
            "middle",
            &self.across,
        );
        text(picture, 8.0, TOP - 10.0, "start", &self.up);
        for power in across.decades() {
            let x = across.at(10_f64.powf(power));
            rule(picture, (x, TOP), (x, HEIGHT - BOTTOM));
            text(
                picture,
                x,
                HEIGHT - BOTTOM + 18.0,
                "middle",
                &number(10_f64.powf(power)),
            );
        }
        for power in up.decades() {
            let y = up.at(10_f64.powf(power));
            rule(picture, (LEFT, y), (WIDTH - RIGHT, y));
            text(
                picture,
                LEFT - 6.0,
                y + 4.0,
                "end",
                &number(10_f64.powf(power)),
            );
        }
    }

    fn legend(&self, picture: &mut String) {
        let mut y = TOP + 10.0;
        for (line, colour) in self.lines.iter().zip(COLOURS.iter().cycle()) {
            let (x, middle) = (WIDTH - RIGHT + 12.0, y - 4.0);
            let _ = writeln!(
                picture,
                "<path d=\"M{x} {middle}h16\" stroke=\"{colour}\" stroke-width=\"2\"/>"
            );
            text(picture, x + 22.0, y, "start", &line.name);
            y += 18.0;
        }
    }
}

fn draw(picture: &mut String, line: &Line, colour: &str, across: &Axis, up: &Axis) {
    let places: Vec<(f64, f64)> = line
        .points
        .iter()
        .map(|(x, y)| (across.at(*x), up.at(*y)))
        .collect();
    let path: Vec<String> = places
        .iter()
        .map(|(x, y)| format!("{x:.1},{y:.1}"))
        .collect();
    let _ = writeln!(
        picture,
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
        path.join(" ")
    );
    for (x, y) in places {
        let _ = writeln!(
            picture,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>"
        );
    }
}

fn rule(picture: &mut String, from: (f64, f64), to: (f64, f64)) {
    let _ = writeln!(
        picture,
        "<path d=\"M{:.1} {:.1}L{:.1} {:.1}\" stroke=\"#d0d7de\"/>",
        from.0, from.1, to.0, to.1
    );
}

fn text(picture: &mut String, x: f64, y: f64, anchor: &str, words: &str) {
    let words = words.replace('&', "&amp;").replace('<', "&lt;");
    let _ = writeln!(
        picture,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{words}</text>"
    );
}

/// A power of ten in few letters.
fn number(value: f64) -> String {
    match value {
        v if v >= 1e9 => format!("{}G", v / 1e9),
        v if v >= 1e6 => format!("{}M", v / 1e6),
        v if v >= 1e3 => format!("{}k", v / 1e3),
        v if v >= 1.0 => format!("{v}"),
        v => format!("{v:.3}").trim_end_matches('0').to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_lie_in_the_frame() {
        let plot = Plot {
            title: "a & b".to_owned(),
            across: "x".to_owned(),
            up: "y".to_owned(),
            lines: vec![Line {
                name: "line".to_owned(),
                points: vec![(1.0, 0.5), (1000.0, 80.0)],
            }],
        };
        let svg = plot.svg();
        assert!(svg.contains("a &amp; b"));
        assert!(svg.contains(&format!("cx=\"{LEFT:.1}\"")));
        assert!(svg.contains(&format!("cx=\"{:.1}\"", WIDTH - RIGHT)));
        assert_eq!(svg.matches("<circle").count(), 2);
    }

    #[test]
    fn no_points_make_an_empty_frame() {
        let empty = Plot {
            title: String::new(),
            across: String::new(),
            up: String::new(),
            lines: Vec::new(),
        };
        assert!(empty.svg().ends_with("</svg>\n"));
        assert_eq!(number(1e6), "1M");
        assert_eq!(number(0.01), "0.01");
    }
}
