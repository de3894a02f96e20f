//! Functions: calls, `local` and `return`.

use crate::ast::Function;
use crate::builtin::{Outcome, number};
use crate::launch::lossy;
use crate::run::{Flow, Shell};
use crate::system::System;
use crate::word::whole_name;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

impl<S: System> Shell<S> {
    /// Runs a function with these positional parameters.
    #[inline(never)]
    pub(crate) fn call_function(&mut self, function: &Function, arguments: &[Vec<u8>]) -> Flow {
        let outer = self.enter_function(arguments);
        let flow = self.command(&function.body);
        self.leave_function(*outer);
        match flow {
            Flow::Return => Flow::Next,
            other => other,
        }
    }

    /// What the caller has instead: positional parameters and loops.
    #[inline(never)]
    fn enter_function(&mut self, arguments: &[Vec<u8>]) -> Box<(Vec<Vec<u8>>, u32)> {
        let mut positional = Vec::from([self.positional.first().cloned().unwrap_or_default()]);
        positional.extend_from_slice(arguments);
        let outer = core::mem::replace(&mut self.positional, positional);
        self.hidden.push(Vec::new());
        Box::new((outer, core::mem::take(&mut self.loops)))
    }

    #[inline(never)]
    fn leave_function(&mut self, outer: (Vec<Vec<u8>>, u32)) {
        (self.positional, self.loops) = outer;
        for (name, old) in self.hidden.pop().into_iter().flatten().rev() {
            self.put_back(name, old);
        }
    }

    /// `local NAME[=VALUE]...`
    pub(crate) fn local(&mut self, arguments: &[Vec<u8>]) -> Outcome {
        if self.hidden.is_empty() {
            self.complain("local: not in a function");
            return Ok(self.fatal(2));
        }
        for argument in arguments {
            let (name, value) = halves(argument);
            let name = variable_name(name)?;
            let old = self.variables.get(name).cloned();
            if let Some(hidden) = self.hidden.last_mut() {
                hidden.push((name.to_string(), old));
            }
            let assigned = value.map_or(Ok(()), |value| self.assign(name, value.to_vec()));
            if let Err(error) = assigned {
                self.complain(&format!("local: {error}"));
                return Ok(self.fatal(2));
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
