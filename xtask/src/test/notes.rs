//! The failures of a run, said again at its end: of a long log many see the last lines only.

use trefoil_gate::tool;

/// So many lines are shown of one failure,
const LINES: usize = 7;
/// of so many characters at most,
const COLUMNS: usize = 240;
/// and so many failures with more than their first line.
const WHOLE: usize = 3;

/// The failures so far.
#[derive(Clone, Debug, Default)]
pub struct Notes {
    failures: Vec<Vec<String>>,
    /// Whether the next line may belong to the last of them.
    open: bool,
}

impl Notes {
    /// Looks at the next line that a group of tests printed.
    pub fn take(&mut self, line: &str) {
        if begins(line) {
            self.failures.push(Vec::new());
            self.open = true;
        } else if line.is_empty()
            || ["ok  ", "test ", "==> "]
                .iter()
                .any(|end| line.starts_with(end))
        {
            self.open = false;
        }
        if let Some(failure) = self.failures.last_mut().filter(|_| self.open) {
            failure.push(line.chars().take(COLUMNS).collect());
        }
    }

    /// Shows and keeps a failure of several lines.
    pub fn fail(&mut self, text: &str) {
        let text = tool::plain(text);
        println!("FAILED  {text}");
        format!("FAILED  {text}")
            .lines()
            .for_each(|line| self.take(line));
        self.open = false;
    }

    /// Says that a test passed when it was tried again.
    pub fn unsteady(&mut self, name: &str) {
        let line = format!("unsteady {name}: failed at first, passed by itself");
        println!("{line}");
        self.take(&line);
        self.open = false;
    }

    /// Adds the failures of a group that ran beside this one.
    pub fn append(&mut self, mut other: Notes) {
        self.failures.append(&mut other.failures);
        self.open = false;
    }

    /// The last lines of the run before the counts.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (number, failure) in self.failures.iter().enumerate() {
            let lines = if number < WHOLE { LINES } else { 1 };
            for line in failure.iter().take(lines) {
                text.push_str(line);
                text.push('\n');
            }
        }
        text
    }
}

/// Whether a failure begins with this line of the tests of the whole system, or of the host.
fn begins(line: &str) -> bool {
    ["FAILED  ", "unsteady ", "---- "]
        .iter()
        .any(|start| line.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_told_from_what_stands_around_them() {
        let mut notes = Notes::default();
        let lines = [
            "ok      shell-jobs (1.0 s)",
            "FAILED  limits-log (2.0 s): it is silent",
            "  screen:",
            "ok      shell-pipes (1.0 s)",
            "more",
        ];
        lines.iter().for_each(|line| notes.take(line));
        notes.unsteady("limits-log");
        let expected = "FAILED  limits-log (2.0 s): it is silent\n  screen:\n\
                        unsteady limits-log: failed at first, passed by itself\n";
        assert_eq!(notes.text(), expected);
    }

    #[test]
    fn failures_of_groups_side_by_side_stay_whole() {
        let (mut host, mut kernel) = (Notes::default(), Notes::default());
        host.take("---- a_test stdout ----");
        kernel.fail("kernel on 1 processors: irq FAILED: late");
        host.take("assertion failed");
        host.append(kernel);
        host.take("not about it");
        let expected = "---- a_test stdout ----\nassertion failed\n\
                        FAILED  kernel on 1 processors: irq FAILED: late\n";
        assert_eq!(host.text(), expected);
    }

    #[test]
    fn long_failures_are_cut() {
        let mut notes = Notes::default();
        let long = format!("one{}", "\nline".repeat(50));
        for _ in 0..=WHOLE {
            notes.fail(&long);
        }
        assert_eq!(notes.text().lines().count(), WHOLE * LINES + 1);
        assert_eq!(Notes::default().text(), "");
    }
}
