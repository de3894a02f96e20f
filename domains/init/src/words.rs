//! The kernel's command line.
//!
//! Words between blanks. `init` knows one itself: `exec=LINE`, percent-encoded, has the shell run
//! one line instead of reading from the console, and the machine switched off with the line's
//! status. Other words go to the domains whose `pass` in the manifest names them.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use interfaces::{CommandLine, Handle};

/// The words.
pub struct Words {
    all: Vec<String>,
    /// The line that the shell is to run, if there is one.
    pub exec: Option<Vec<u8>>,
}

impl Words {
    /// Reads the line that the machine was started with.
    ///
    /// # Errors
    /// In words.
    pub fn read(line: &Handle<dyn CommandLine>) -> Result<Self, String> {
        let text = line
            .text()
            .map_err(|error| format!("the command line: {error}"))?;
        Words::parse(&String::from_utf8_lossy(&text))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let all: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        let exec = all.iter().find_map(|word| word.strip_prefix("exec="));
        let decode = |line: &str| {
            decode(line).ok_or_else(|| "the command line: exec= is not percent-encoded".to_string())
        };
        let exec = exec.map(decode).transpose()?;
        Ok(Words { all, exec })
    }

    /// The whole line.
    pub fn line(&self) -> String {
        self.all.join(" ")
    }

    /// What `wanted`, a word in a domain's `pass`, adds to the domain's options.
    pub fn passed<'a>(&'a self, wanted: &'a str) -> Option<&'a str> {
        if wanted.ends_with('=') {
            return self
                .all
                .iter()
                .map(String::as_str)
                .find(|word| word.starts_with(wanted));
        }
        let there = |word: &String| {
            word.strip_prefix(wanted)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
        };
        self.all.iter().any(there).then_some(wanted)
    }
}

/// Reads `%XX` as the byte with that number, all else as it stands.
fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, behind)) = rest.split_first() {
        if byte != b'%' {
            bytes.push(byte);
            rest = behind;
            continue;
        }
        let digits = core::str::from_utf8(behind.get(..2)?).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = &behind[2..];
    }
    Some(bytes)
}
