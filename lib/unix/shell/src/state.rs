//! What a new shell must know to stand in for this one: there is no `fork`, so a subshell is a new
//! process that gets the state of the old one as text.
//!
//! The text's first line has numbers: `$$`, `$?`, `$!` (0: none), and the letters of `set` behind a
//! `-`. What follows is shell source: the variables that are not exported, and the functions.

use crate::builtin::number;
use crate::expand::Environment as _;
use crate::launch::quoted_one;
use crate::run::{Shell, Variable};
use crate::system::System;
use alloc::format;
use alloc::vec::Vec;

impl<S: System> Shell<S> {
    /// All that a subshell must know besides the environment and the positional parameters.
    pub(crate) fn state(&self) -> Vec<u8> {
        let mut switches = self.switches;
        switches.exit_on_error &= self.guarded == 0;
        let letters: Vec<u8> = self.flags();
        let letters = letters
            .into_iter()
            .filter(|letter| *letter != b'i' && (*letter != b'e' || switches.exit_on_error));
        let mut text = format!(
            "{} {} {} -",
            self.first_pid.unwrap_or_else(|| self.system.pid()),
            self.status,
            self.last_background.unwrap_or(0)
        )
        .into_bytes();
        text.extend(letters);
        text.push(b'\n');
        for (name, variable) in &self.variables {
            text.extend(assignment(name, variable));
        }
        for function in self.functions.values() {
            text.extend_from_slice(&function.text);
            text.push(b'\n');
        }
        text
    }

    /// Takes over what [`state`](Self::state) of another shell has given.
    pub fn restore(&mut self, state: &[u8]) {
        let end = state.iter().position(|&byte| byte == b'\n');
        let (first, rest) = state.split_at(end.unwrap_or(state.len()));
        self.source(rest);
        let mut words = first.split(|&byte| byte == b' ');
        let mut next = || words.next().and_then(number).unwrap_or(0);
        let (pid, status, background) = (next(), next(), next());
        self.first_pid = u32::try_from(pid).ok().filter(|&pid| pid != 0);
        self.last_background = u32::try_from(background).ok().filter(|&pid| pid != 0);
        let letters = words.next().unwrap_or_default();
        for &letter in letters.iter().skip(1) {
            self.switch(letter, true);
        }
        self.status = i32::try_from(status).unwrap_or(0);
    }
}

/// Source that sets a variable which is not in the environment.
fn assignment(name: &str, variable: &Variable) -> Vec<u8> {
    let mut text = Vec::new();
    if let (Some(value), false) = (&variable.value, variable.exported) {
        text.extend_from_slice(&[name.as_bytes(), b"=", &quoted_one(value)].concat());
        text.push(b'\n');
    }
    if variable.value.is_none() && variable.exported {
        text.extend_from_slice(format!("export {name}\n").as_bytes());
    }
    if variable.read_only {
        text.extend_from_slice(format!("readonly {name}\n").as_bytes());
    }
    text
}
