//! Commands for whoever sits in front of the shell: `help`, `history`, `clear` and `which`.
//!
//! POSIX has none of them. They are builtins, because they tell what the shell knows, or because
//! nobody who has just booted should have to look for them.

use crate::builtin::Outcome;
use crate::launch::lossy;
use crate::run::{Flow, Shell};
use crate::system::System;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// The first line of help; the names of builtins and the last lines follow.
const HELP: &str = "\
This is a POSIX shell: `sh --help` has its language, `NAME --help` what a program does.
Programs are in /bin and /boot/bin; Tab completes, Ctrl-R searches what was typed before.
To begin with: ls / ; domains ; top ; crash virtio-blk ; dmesg ; poweroff
Built in:";

/// Columns of the list of builtins.
const WIDTH: usize = 78;

/// Clears screen and scrollback and goes to the first place (ECMA-48, ED and CUP).
const CLEAR: &[u8] = b"\x1b[H\x1b[2J\x1b[3J";

impl<S: System> Shell<S> {
    /// `help`
    pub(crate) fn help(&mut self) -> Outcome {
        let mut text = String::from(HELP);
        let mut column = WIDTH;
        for name in Self::builtin_names() {
            if column + 1 + name.len() > WIDTH {
                text.push_str("\n ");
                column = 1;
            }
            text.push(' ');
            text.push_str(name);
            column += 1 + name.len();
        }
        text.push('\n');
        Ok(self.put(text.as_bytes()))
    }

    /// `clear`
    pub(crate) fn clear(&mut self) -> Outcome {
        Ok(self.put(CLEAR))
    }

    /// `history [COUNT]`: the lines that were typed, numbered; the last COUNT of them.
    pub(crate) fn list_history(&mut self, arguments: &[Vec<u8>]) -> Outcome {
        let lines = self.system.history();
        let most = match arguments {
            [] => lines.len(),
            [count] => core::str::from_utf8(count)
                .ok()
                .and_then(|text| text.parse().ok())
                .ok_or_else(|| (2, format!("`{}` is no number", lossy(count))))?,
            _ => return Err((2, "one number at most".to_string())),
        };
        let mut text = String::new();
        for (number, line) in (1..).zip(&lines).skip(lines.len().saturating_sub(most)) {
            text += &format!("{number:5}  {}\n", lossy(line));
        }
        Ok(self.put(text.as_bytes()))
    }

    /// `which NAME...`: where programs are that would be run; 1 if one is not found.
    pub(crate) fn which(&mut self, arguments: &[Vec<u8>]) -> Outcome {
        let mut status = 0;
        for name in arguments {
            match self.find(name) {
                Ok(path) => {
                    self.put(&[&path[..], b"\n"].concat());
                }
                Err(_) => status = 1,
            }
        }
        self.status = status;
        Ok(Flow::Next)
    }
}
