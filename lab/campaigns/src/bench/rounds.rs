//! What the programs that measure print, over all rounds: a JSON array of figures each time.

use anyhow::{Context, Result};
use serde_json::Value;

/// A figure of one program, or what all rounds say of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Raw {
    /// Its number.
    pub id: String,
    /// What it is.
    pub name: String,
    /// Of both values.
    pub unit: String,
    /// The best value.
    pub best: f64,
    /// The value in the middle.
    pub median: f64,
    /// Ticks of the time-stamp counter in a microsecond; 0: not said.
    pub ticks_per_us: f64,
    /// All values in their order, where the order means something.
    pub values: Vec<f64>,
}

/// Reads what a program printed.
///
/// # Errors
/// If it is no array of figures.
pub fn parse(text: &str) -> Result<Vec<Raw>> {
    let all: Vec<Value> = serde_json::from_str(text).context("not an array of figures")?;
    all.iter().map(one).collect()
}

fn one(value: &Value) -> Result<Raw> {
    let text = |key: &str| value[key].as_str().map(String::from);
    let values = value["values"].as_array();
    Ok(Raw {
        id: text("id").context("a figure without a number")?,
        name: text("name").context("a figure without a name")?,
        unit: text("unit").context("a figure without a unit")?,
        best: value["best"].as_f64().context("a figure without a value")?,
        median: value["median"]
            .as_f64()
            .context("a figure without a median")?,
        ticks_per_us: value["ticks_per_us"].as_f64().unwrap_or(0.0),
        values: values.map_or_else(Vec::new, |values| {
            values.iter().filter_map(Value::as_f64).collect()
        }),
    })
}

/// The figures of all rounds, in the order in which they came first.
#[derive(Debug, Default)]
pub struct Rounds(Vec<(Raw, Vec<f64>)>);

impl Rounds {
    /// Adds a round of one program: the best of all rounds is kept, and the medians.
    pub fn add(&mut self, round: Vec<Raw>) {
        for raw in round {
            match self.0.iter_mut().find(|(known, _)| known.id == raw.id) {
                None => self.0.push((raw.clone(), vec![raw.median])),
                Some((known, medians)) => {
                    medians.push(raw.median);
                    known.best = match raw.unit == "ticks" {
                        true => known.best.min(raw.best),
                        false => known.best.max(raw.best),
                    };
                    known.values.extend(raw.values);
                }
            }
        }
    }

    /// What all rounds say: the best value, and the middle one of the medians.
    pub fn all(&self) -> Vec<Raw> {
        let whole = |(raw, medians): &(Raw, Vec<f64>)| {
            let mut medians = medians.clone();
            medians.sort_by(f64::total_cmp);
            Raw {
                median: medians[medians.len() / 2],
                ..raw.clone()
            }
        };
        self.0.iter().map(whole).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(best: f64, median: f64, unit: &str) -> Vec<Raw> {
        let text = format!(
            r#"[{{"id":"P1","name":"call","best":{best},"median":{median},"unit":"{unit}","values":[1.5]}}]"#
        );
        parse(&text).expect("a figure")
    }

    #[test]
    fn the_best_and_the_middle_of_all_rounds_are_kept() {
        for (unit, best) in [("ticks", 9.0), ("MB/s", 11.0)] {
            let mut rounds = Rounds::default();
            rounds.add(round(10.0, 12.0, unit));
            rounds.add(round(9.0, 30.0, unit));
            rounds.add(round(11.0, 11.0, unit));
            let all = rounds.all();
            assert_eq!((all[0].best, all[0].median), (best, 12.0));
            assert_eq!(all[0].values, [1.5; 3]);
        }
    }

    #[test]
    fn what_is_no_figure_is_refused() {
        assert!(parse("{}").is_err());
        assert!(parse(r#"[{"id":"P1","unit":"ticks"}]"#).is_err());
    }
}
