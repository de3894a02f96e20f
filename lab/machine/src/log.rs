//! The kernel's log, with stacks in words.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use symbols::Reader;

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
            let kernel = &self.kernel;
            let reader = self.reader.get_or_insert_with(|| reader(kernel));
            self.text.push_str(&reader.lines(&lines));
        }
        &self.text[before..]
    }

    /// All of it, so far.
    pub fn text(&mut self) -> String {
        self.news();
        format!("{}{}", self.text, String::from_utf8_lossy(&self.rest))
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
