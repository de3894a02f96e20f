//! Functions: calls, `local` and `return`.

use crate::ast::Function;
use crate::builtin::{Outcome, number};
use crate::launch::lossy;
use crate::run::{Flow, Shell};
use crate::system::System;
use crate::word::whole_name;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

impl<S: System> Shell<S> {
    /// Runs a function with these positional parameters.
    #[inline(never)]
    pub(crate) fn call_function(&mut self, function: &Function, arguments: &[Vec<u8>]) -> Flow {
        let mut positional = Vec::from([self.positional.first().cloned().unwrap_or_default()]);
        positional.extend_from_slice(arguments);
        let outer = core::mem::replace(&mut self.positional, positional);
        let loops = core::mem::take(&mut self.loops);
        self.hidden.push(Vec::new());
        let flow = self.command(&function.body);
        self.loops = loops;
        self.positional = outer;
        for (name, old) in self.hidden.pop().into_iter().flatten().rev() {
            self.put_back(name, old);
        }
        match flow {
            Flow::Return => Flow::Next,
            other => other,
        }
    }

    /// `local NAME[=VALUE]...`
    pub(crate) fn local(&mut self, arguments: &[Vec<u8>]) -> Outcome {
        if self.hidden.is_empty() {
            return Err((2, "only in a function".to_string()));
        }
        for argument in arguments {
            let (name, value) = halves(argument);
            let name = variable_name(name)?;
            let old = self.variables.get(name).cloned();
            if let Some(hidden) = self.hidden.last_mut() {
                hidden.push((name.to_string(), old));
            }
            if let Some(value) = value {
                self.assign(name, value.to_vec())
                    .map_err(|error| (2, error))?;
            }
        }
        Ok(Flow::Next)
    }

    /// `return [STATUS]`
    pub(crate) fn return_builtin(&mut self, last: i32, arguments: &[Vec<u8>]) -> Outcome {
        self.status = match arguments.first() {
            None => last,
            Some(argument) => match number(argument) {
                Some(status) => (status & 0xff) as i32,
                None => return Err((2, format!("Illegal number: {}", lossy(argument)))),
            },
        };
        Ok(Flow::Return)
    }
}

/// `NAME=VALUE` in its halves.
pub(crate) fn halves(argument: &[u8]) -> (&[u8], Option<&[u8]>) {
    match argument.iter().position(|&byte| byte == b'=') {
        Some(at) => (&argument[..at], Some(&argument[at + 1..])),
        None => (argument, None),
    }
}

/// A variable's name.
pub(crate) fn variable_name(name: &[u8]) -> Result<&str, (i32, String)> {
    whole_name(name).ok_or_else(|| (2, format!("{}: not a variable name", lossy(name))))
}
