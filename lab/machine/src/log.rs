//! The kernel's log, with stacks in words, and which of its lines are the kernel's own.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use symbols::Reader;
use trefoil_gate::tool;

/// A log that may still grow.
pub struct Log {
    path: PathBuf,
    kernel: PathBuf,
    /// Made when there are lines: it takes a while.
    reader: Option<Reader>,
    /// Bytes of the file that have been read; an unfinished line among them.
    position: u64,
    rest: Vec<u8>,
    text: String,
}

impl Log {
    /// The log in the file `path` of a system that boots `kernel`.
    pub fn new(path: &Path, kernel: &Path) -> Log {
        Log {
            path: path.to_path_buf(),
            kernel: kernel.to_path_buf(),
            reader: None,
            position: 0,
            rest: Vec::new(),
            text: String::new(),
        }
    }

    /// What is new since the last time, whole lines.
    pub fn news(&mut self) -> &str {
        let before = self.text.len();
        if let Some(end) = self
            .read()
            .and_then(|()| self.rest.iter().rposition(|byte| *byte == b'\n'))
        {
            let lines: Vec<_> = self.rest.drain(..=end).collect();
            let lines = String::from_utf8_lossy(&lines);
            let lines = tool::plain(&lines);
            let kernel = &self.kernel;
            let reader = self.reader.get_or_insert_with(|| reader(kernel));
            self.text.push_str(&reader.lines(&lines));
        }
        &self.text[before..]
    }

    /// All of it, so far.
    pub fn text(&mut self) -> String {
        self.news();
        let rest = String::from_utf8_lossy(&self.rest);
        format!("{}{}", self.text, tool::plain(&rest))
    }

    /// Puts the stacks in words into the file, too. Nobody writes it any more.
    pub fn settle(&mut self) {
        let text = self.text();
        // If it cannot be, the file stays as it is.
        let _ = fs::write(&self.path, text);
        // Else it would be read once more.
        self.path.clear();
    }

    fn read(&mut self) -> Option<()> {
        let mut file = File::open(&self.path).ok()?;
        file.seek(SeekFrom::Start(self.position)).ok()?;
        let read = file.read_to_end(&mut self.rest).ok()?;
        self.position += read as u64;
        Some(())
    }
}

/// Who reads the log of a system that boots `kernel`, from the folder that it was built into or one
/// below.
pub fn reader(kernel: &Path) -> Reader {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let root = here.canonicalize().unwrap_or(here);
    let folder = symbols::folder_of(kernel).unwrap_or_default();
    symbols::reader(&folder, kernel, &root)
}

/// What the kernel says of itself in a line of its log: the text behind the time. `None`: it may be
/// a domain's line.
///
/// A line that a domain writes, or that is about one, begins with the domain's name and a colon.
/// Names have no spaces (`abi::Text::name`), so what has one before its first colon, or no colon,
/// is the kernel's.
pub fn own(line: &str) -> Option<&str> {
    let text = behind_time(line)?;
    let begin = text.split(':').next().unwrap_or_default();
    let is_own = begin.contains(' ') || begin.len() == text.len();
    is_own.then_some(text)
}

/// What stands in a line of the log behind the time; `None` if there is none.
pub fn behind_time(line: &str) -> Option<&str> {
    let (time, text) = line.strip_prefix('[')?.split_once("] ")?;
    let mut time = time.trim_start().bytes();
    let is_time = time.all(|byte| byte.is_ascii_digit() || byte == b'.');
    is_time.then_some(text.trim_end())
}

/// Whether the kernel says in its `log`, or in a text with lines of that, that it has panicked.
pub fn has_panic(log: &str) -> bool {
    let mut lines = log.lines().filter_map(|line| own(line.trim_start()));
    lines.any(|text| text.starts_with("kernel panic: "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domains_write_no_lines_of_the_kernel() {
        for (line, text) in [
            (
                "[    1.000001] kernel panic: cpu 0: Page",
                Some("kernel panic: cpu 0: Page"),
            ),
            (
                "[    1.000001] power off, status 7\r",
                Some("power off, status 7"),
            ),
            ("[    1.000001] Trefoil", Some("Trefoil")),
            ("[    1.000001] ext2: kernel panic: cpu 0", None),
            ("[    1.000001] kernel?panic?: cpu 0", None),
            ("[    1.000001] x: [    1.000001] kernel panic: y", None),
            ("[ext2] kernel panic: y", None),
            ("kernel panic: y", None),
            ("", None),
        ] {
            assert_eq!(own(line), text, "{line}");
        }
        assert!(has_panic(
            "x\n  kernel log:\n    [    0.4] kernel panic: cpu 1: fault"
        ));
        assert!(!has_panic("[    0.4] x: kernel panic: cpu 1: fault\n"));
    }

    #[test]
    fn what_a_log_brings_is_no_command_to_a_terminal() {
        let file = std::env::temp_dir().join(format!("trefoil-log-{}", std::process::id()));
        fs::write(&file, "[    0.1] a\x1b[2J: b\r\n[    0.2] \u{9b}c\x07").expect("written");
        let mut log = Log::new(&file, Path::new("/nonexistent/kernel"));
        assert_eq!(log.text(), "[    0.1] a?[2J: b\n[    0.2] ?c?");
        fs::remove_file(file).expect("it is ours");
    }
}
