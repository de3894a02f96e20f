//! Plots as SVG: bars beside a goal, and curves over time.

use std::fmt::Write;

const WIDTH: f64 = 760.0;
const COLOURS: [&str; 5] = ["#2f6f4f", "#b5523b", "#3b6ab5", "#8a6d1f", "#6b3bb5"];

/// Horizontal bars, one for each name and value, and a line where `goal` is.
pub fn bars(title: &str, values: &[(String, f64)], goal: f64) -> String {
    let (left, row) = (240.0, 26.0);
    let most = values
        .iter()
        .fold(goal, |most, (_, value)| most.max(*value))
        * 1.1;
    let scale = |value: f64| value / most * (WIDTH - left - 60.0);
    let height = 50.0 + row * values.len() as f64;
    let mut text = head(title, height);
    for ((name, value), n) in values.iter().zip(0..) {
        let y = 40.0 + row * f64::from(n);
        let colour = COLOURS[usize::from(*value > goal)];
        let name = escaped(name);
        let _ = writeln!(
            text,
            "<text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"end\">{name}</text>\
             <rect x=\"{left}\" y=\"{y:.0}\" width=\"{:.1}\" height=\"18\" fill=\"{colour}\"/>\
             <text x=\"{:.0}\" y=\"{:.0}\">{value:.2}</text>",
            left - 8.0,
            y + 14.0,
            scale(*value),
            left + scale(*value) + 6.0,
            y + 14.0,
        );
    }
    let x = left + scale(goal);
    let _ = writeln!(
        text,
        "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"34\" y2=\"{:.0}\" stroke=\"#444\" stroke-dasharray=\"4 3\"/>",
        height - 8.0
    );
    text + "</svg>\n"
}

/// A bar: its name, its value, and whether it is ours and not a peer's.
pub type Row = (String, f64, bool);

/// Horizontal bars on a logarithmic scale; those of peers are paler. Values that are not above 0
/// are left out.
pub fn logarithmic(title: &str, rows: &[Row]) -> String {
    let rows: Vec<_> = rows.iter().filter(|(_, value, _)| *value > 0.0).collect();
    let (left, height) = (400.0, 50.0 + 20.0 * rows.len() as f64);
    let most = rows.iter().fold(1.0, |most: f64, row| most.max(row.1));
    let least = rows.iter().fold(most, |least: f64, row| least.min(row.1)) / 2.0;
    let scale = (WIDTH - left - 60.0) / (most / least).ln();
    let mut text = head(title, height);
    for ((name, value, is_ours), n) in rows.iter().zip(0..) {
        let (y, width) = (40.0 + 20.0 * f64::from(n), scale * (value / least).ln());
        let colour = if *is_ours { COLOURS[0] } else { "#b8c4ce" };
        let _ = writeln!(
            text,
            "<text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"end\">{}</text>\
             <rect x=\"{left}\" y=\"{y:.0}\" width=\"{width:.1}\" height=\"14\" fill=\"{colour}\"/>\
             <text x=\"{:.0}\" y=\"{:.0}\">{value:.1}</text>",
            left - 8.0,
            y + 12.0,
            escaped(name),
            left + width + 6.0,
            y + 12.0,
        );
    }
    text + "</svg>\n"
}

/// A curve: its name and its points.
pub type Curve = (String, Vec<(f64, f64)>);

/// Curves in one frame. `x` and `y` say what the axes show.
pub fn curves(title: &str, x: &str, y: &str, curves: &[Curve]) -> String {
    let (left, top, width, height) = (70.0, 40.0, WIDTH - 90.0, 260.0);
    let points = || curves.iter().flat_map(|(_, points)| points);
    let most_x = points().fold(f64::MIN_POSITIVE, |most, point| most.max(point.0));
    let most_y = points().fold(f64::MIN_POSITIVE, |most, point| most.max(point.1)) * 1.05;
    let place = |point: &(f64, f64)| {
        (
            left + point.0 / most_x * width,
            top + height - point.1 / most_y * height,
        )
    };
    let mut text = head(title, 380.0 + 18.0 * curves.len() as f64);
    let _ = writeln!(
        text,
        "<rect x=\"{left}\" y=\"{top}\" width=\"{width}\" height=\"{height}\" fill=\"none\" stroke=\"#444\"/>"
    );
    for step in 0..=4 {
        let part = f64::from(step) / 4.0;
        let (across, up) = (left + part * width, top + height - part * height);
        let _ = writeln!(
            text,
            "<text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"end\">{:.0}</text>\
             <text x=\"{across:.0}\" y=\"{:.0}\" text-anchor=\"middle\">{:.1}</text>",
            left - 6.0,
            up + 4.0,
            part * most_y,
            top + height + 18.0,
            part * most_x,
        );
    }
    let _ = writeln!(
        text,
        "<text x=\"{left}\" y=\"{:.0}\">{}</text><text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"end\">{}</text>",
        top - 6.0,
        escaped(y),
        left + width,
        top + height + 36.0,
        escaped(x)
    );
    for ((name, points), n) in curves.iter().zip(0..) {
        let colour = COLOURS[n % COLOURS.len()];
        let path: Vec<_> = points
            .iter()
            .map(place)
            .map(|(x, y)| format!("{x:.1},{y:.1}"))
            .collect();
        let y = top + height + 54.0 + 18.0 * n as f64;
        let _ = writeln!(
            text,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\"/>\
             <text x=\"{left}\" y=\"{y:.0}\" fill=\"{colour}\">{}</text>",
            path.join(" "),
            escaped(name)
        );
    }
    text + "</svg>\n"
}

fn head(title: &str, height: f64) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH:.0}\" height=\"{height:.0}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"10\" y=\"20\" font-size=\"14\">{}</text>\n",
        escaped(title)
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_show_names_values_and_the_goal() {
        let svg = bars("a < b", &[("read".into(), 0.5), ("write".into(), 2.0)], 1.0);
        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"));
        assert!(svg.contains("a &lt; b") && svg.contains(">read<") && svg.contains(">2.00<"));
        assert_eq!(svg.matches("<rect").count(), 3);
        assert!(svg.contains(COLOURS[0]) && svg.contains(COLOURS[1]));
    }

    #[test]
    fn a_logarithmic_bar_for_all_that_is_above_zero() {
        let rows = [
            ("P1".into(), 10.0, true),
            ("a < b".into(), 4.0, false),
            ("none".into(), 0.0, true),
        ];
        let svg = logarithmic("calls", &rows);
        assert_eq!(svg.matches("height=\"14\"").count(), 2);
        assert!(svg.contains("a &lt; b") && svg.ends_with("</svg>\n"));
    }

    #[test]
    fn every_curve_is_drawn_inside_the_frame() {
        let lines = vec![
            ("one".to_string(), vec![(0.0, 0.0), (10.0, 100.0)]),
            ("two".to_string(), vec![(0.0, 50.0)]),
        ];
        let svg = curves("t", "s", "MB/s", &lines);
        assert_eq!(svg.matches("<polyline").count(), 2);
        assert!(svg.contains("70.0,300.0") && svg.contains("740.0,"));
        assert!(!svg.contains("NaN") && !curves("t", "s", "y", &[]).contains("inf"));
    }
}
