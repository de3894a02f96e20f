//! Stacks as the kernel's log notes them, in words.
//!
//! When a domain dies the kernel notes what a debugger needs to find the frames of the thread that
//! was inside, and writes it to its log (`kernel/isolation/src/call/stack.rs`):
//!
//! ```text
//! stack 9: 0 is kernel cdfa5d2d84e99d82        what 0 stands for, and of which build it is
//! stack 9: 9 is ext2 0ff475ab16808da8          the same for domain 9
//! stack 9: in 9 at 0+3ea0a 0 ?                 what domain 9 did: instruction, stack pointer, rbp
//! stack 9: 8=0+3ea0a 2a0=^298                  words of the stack, by their places
//! stack 9: in 10 at 0+3e2e3 4d0 ?              where domain 10 called it
//! stack 9: end
//! ```
//!
//! When the kernel itself panics it tells of each processor in the same way, as `stack cpu0`.
//!
//! When the kernel itself panics it tells of each processor in the same way, as `stack cpu0`.
//!
//! `9+3579` is 0x3579 bytes into the image of domain 9, `^298` 0x298 bytes above the innermost
//! stack pointer. [`Reader`] puts the frames in their place, from the unwind tables and the lines
//! of the files with symbols, which the build leaves in `symbols` by the builds of the images.
//! Whatever the lines say, however wrong: it is told in the place of a frame.

mod files;
mod names;
pub mod note;
mod table;
mod unwind;

pub use unwind::Frame;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use files::Files;
use note::{Note, Noted};

/// Reads the log line by line.
pub struct Reader {
    files: Files,
    notes: HashMap<String, Note>,
}

impl Reader {
    /// Of a log of a system that was built into `out` and boots `kernel`. `root` is the folder of
    /// the sources.
    pub fn new(out: &Path, kernel: &Path, root: &Path) -> Self {
        Reader {
            files: Files::new(out, kernel, root),
            notes: HashMap::new(),
        }
    }

    /// The lines that stand for `line`, which ends without a line break: itself; none, if it is
    /// part of a note; or the frames, if it ends one.
    pub fn line(&mut self, line: &str) -> Vec<String> {
        let (time, text) = split_time(line);
        let Some((whose, text)) = note::of(text) else {
            return vec![line.into()];
        };
        let note = self.notes.entry(whose.into()).or_default();
        match note.add(text) {
            Noted::More => Vec::new(),
            Noted::Nonsense => vec![line.into()],
            Noted::End => {
                let note = self.notes.remove(whose).unwrap_or_default();
                let frames = unwind::lines(&note, &mut self.files);
                let said = frames.into_iter().map(|line| format!("{time}{line}"));
                said.collect()
            }
        }
    }

    /// The frames of a stack that did not come by the log, the innermost first.
    pub fn frames(&mut self, note: &Note) -> Vec<Frame> {
        unwind::frames(note, &mut self.files)
    }

    /// The text that stands for `text`, whole lines of a log.
    pub fn lines(&mut self, text: &str) -> String {
        let mut said = String::new();
        for line in text.split_inclusive('\n') {
            let bare = line.trim_end_matches(['\r', '\n']);
            let end = &line[bare.len()..];
            for line in self.line(bare) {
                said.push_str(&line);
                said.push_str(end);
            }
        }
        said
    }
}

/// The time in front of a line, with what separates it, and the rest.
fn split_time(line: &str) -> (&str, &str) {
    let end = match line.find("] ") {
        Some(at) if line.starts_with('[') => at + 2,
        _ => 0,
    };
    line.split_at(end)
}

/// Where the build leaves what belongs to a kernel: the nearest folder above it that has `symbols`.
pub fn folder_of(kernel: &Path) -> Option<PathBuf> {
    let mut folders = kernel.ancestors().skip(1);
    let found = folders.find(|folder| folder.join(FOLDER).is_dir())?;
    Some(found.to_path_buf())
}

/// The name of the folder with the files with symbols.
pub const FOLDER: &str = "symbols";

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: [&str; 6] = [
        "stack 9: 0 is kernel cdfa5d2d84e99d82",
        "stack 9: 9 is ext2 0ff475ab16808da8",
        "stack 9: in 9 at 9+3ea0a 0 ^10",
        "stack 9: 8=0+3ea0a 28=0+43f64 268=9+3579 2a0=^298",
        "stack 9: in 10 at 0+3e2e3 4d0 ?",
        "stack 9: end",
    ];

    fn reader() -> Reader {
        Reader::new(
            Path::new("/nowhere"),
            Path::new("/nowhere/trefoil"),
            Path::new("/"),
        )
    }

    #[test]
    fn other_lines_are_as_they_were() {
        let text = "[    0.1] boot\r\nstack: 7\n[ x\n";
        assert_eq!(reader().lines(text), text);
    }

    #[test]
    fn what_has_no_symbols_is_shown_by_its_offset() {
        let text: String = LINES
            .iter()
            .map(|line| format!("[    0.2] {line}\n"))
            .collect();
        let said = reader().lines(&text);
        let first = "[    0.2]     #0  ext2: +0x3ea0a (no symbols of build 0ff475ab16808da8)\n";
        assert!(said.starts_with(first), "{said}");
        assert!(
            said.contains("kernel: +0x3e2e3 (no symbols of kernel cdfa5d2d84e99d82)"),
            "{said}"
        );
    }

    #[test]
    fn two_stacks_may_come_at_once() {
        let mut reader = reader();
        let said: Vec<_> = LINES
            .iter()
            .flat_map(|line| [line.to_string(), line.replace("stack 9:", "stack cpu1:")])
            .flat_map(|line| reader.line(&line))
            .collect();
        assert_eq!(
            said.iter().filter(|line| line.contains("#0 ")).count(),
            2,
            "{said:?}"
        );
    }

    /// Whatever stands in the log: lines are lost, cut off, and their letters are others.
    #[test]
    fn nonsense_does_no_harm() {
        let mut random = 1_u64;
        let mut next = |below: usize| {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (random >> 33) as usize % below
        };
        let mut reader = reader();
        for _ in 0..20_000 {
            let mut line = LINES[next(LINES.len())].to_string().into_bytes();
            for _ in 0..next(4) {
                let at = next(line.len());
                line[at] = b"0123456789abcdef+^=?: xstack"[next(28)];
            }
            line.truncate(next(2 * line.len()).max(8));
            reader.line(&String::from_utf8_lossy(&line));
        }
        for line in LINES {
            reader.line(line);
        }
    }
}
