//! The process that has the signing key. Nothing else reads it.
//!
//! What builds reads manifests, sources, interface files and object files, all of which a domain's
//! author has written; so it does not have the key. It leaves finished images in a folder and
//! starts this very program once more with a task in its environment. That process reads bytes,
//! signs them as they are, writes them, and ends.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::project::Project;
use crate::{build, keys, tool};

/// What the signer is to do: [`PUBLIC`] or [`SIGN`].
const TASK: &str = "TREFOIL_SIGNER";
/// Print the public key.
const PUBLIC: &str = "public";
/// Sign all files below a folder into another one.
const SIGN: &str = "sign";

/// The public key of the build folder, in hexadecimal; a key is made if there is none.
///
/// # Errors
/// If the signer fails.
pub fn public_key(project: &Project) -> Result<String> {
    let text = tool::output(signer(PUBLIC).arg(&project.out))?;
    let key = text.trim();
    ensure!(
        key.len() == 64 && key.bytes().all(|byte| byte.is_ascii_hexdigit()),
        "the signer printed {key:?} for a key"
    );
    Ok(key.to_string())
}

/// Signs every file below `from`; the results go to the same places below `to`.
///
/// # Errors
/// If the signer fails.
pub fn sign(project: &Project, from: &Path, to: &Path) -> Result<()> {
    tool::run(signer(SIGN).arg(&project.out).arg(from).arg(to))
}

/// This program, with nothing in its environment but the task.
fn signer(task: &str) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.env_clear().env(TASK, task).stdin(Stdio::null());
    command
}

/// If we were started as the signer: does what is to be done, and says how to end. `main` asks
/// before all else.
pub fn called() -> Option<ExitCode> {
    let task = env::var_os(TASK)?;
    let paths: Vec<PathBuf> = env::args_os().skip(1).map(PathBuf::from).collect();
    Some(match perform(&task, &paths) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: signing: {error:#}");
            ExitCode::FAILURE
        }
    })
}

fn perform(task: &OsStr, paths: &[PathBuf]) -> Result<()> {
    match (task.to_str(), paths) {
        (Some(PUBLIC), [out]) => {
            println!("{}", keys::hex(keys::load_or_make(out)?.pk.as_ref()));
            Ok(())
        }
        (Some(SIGN), [out, from, to]) => sign_below(out, from, to),
        _ => bail!("there is no such task"),
    }
}

fn sign_below(out: &Path, from: &Path, to: &Path) -> Result<()> {
    let key = keys::load_or_make(out)?;
    for file in build::files_below(from)? {
        ensure!(!file.is_symlink(), "{} is a link", file.display());
        let image = to.join(file.strip_prefix(from)?);
        fs::create_dir_all(image.parent().context("an image has a folder")?)?;
        fs::write(&image, keys::sign(&key, fs::read(&file)?))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_files_below_a_folder_are_signed_and_links_are_not() {
        let root = env::temp_dir().join(format!("trefoil-signer-{}", std::process::id()));
        let (from, to) = (root.join("from"), root.join("to"));
        fs::create_dir_all(from.join("boot/bin")).expect("made");
        fs::write(from.join("boot/bin/ls"), "image").expect("written");
        let paths = [root.clone(), from.clone(), to.clone()];
        perform(OsStr::new(SIGN), &paths).expect("signed");
        let signed = fs::read(to.join("boot/bin/ls")).expect("there");
        let key = keys::load_or_make(&root).expect("made");
        assert_eq!(signed, keys::sign(&key, b"image".to_vec()));
        std::os::unix::fs::symlink(root.join("signing/key"), from.join("key")).expect("made");
        assert!(perform(OsStr::new(SIGN), &paths).is_err());
        assert!(perform(OsStr::new("show"), &paths[..1]).is_err());
        fs::remove_dir_all(root).expect("removed");
    }
}
