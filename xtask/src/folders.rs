//! Whether the folders at the top are those that the README names, and whether each says what it is
//! for.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::Result;
use trefoil_gate::project::Project;
use trefoil_gate::trust::Breach;

/// Folders of cargo's, besides the hidden ones.
const BUILT: &str = "target";
/// Lines that say what lives in a folder, who may write `unsafe`, and what it may depend on.
const FEWEST_LINES: usize = 5;

/// Folders that the README does not name or that do not exist, and those without a page of their
/// own.
///
/// # Errors
/// If the folders cannot be read.
pub fn breaches(project: &Project) -> Result<Vec<Breach>> {
    let readme = project.root.join("README.md");
    let text = fs::read_to_string(&readme).unwrap_or_default();
    let named = named(&text);
    let mut there = BTreeSet::new();
    for entry in fs::read_dir(&project.root)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type()?.is_dir() && !name.starts_with('.') && name != BUILT {
            there.insert(name);
        }
    }
    let breach = |file: &Path, text: String| Breach {
        file: file.to_path_buf(),
        line: 1,
        text,
    };
    let missing = there.difference(&named);
    let mut found: Vec<Breach> = missing
        .map(|name| breach(&readme, format!("the table of folders lacks `{name}`")))
        .collect();
    let gone = named.difference(&there);
    found.extend(gone.map(|name| breach(&readme, format!("there is no folder `{name}`"))));
    for name in &there {
        let page = project.root.join(name).join("README.md");
        if let Some(lack) = lack(name, &fs::read_to_string(&page).unwrap_or_default()) {
            found.push(breach(&page, lack));
        }
    }
    Ok(found)
}

/// The folders in the first column of the table under the heading "Folders".
fn named(readme: &str) -> BTreeSet<String> {
    let table = readme.split("\n## Folders\n").nth(1).unwrap_or_default();
    let rows = table.lines().take_while(|line| !line.starts_with('#'));
    let cells = rows.filter_map(|row| row.strip_prefix("| `")?.split(" |").next());
    let names = cells.flat_map(|cell| cell.split(", "));
    names.map(|name| name.trim_matches('`').into()).collect()
}

/// What the page of a folder fails to say.
fn lack(name: &str, page: &str) -> Option<String> {
    let is_code = name != "docs";
    if page.is_empty() {
        Some("the folder has no page that says what lives in it".into())
    } else if page.lines().count() < FEWEST_LINES {
        Some(format!(
            "fewer than {FEWEST_LINES} lines on what lives here"
        ))
    } else if is_code && !page.contains("`unsafe`") {
        Some("the page does not say who may write `unsafe` here".into())
    } else if is_code && !page.contains("depend") {
        Some("the page does not say what the folder may depend on".into())
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str =
        "# T\n\n## Folders\n\n| folder | what |\n| --- | --- |\n| `a`, `b` | x |\n\nEnd.\n";

    #[test]
    fn names_stand_in_the_first_column() {
        assert_eq!(named(TABLE).into_iter().collect::<Vec<_>>(), ["a", "b"]);
        assert!(named("| `a` | not under the heading |\n").is_empty());
    }

    #[test]
    fn a_page_says_who_may_be_unsafe_and_what_it_needs() {
        assert!(lack("a", "").is_some());
        assert!(lack("a", "# a\n\nShort.\n").is_some());
        assert!(lack("a", "# a\n\n`unsafe` is\nallowed\nhere.\n").is_some());
        assert!(lack("a", "# a\n\nIt depends\non all\nhere.\n").is_some());
        assert_eq!(
            lack("a", "# a\n\nNo `unsafe`.\nIt depends\non all.\n"),
            None
        );
        assert_eq!(lack("docs", "# d\n\na\nb\nc\n"), None);
    }

    #[test]
    fn table_and_folders_agree() {
        let root = std::env::temp_dir().join(format!("trefoil-folders-{}", std::process::id()));
        for folder in ["a", "c", ".git", "target"] {
            fs::create_dir_all(root.join(folder)).expect("made");
        }
        fs::write(root.join("README.md"), TABLE).expect("written");
        let page = "# a\n\nNo `unsafe`.\nIt depends\non all.\n";
        fs::write(root.join("a/README.md"), page).expect("written");
        let project = Project {
            root: root.clone(),
            target: root.join("target"),
            out: root.join("target/trefoil"),
        };
        let found = breaches(&project).expect("read");
        fs::remove_dir_all(&root).expect("removed");
        let texts: Vec<_> = found.into_iter().map(|breach| breach.text).collect();
        assert_eq!(texts.len(), 3, "{texts:?}");
        assert!(texts[0].contains("lacks `c`") && texts[1].contains("no folder `b`"));
        assert!(texts[2].contains("no page"));
    }
}
