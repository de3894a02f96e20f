//! `dd [if=FILE] [of=FILE] [bs=SIZE] ...`: copies blocks.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::rc::Rc;
use alloc::vec::Vec;
use interfaces::{OpenFlags, RVec};
use ulib::{Env, Error, Handle, Process, Program, RpcResult, Stop};

const USAGE: &str = "
usage: dd [if=FILE] [of=FILE] [bs=SIZE] [count=N] [skip=N] [seek=N] [conv=notrunc,fsync,fdatasync] [status=none]
Copies N blocks of SIZE (512) bytes, or all, from FILE or the standard input to FILE or the standard output, after
skipping blocks of the input (skip) and of the output (seek), where FILE then ends unless conv says notrunc. Sizes may end in k, M or G.";

/// Largest block, in bytes.
const LARGEST: u64 = 4 << 20;

/// The entry of the program.
///
/// # Errors
/// There is no memory for it.
pub fn start(process: Handle<dyn Process>) -> RpcResult<Handle<dyn Program>> {
    ulib::program(process, main)
}

#[derive(Default)]
struct Settings {
    input: Option<Vec<u8>>,
    output: Option<Vec<u8>>,
    block: u64,
    count: Option<u64>,
    skip: u64,
    seek: u64,
    keep: bool,
    quiet: bool,
    sync: bool,
    sync_data: bool,
}

fn main(env: &Env) -> Result<i32, Stop> {
    let mut settings = Settings {
        block: 512,
        ..Settings::default()
    };
    for operand in &env.options(USAGE, "")?.operands {
        if take(&mut settings, operand).is_none() {
            return Err(Stop::about(
                operand,
                Error::text("not understood; `dd --help` says more"),
            ));
        }
    }
    if settings.block == 0 || settings.block > LARGEST {
        return Err(Stop::usage("bs: 1 to 4M are possible"));
    }
    let process = env.process().clone();
    let input = match &settings.input {
        Some(path) => open(env, path, false, false)?,
        None => 0,
    };
    let output = match &settings.output {
        Some(path) => open(env, path, true, !settings.keep && settings.seek == 0)?,
        None => 1,
    };
    if settings.seek > 0 {
        let start = settings.seek.saturating_mul(settings.block);
        process
            .seek(output, start)
            .map_err(|errno| Stop::about(b"seek", errno))?;
        if settings.output.is_some() && !settings.keep {
            process
                .truncate(output, start)
                .map_err(|errno| Stop::about(b"seek", errno))?;
        }
    }
    copy(env, &process, &settings, input, output)
}

fn take(settings: &mut Settings, operand: &[u8]) -> Option<()> {
    let sign = operand.iter().position(|&byte| byte == b'=')?;
    let (name, value) = (&operand[..sign], &operand[sign + 1..]);
    match name {
        b"if" => settings.input = Some(value.to_vec()),
        b"of" => settings.output = Some(value.to_vec()),
        b"bs" | b"ibs" | b"obs" => settings.block = size(value)?,
        b"count" => settings.count = Some(size(value)?),
        b"skip" => settings.skip = size(value)?,
        b"seek" => settings.seek = size(value)?,
        b"conv" => {
            for word in value.split(|&byte| byte == b',') {
                match word {
                    b"notrunc" => settings.keep = true,
                    b"fsync" => settings.sync = true,
                    b"fdatasync" => settings.sync_data = true,
                    _ => return None,
                }
            }
        }
        b"status" => match value {
            b"none" => settings.quiet = true,
            b"noxfer" | b"progress" => {}
            _ => return None,
        },
        _ => return None,
    }
    Some(())
}

fn size(text: &[u8]) -> Option<u64> {
    let (digits, unit) = match text {
        [digits @ .., b'k' | b'K'] => (digits, 1 << 10),
        [digits @ .., b'M'] => (digits, 1 << 20),
        [digits @ .., b'G'] => (digits, 1 << 30),
        [digits @ .., b'b'] => (digits, 512),
        digits => (digits, 1),
    };
    let number: u64 = core::str::from_utf8(digits).ok()?.parse().ok()?;
    number.checked_mul(unit)
}

fn open(env: &Env, path: &[u8], write: bool, truncate: bool) -> Result<u32, Stop> {
    let flags = OpenFlags {
        read: !write,
        write,
        create: write,
        truncate,
        append: false,
        exclusive: false,
    };
    let opened = env.with_path(path, |process, path| process.open(path, flags));
    opened.map_err(|error| Stop::about(path, error))
}

/// Reads up to a whole block.
fn read_block(process: &Rc<Handle<dyn Process>>, input: u32, block: u64) -> Result<Vec<u8>, Error> {
    let mut whole = Vec::new();
    while (whole.len() as u64) < block {
        let rest = block as usize - whole.len();
        let part = process.read(input, RVec::filled(0, rest)?)?;
        if part.is_empty() {
            break;
        }
        whole.extend_from_slice(&part);
    }
    Ok(whole)
}

fn copy(
    env: &Env,
    process: &Rc<Handle<dyn Process>>,
    settings: &Settings,
    input: u32,
    output: u32,
) -> Result<i32, Stop> {
    let start = settings.skip.saturating_mul(settings.block);
    if settings.skip > 0 && process.seek(input, start).is_err() {
        for _ in 0..settings.skip {
            let skipped = read_block(process, input, settings.block);
            if skipped
                .map_err(|error| Stop::about(b"input", error))?
                .is_empty()
            {
                break;
            }
        }
    }
    let (mut full, mut part, mut bytes) = (0u64, 0u64, 0u64);
    while settings.count.is_none_or(|count| full + part < count) {
        let block = read_block(process, input, settings.block);
        let block = match block {
            Ok(block) if block.is_empty() => break,
            Ok(block) => block,
            Err(error) => {
                env.fail(settings.input.as_deref().unwrap_or(b"-"), &error);
                break;
            }
        };
        let shared = RVec::from_slice(&block)?;
        ulib::write_all(process, output, &shared)
            .map_err(|error| Stop::about(settings.output.as_deref().unwrap_or(b"-"), error))?;
        bytes += block.len() as u64;
        match block.len() as u64 == settings.block {
            true => full += 1,
            false => part += 1,
        }
    }
    let synced = match (settings.sync, settings.sync_data) {
        (true, _) => process.sync_file(output),
        (false, true) => process.sync_data(output),
        _ => Ok(()),
    };
    synced.map_err(|errno| Stop::about(b"fsync", errno))?;
    if output != 1 {
        process
            .close(output)
            .map_err(|errno| Stop::about(b"output", errno))?;
    }
    if !settings.quiet {
        for line in ["in", "out"] {
            env.report(format_args!("{full}+{part} records {line}"));
        }
        env.report(format_args!("{bytes} bytes copied"));
    }
    Ok(env.status())
}
