//! Tables with aligned columns, for `ps` and `domains`.

use alloc::string::String;
use alloc::vec::Vec;

/// Which side the text of a column stands on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// For text.
    Left,
    /// For numbers.
    Right,
}

/// Rows under a heading.
pub struct Table {
    columns: Vec<(String, Side)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty table with these column headings.
    pub fn new(columns: &[(&str, Side)]) -> Self {
        let columns = columns
            .iter()
            .map(|&(title, side)| (String::from(title), side))
            .collect();
        Table {
            columns,
            rows: Vec::new(),
        }
    }

    /// Adds a row. Cells that are missing are empty.
    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// Leaves a column out.
    pub fn remove(&mut self, title: &str) {
        let Some(at) = self.columns.iter().position(|(other, _)| other == title) else {
            return;
        };
        self.columns.remove(at);
        for row in self.rows.iter_mut().filter(|row| at < row.len()) {
            row.remove(at);
        }
    }

    /// Leaves columns out, in this order, until what is left is at most `width` characters wide, or
    /// none of them is left.
    pub fn fit(&mut self, width: usize, dispensable: &[&str]) {
        for title in dispensable {
            let widest = self.lines().iter().map(|line| line.chars().count()).max();
            if widest.unwrap_or(0) <= width {
                return;
            }
            self.remove(title);
        }
    }

    /// The lines, the heading first, without line breaks and without blanks at their ends.
    pub fn lines(&self) -> Vec<String> {
        let titles: Vec<String> = self
            .columns
            .iter()
            .map(|(title, _)| title.clone())
            .collect();
        let all = || core::iter::once(&titles).chain(&self.rows);
        let width = |index| {
            all()
                .filter_map(|row: &Vec<String>| row.get(index))
                .map(|cell: &String| cell.chars().count())
                .max()
        };
        let widths: Vec<usize> = (0..self.columns.len())
            .map(|index| width(index).unwrap_or(0))
            .collect();
        all().map(|row| self.line(row, &widths)).collect()
    }

    fn line(&self, row: &[String], widths: &[usize]) -> String {
        let mut line = String::new();
        for (index, ((_, side), &width)) in self.columns.iter().zip(widths).enumerate() {
            let cell = row.get(index).map_or("", String::as_str);
            if index > 0 {
                line.push_str("  ");
            }
            line += &match side {
                Side::Left => alloc::format!("{cell:<width$}"),
                Side::Right => alloc::format!("{cell:>width$}"),
            };
        }
        line.truncate(line.trim_end().len());
        line
    }
}

/// A number of bytes with a unit, in at most five characters below 1000 GiB.
pub fn human_bytes(bytes: u64) -> String {
    match bytes {
        0..1024 => alloc::format!("{bytes}"),
        1024..1_048_576 => alloc::format!("{}K", bytes.div_ceil(1024)),
        1_048_576..1_073_741_824 => tenths(bytes, 1_048_576, 'M'),
        _ => tenths(bytes, 1_073_741_824, 'G'),
    }
}

/// A processor time in minutes, seconds and hundredths.
pub fn processor_time(nanoseconds: u64) -> String {
    let hundredths = nanoseconds / 10_000_000;
    let (seconds, rest) = (hundredths / 100, hundredths % 100);
    alloc::format!("{}:{:02}.{rest:02}", seconds / 60, seconds % 60)
}

/// `part` of `whole` in per cent, with tenths; more than 100 where several processors worked.
pub fn percent(part: u64, whole: u64) -> String {
    let tenths = u128::from(part) * 1000 / u128::from(whole.max(1));
    alloc::format!("{}.{}", tenths / 10, tenths % 10)
}

fn tenths(bytes: u64, unit: u64, letter: char) -> String {
    alloc::format!("{}.{}{letter}", bytes / unit, bytes % unit * 10 / unit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn aligns() {
        let mut table = Table::new(&[
            ("ID", Side::Right),
            ("NAME", Side::Left),
            ("N", Side::Right),
        ]);
        table.row(["7", "init", "1"].map(ToString::to_string).to_vec());
        table.row(
            ["12", "virtio-blk", "100"]
                .map(ToString::to_string)
                .to_vec(),
        );
        table.row(["3", "x"].map(ToString::to_string).to_vec());
        let expected = [
            "ID  NAME          N",
            " 7  init          1",
            "12  virtio-blk  100",
            " 3  x",
        ];
        assert_eq!(table.lines(), expected);
    }

    #[test]
    fn what_does_not_fit_is_left_out_in_order() {
        let table = || {
            let mut table = Table::new(&[
                ("ID", Side::Right),
                ("NAME", Side::Left),
                ("N", Side::Right),
            ]);
            table.row(["7", "init", "1"].map(ToString::to_string).to_vec());
            table.row(Vec::from(["8".to_string()]));
            table
        };
        let fitted = |width: usize, dispensable: &[&str]| {
            let mut table = table();
            table.fit(width, dispensable);
            table.lines().swap_remove(0)
        };
        assert_eq!(fitted(11, &["N", "ID"]), "ID  NAME  N");
        assert_eq!(fitted(10, &["N", "ID"]), "ID  NAME");
        assert_eq!(fitted(1, &["N", "ID"]), "NAME");
        assert_eq!(fitted(1, &["X"]), "ID  NAME  N");
    }

    #[test]
    fn times() {
        let all = [0, 9_999_999, 59_990_000_000, 3_723_450_000_000].map(processor_time);
        assert_eq!(all, ["0:00.00", "0:00.00", "0:59.99", "62:03.45"]);
    }

    #[test]
    fn shares() {
        let all = [(0, 0), (1, 3), (5, 5), (3, 2), (u64::MAX, u64::MAX)];
        let all = all.map(|(part, whole)| percent(part, whole));
        assert_eq!(all, ["0.0", "33.3", "100.0", "150.0", "100.0"]);
    }

    #[test]
    fn sizes() {
        let all = [0, 1023, 1024, 1025, 1_572_864, 1_073_741_824, u64::MAX].map(human_bytes);
        assert_eq!(all[..6], ["0", "1023", "1K", "2K", "1.5M", "1.0G"]);
        assert!(all[6].ends_with('G'));
    }
}
