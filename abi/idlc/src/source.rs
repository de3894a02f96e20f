//! The `.idl` files of a workspace: where they are found, and places in them.

use crate::bounds::{LONGEST_FILE, MOST_FILES};
use crate::diagnostics::Report;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// One `.idl` file.
#[derive(Clone, Debug)]
pub struct Source {
    /// How errors name it: the path from the workspace root, with `/`.
    pub name: String,
    /// Its content.
    pub text: String,
}

/// A place in a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// Index of the source.
    pub file: usize,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

/// Reads `abi/interfaces/*.idl` and then `domains/**/*.idl` below `root`, each group in order of
/// its paths.
///
/// # Errors
/// A file or folder that cannot be read, or if there is no interface at all.
pub fn find(root: &Path) -> Result<Vec<Source>, Report> {
    let paths =
        paths(root).map_err(|error| Report::plain(format!("{}: {error}", root.display())))?;
    if paths.is_empty() {
        return Err(Report::plain(format!(
            "{}: there are no .idl files in abi/interfaces/ and domains/",
            root.display()
        )));
    }
    read(root, &paths)
}

/// Reads the given files; `root` is cut from the names that errors show.
///
/// # Errors
/// A file that cannot be read.
pub fn read(root: &Path, paths: &[PathBuf]) -> Result<Vec<Source>, Report> {
    let source = |path: &PathBuf| {
        let name = path
            .strip_prefix(root)
            .unwrap_or(path)
            .to_string_lossy()
            .replace('\\', "/");
        match content(path) {
            Ok(text) => Ok(Source { name, text }),
            Err(error) => Err(Report::plain(format!("{name}: {error}"))),
        }
    };
    // One more than there may be, so that the parser says so.
    paths.iter().take(MOST_FILES + 1).map(source).collect()
}

/// The text of a file, or of one that is too long a little more than it may have: the parser
/// refuses it for that.
fn content(path: &Path) -> io::Result<String> {
    // Nothing that waits or never ends, to which a link may lead.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    let mut bytes = Vec::new();
    let most = LONGEST_FILE as u64 + 1;
    fs::File::open(path)?.take(most).read_to_end(&mut bytes)?;
    let is_whole = bytes.len() <= LONGEST_FILE;
    String::from_utf8(bytes).or_else(|error| match is_whole {
        true => Err(io::Error::other("it is not UTF-8")),
        // It may have been cut in the middle of a character.
        false => Ok(String::from_utf8_lossy(error.as_bytes()).into_owned()),
    })
}

/// The paths of all `.idl` files of the workspace at `root`, in the order in which they are read.
///
/// # Errors
/// A folder that cannot be read.
pub fn paths(root: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = below(&root.join("abi/interfaces"), "idl")?;
    paths.extend(below(&root.join("domains"), "idl")?);
    Ok(paths)
}

/// The manifests of everything that may be a domain, in the workspace at `root`.
///
/// # Errors
/// A folder that cannot be read.
pub fn manifests(root: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = below(&root.join("domains"), "Cargo.toml")?;
    paths.extend(below(&root.join("programs"), "Cargo.toml")?);
    Ok(paths)
}

/// All files with this extension (or this name, for `Cargo.toml`) below `folder`, sorted. Hidden
/// folders and `target` are left out; a folder that does not exist is empty.
///
/// # Errors
/// A folder that cannot be read.
pub fn below(folder: &Path, ending: &str) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    if folder.is_dir() {
        walk(folder, ending, &mut found)?;
    }
    found.sort();
    Ok(found)
}

fn walk(folder: &Path, ending: &str, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let (path, name) = (entry.path(), entry.file_name());
        let hidden = name.to_string_lossy().starts_with('.') || name == "target";
        if entry.file_type()?.is_dir() {
            if !hidden {
                walk(&path, ending, found)?;
            }
        } else if !hidden && (name == ending || path.extension().is_some_and(|it| it == ending)) {
            found.push(path);
        }
    }
    Ok(())
}
