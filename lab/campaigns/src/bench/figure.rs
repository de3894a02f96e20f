//! Figures: what was measured, what it is held against, and how it is shown.

use serde_json::{Value, json};

/// One line of the table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figure {
    /// Its number in the list of benchmarks.
    pub id: String,
    /// What it is.
    pub name: String,
    /// The best value of all rounds.
    pub best: f64,
    /// The value in the middle, if there was more than one.
    pub median: Option<f64>,
    /// Of both.
    pub unit: String,
    /// What the best value is held against, in words; empty: nothing.
    pub goal: String,
    /// Whether it is met.
    pub met: Option<bool>,
    /// What others have, each with its unit if that is another.
    pub peers: Vec<(String, f64)>,
}

impl Figure {
    /// A figure without goal and peers.
    pub fn new(id: &str, name: &str, best: f64, median: Option<f64>, unit: &str) -> Self {
        Figure {
            id: id.into(),
            name: name.into(),
            best,
            median,
            unit: unit.into(),
            ..Figure::default()
        }
    }

    /// With the goal that the best value is at most `most`.
    pub fn at_most(mut self, most: f64) -> Self {
        self.goal = format!("<= {most}");
        self.met = Some(self.best <= most);
        self
    }

    /// With the goal that the best value is at least `least`.
    pub fn at_least(mut self, least: f64) -> Self {
        self.goal = format!(">= {least}");
        self.met = Some(self.best >= least);
        self
    }

    /// With one more peer.
    pub fn beside(mut self, name: &str, value: f64) -> Self {
        self.peers.push((name.into(), value));
        self
    }

    /// As a JSON object.
    pub fn json(&self) -> Value {
        let Figure {
            id,
            name,
            best,
            median,
            unit,
            goal,
            met,
            peers,
        } = self;
        let peers: serde_json::Map<_, _> = peers
            .iter()
            .map(|(name, value)| (name.clone(), json!(value)))
            .collect();
        json!({
            "id": id, "name": name, "value": best, "median": median, "unit": unit,
            "goal": goal, "met": met, "peers": peers,
        })
    }
}

/// A number with as many digits as say something.
pub fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 1000.0 => format!("{value:.0}"),
        size if size >= 100.0 => format!("{value:.1}").trim_end_matches(".0").to_string(),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// The figures as a table.
pub fn table(figures: &[Figure]) -> String {
    let mut text = format!(
        "{:<6} {:<62} {:>17} {:<13} {:<12} {:<4} peers\n",
        "id", "what", "best / median", "unit", "goal", "met"
    );
    for figure in figures {
        let median = figure.median.map(|median| format!(" / {}", short(median)));
        let value = short(figure.best) + &median.unwrap_or_default();
        let peers = figure.peers.iter();
        let peers: Vec<_> = peers
            .map(|(name, value)| format!("{name} {}", short(*value)))
            .collect();
        let met = match figure.met {
            Some(true) => "yes",
            Some(false) => "no",
            None => "",
        };
        let Figure {
            id,
            name,
            unit,
            goal,
            ..
        } = figure;
        let line = format!(
            "{id:<6} {name:<62} {value:>17} {unit:<13} {goal:<12} {met:<4} {}",
            peers.join("; ")
        );
        text += line.trim_end();
        text.push('\n');
    }
    text
}

/// The least and the middle of `values`, which must not be empty.
pub fn min_and_median(values: &mut [f64]) -> (f64, f64) {
    values.sort_by(f64::total_cmp);
    (values[0], values[values.len() / 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_are_judged_by_the_best_value() {
        let figure = Figure::new("P1", "call", 12.0, Some(15.0), "ticks");
        assert_eq!(figure.clone().at_most(12.0).met, Some(true));
        assert_eq!(figure.clone().at_most(11.9).met, Some(false));
        assert_eq!(figure.clone().at_least(12.5).met, Some(false));
        assert_eq!(figure.beside("dyn", 4.0).json()["peers"]["dyn"], 4.0);
    }

    #[test]
    fn a_line_shows_value_goal_and_peers() {
        let figure = Figure::new("P1", "call", 9.31, Some(10.0), "ticks");
        let text = table(&[figure.at_most(12.0).beside("dyn call", 4.24)]);
        let line = text.lines().nth(1).expect("one figure");
        assert!(line.contains("9.31 / 10.0 ticks"), "{line}");
        assert!(line.ends_with("<= 12        yes  dyn call 4.24"), "{line}");
    }

    #[test]
    fn numbers_are_short() {
        let texts = [0.5, 12.34, 123.0, 123.46, 12345.6].map(short);
        assert_eq!(texts, ["0.50", "12.3", "123", "123.5", "12346"]);
    }
}
