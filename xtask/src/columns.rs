//! Whether comments and documents fit a terminal: at most 100 columns.

use std::path::Path;

use trefoil_gate::trust::Breach;

/// Columns of a line of prose.
const MOST: usize = 100;

/// Lines of prose that are too long: in Markdown outside of code blocks and tables, in sources
/// comments with lines of their own. A line that is one word cannot be broken.
pub fn breaches(file: &Path, text: &str) -> Vec<Breach> {
    let is_markdown = file.extension().is_some_and(|ending| ending == "md");
    let marks: &[&str] = match file.extension().and_then(|ending| ending.to_str()) {
        Some("md") => &[""],
        Some("toml") => &["#"],
        _ => &["//"],
    };
    let mut in_code = false;
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let words = line.trim_start();
        let Some(mark) = marks.iter().find(|mark| words.starts_with(**mark)) else {
            continue;
        };
        let prose = words[mark.len()..].trim_start_matches(['/', '!']).trim();
        if prose.starts_with("```") {
            in_code = !in_code;
        }
        let is_free = in_code || prose.starts_with(['|', '<']) || is_one_word(prose);
        // A heading is one line.
        let is_heading = is_markdown && prose.starts_with('#');
        let columns = line.chars().count();
        if columns > MOST && !is_free && !is_heading {
            found.push(Breach {
                file: file.to_path_buf(),
                line: index + 1,
                text: format!("{columns} columns of prose; {MOST} are the most"),
            });
        }
    }
    found
}

/// Whether the line has nothing that could go to the next one: a link or a list's mark with it.
fn is_one_word(prose: &str) -> bool {
    prose.trim_start_matches("- ").split_whitespace().count() < 2
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(name: &str, text: &str) -> Vec<usize> {
        let found = breaches(Path::new(name), text);
        found.into_iter().map(|breach| breach.line).collect()
    }

    #[test]
    fn prose_is_seen_and_code_is_not() {
        let long = "word ".repeat(25);
        assert_eq!(lines("a.md", &format!("a\n{long}\n")), [2]);
        assert_eq!(
            lines("a.rs", &format!("//! {long}\n    /// {long}\n")),
            [1, 2]
        );
        assert_eq!(lines("a.toml", &format!("# {long}\na = \"{long}\"\n")), [1]);
        assert!(lines("a.rs", &format!("let a = \"{long}\"; // short\n")).is_empty());
        assert!(lines("a.md", &format!("```\n{long}\n```\n| {long} |\n# {long}\n")).is_empty());
        assert!(lines("a.md", &format!("- {}\n", "x".repeat(120))).is_empty());
    }
}
