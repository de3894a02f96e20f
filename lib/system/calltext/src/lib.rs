//! Traced calls as text, for the host's tool and the system's program: what a call's numbers are
//! called, and which end belongs to which beginning. The names are the caller's: tables that `idlc`
//! has written.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod open;
#[cfg(test)]
mod tests;

pub use open::{MOST_OPEN, Open, Traced};

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// An argument: its name; in one word what is noted of it (`number`, `signed`, `truth`, `length`,
/// `variant`; any other word: nothing); of a variant the names.
type Argument = (&'static str, &'static str, &'static [&'static str]);
/// The number of an interface, its name, and those of its methods.
type Interface = (u64, &'static str, &'static [&'static str]);

/// What `idlc` has written of all interfaces.
#[derive(Clone, Copy, Debug)]
pub struct Tables {
    /// Their names.
    pub interfaces: &'static [Interface],
    /// In the same order, the arguments of each method.
    pub arguments: &'static [&'static [&'static [Argument]]],
}

impl Tables {
    fn place(&self, interface: u64) -> Option<usize> {
        let mut all = self.interfaces.iter();
        all.position(|(number, ..)| *number == interface)
    }

    /// `Block.open`.
    pub fn method(&self, interface: u64, method: u32) -> String {
        let Some(place) = self.place(interface) else {
            return format!("interface {interface:016x}, method {method}");
        };
        let (_, name, methods) = self.interfaces[place];
        match methods.get(method as usize) {
            Some(method) => format!("{name}.{method}"),
            None => format!("{name}, method {method}"),
        }
    }

    /// `sector 12, buffer 4096 elements`, from the numbers that were noted; `_` for what has none.
    pub fn arguments(&self, interface: u64, method: u32, numbers: &[u64]) -> String {
        let methods = self.place(interface).and_then(|at| self.arguments.get(at));
        let Some(arguments) = methods.and_then(|methods| methods.get(method as usize)) else {
            return "..".into();
        };
        // Lengths are noted behind all others.
        let is_number =
            |(_, word, _): &&Argument| ["number", "signed", "truth", "variant"].contains(word);
        let count = arguments.iter().filter(is_number).count();
        let (numbers, lengths) = numbers.split_at(count.min(numbers.len()));
        let (mut numbers, mut lengths) = (numbers.iter(), lengths.iter());
        let told = arguments.iter().map(|argument| {
            let number = match argument.1 {
                "length" => lengths.next(),
                _ if is_number(&argument) => numbers.next(),
                _ => None,
            };
            let value = number.map_or_else(|| "_".into(), |number| told(argument, *number));
            format!("{} {value}", argument.0)
        });
        told.collect::<Vec<_>>().join(", ")
    }
}

/// The number of an argument in words.
fn told((_, word, variants): &Argument, number: u64) -> String {
    match *word {
        "signed" => number.cast_signed().to_string(),
        "truth" => (number != 0).to_string(),
        "length" => format!("{number} elements"),
        "variant" => {
            let name = usize::try_from(number).ok().and_then(|at| variants.get(at));
            name.map_or_else(|| format!("variant {number}"), ToString::to_string)
        }
        _ => number.to_string(),
    }
}
