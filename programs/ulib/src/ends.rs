//! What `head` and `tail` have in common: their arguments, and a heading over each of several
//! files.

use crate::{Env, Error, Reader, Stop};
use alloc::vec::Vec;
use textutil::options::Options;

/// The arguments, with a first one such as `-5` (or `+5` if `plus` is true) as `-n5`. It must be
/// the first, since behind an option it would be its value.
pub fn arguments(env: &Env, plus: bool) -> Vec<Vec<u8>> {
    let mut arguments = env.arguments().to_vec();
    if let Some(first) = arguments.first_mut() {
        let number = match first.as_slice() {
            [b'-', digits @ ..] => digits,
            [b'+', ..] if plus => first.as_slice(),
            _ => b"",
        };
        let digits = number.strip_prefix(b"+").unwrap_or(number);
        if !digits.is_empty() && digits.iter().all(u8::is_ascii_digit) {
            *first = [b"-n", number].concat();
        }
    }
    arguments
}

/// Has `show` print a part of each file, or of the standard input if none is named; with headings
/// for several, always with `-v`, and never with `-q`. The exit status. An error of a file is the
/// inner one of `show`, and is told; one of the output the outer.
///
/// # Errors
/// Those of the output.
pub fn each_file(
    env: &Env,
    options: &Options,
    show: impl Fn(Reader) -> Result<Result<(), Error>, Stop>,
) -> Result<i32, Stop> {
    let mut files = options.operands.clone();
    if files.is_empty() {
        files = Vec::from([b"-".to_vec()]);
    }
    let headings = options.has('v') || (files.len() > 1 && !options.has('q'));
    let mut first = true;
    for file in &files {
        match env.input(file) {
            Ok(reader) => {
                if headings {
                    heading(env, file, first)?;
                }
                first = false;
                if let Err(error) = show(reader)? {
                    env.fail(file, &error);
                }
            }
            Err(error) => env.fail(file, &error),
        }
    }
    Ok(env.status())
}

fn heading(env: &Env, file: &[u8], first: bool) -> Result<(), Stop> {
    let name = if file == b"-" {
        b"standard input"
    } else {
        file
    };
    env.write(if first { b"==> " } else { b"\n==> " })?;
    env.write(name)?;
    env.write(b" <==\n")
}
