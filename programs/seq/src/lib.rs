//! `seq [-w] [-s TEXT] [FIRST [STEP]] LAST`: prints numbers.
#![no_std]
#![forbid(unsafe_code)]

use textutil::decimal::{Decimal, Sequence};
use ulib::{Env, Error, Handle, Process, Program, RpcResult, Stop, print};

const USAGE: &str = "
usage: seq [-w] [-s TEXT] [FIRST [STEP]] LAST
Prints the numbers from FIRST (1) to LAST in steps of STEP (1), each in a line or with TEXT between them.
-w: all equally wide, with zeros in front.";

/// The entry of the program.
///
/// # Errors
/// There is no memory for it.
pub fn start(process: Handle<dyn Process>) -> RpcResult<Handle<dyn Program>> {
    ulib::program(process, main)
}

fn main(env: &Env) -> Result<i32, Stop> {
    // A negative number looks like an option: only what stands in front of the numbers is one.
    let is_number = |argument: &[u8]| Decimal::parse(argument).is_some();
    let arguments = env.arguments();
    let first = arguments
        .iter()
        .position(|it| is_number(it))
        .unwrap_or(arguments.len());
    let options = env.options_of(&arguments[..first], USAGE, "ws:")?;
    let operands = &arguments[first..];
    if let Some(wrong) = options
        .operands
        .first()
        .or(operands.iter().find(|it| !is_number(it)))
    {
        return Err(Stop::about(wrong, Error::text("not a number")));
    }
    let number = |index: usize| operands.get(index).and_then(|text| Decimal::parse(text));
    let one = Decimal {
        digits: 1,
        places: 0,
    };
    let (first, step, last) = match (number(0), number(1), number(2)) {
        (Some(last), None, _) => (one, one, last),
        (Some(first), Some(last), None) => (first, one, last),
        (Some(first), Some(step), Some(last)) if operands.len() == 3 => (first, step, last),
        _ => {
            return Err(Stop::usage(
                "one to three numbers are needed; `seq --help` says more",
            ));
        }
    };
    let numbers = Sequence::new(first, step, last);
    let numbers = numbers.ok_or_else(|| Stop::usage("the step must not be zero"))?;
    let width = if options.has('w') { numbers.width() } else { 0 };
    show(env, numbers, options.value('s').unwrap_or(b"\n"), width)?;
    Ok(0)
}

fn show(env: &Env, numbers: Sequence, between: &[u8], width: usize) -> Result<(), Stop> {
    let mut any = false;
    for number in numbers {
        if any {
            env.write(between)?;
        }
        any = true;
        match number.digits < 0 {
            true => {
                let positive = Decimal {
                    digits: -number.digits,
                    ..number
                };
                print!(env, "-{}", Padded(positive, width.saturating_sub(1)))?;
            }
            false => print!(env, "{}", Padded(number, width))?,
        }
    }
    if any { env.write(b"\n") } else { Ok(()) }
}

/// A number with zeros in front up to a width.
struct Padded(Decimal, usize);

impl core::fmt::Display for Padded {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let places = self.0.places as usize;
        let shown = self
            .0
            .digits
            .checked_ilog10()
            .map_or(1, |log| log as usize + 1);
        let length = shown.max(places + 1) + usize::from(places > 0);
        for _ in length..self.1 {
            f.write_str("0")?;
        }
        self.0.fmt(f)
    }
}
