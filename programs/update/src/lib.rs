//! `update [-o OPTIONS] NAME IMAGE`: replaces a running domain by another image.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::format;
use alloc::string::String;
use interfaces::{RVec, Text, UpdateError, Updated, Updater};
use ulib::{Env, Error, Handle, Process, Program, RpcResult, Stop, println, rpc_error_text};

const USAGE: &str = "
usage: update [-o OPTIONS] NAME IMAGE
Replaces the domain NAME by the image in the file IMAGE, while it is used: calls to it wait for a moment, and its state is
handed over if it has any. If the new image does not come up, the old one goes on. From then on restarts use the new image.
-o: options for the new image, instead of those of the manifest.";

/// The longest image, in bytes.
const LONGEST: u64 = 64 << 20;

/// The entry of the program.
///
/// # Errors
/// There is no memory for it.
pub fn start(process: Handle<dyn Process>) -> RpcResult<Handle<dyn Program>> {
    ulib::program(process, main)
}

fn main(env: &Env) -> Result<i32, Stop> {
    let options = env.options(USAGE, "o:")?;
    let [name, image] = options.operands.as_slice() else {
        return Err(Stop::usage(
            "a name and an image are needed; `update --help` says more",
        ));
    };
    let file = read(env, image)?;
    let text = options.value('o').map(RVec::from_slice).transpose()?;
    let updater = env.service::<dyn Updater>("updater")?;
    let shown = String::from_utf8_lossy(name).into_owned();
    match updater.update(Text::new(&shown), file, text) {
        Ok(updated) => say(env, &shown, &updated)?,
        Err(error) => {
            let subject = match error {
                UpdateError::BadImage(_) | UpdateError::Unfit(_) => image,
                _ => name,
            };
            return Err(Stop::about(subject, Error::text(&explain(&error))));
        }
    }
    Ok(0)
}

/// The whole file.
fn read(env: &Env, path: &[u8]) -> Result<RVec<u8>, Stop> {
    let about = |error| Stop::about(path, error);
    let size = env.metadata(path, true).map_err(about)?.size;
    if size > LONGEST {
        return Err(about(Error::text("too long for an image")));
    }
    let mut file = RVec::filled(0, size as usize)?;
    let mut reader = env.open(path).map_err(about)?;
    let mut filled = 0;
    while filled < file.len() {
        let part = reader.fill().map_err(about)?;
        if part.is_empty() {
            break;
        }
        let count = part.len().min(file.len() - filled);
        file[filled..filled + count].copy_from_slice(&part[..count]);
        reader.consume(count);
        filled += count;
    }
    Ok(file.truncated(filled))
}

fn say(env: &Env, name: &str, updated: &Updated) -> Result<(), Stop> {
    let Updated {
        id,
        image,
        waited,
        repeated,
        handed_over,
    } = updated;
    let mut more = String::new();
    if *handed_over {
        more += ", state handed over";
    }
    if *repeated > 0 {
        more += &format!(", {repeated} calls repeated");
    }
    let (whole, part) = (waited / 1_000_000, waited / 1000 % 1000);
    println!(
        env,
        "{name}: image {image} serves as instance {id}; calls waited {whole}.{part:03} ms{more}"
    )
}

fn explain(error: &UpdateError) -> String {
    match error {
        UpdateError::Rpc(error) => String::from(rpc_error_text(error)),
        UpdateError::NoSuchDomain => String::from("no such domain in the manifest"),
        UpdateError::BadImage(why) => format!("the image is refused: {why}"),
        UpdateError::Unfit(why) => format!("the image does not fit: {why}"),
        UpdateError::NoShadow(why) => format!("it cannot be updated while it is used: {why}"),
        UpdateError::Kept(why) => format!("the old image goes on: {why}"),
        UpdateError::Lost(why) => {
            format!("the update failed and the old image is not as before: {why}")
        }
    }
}
