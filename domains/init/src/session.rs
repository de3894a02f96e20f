//! The personality and its shell, from the first prompt to power-off.
//!
//! Interactive, the shell is started again when it ends, and after a crash of the personality. With
//! `exec=` on the command line it runs one line, and the machine is switched off with the line's
//! status.

use crate::failure::{self, Failure};
use crate::former::{self, Former};
use crate::instances::grants;
use crate::last_resort;
use crate::service::Complaint;
use crate::system::System;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use domain_rt::{log, time};
use interfaces::{
    Console, Errno, ExitStatus, FsError, Handle, LoadError, Personality, RVec, RpcError, RpcResult,
    StartError,
};
use manifest::DomainIndex;

/// The status of a program that crashed or whose personality did.
const STATUS_CRASHED: u8 = 134;
/// The status of a program that was killed.
const STATUS_KILLED: u8 = 137;
/// A shell that ended sooner than this after its start is not started again at once, in
/// nanoseconds.
const SHORT_LIFE: u64 = 200_000_000;

/// Starts all domains and then runs the shell until the machine is switched off.
pub fn run(system: &Arc<System>) {
    let former = former::outlive(system);
    system.restarts.open();
    match former {
        Former::None => start_all(system),
        Former::Ended => {
            start_all(system);
            say(system, "init crashed: everything was started anew");
        }
        Former::TakenOver => {
            // Those that died together with `init`.
            system.restarts.look_at_all();
            start_all(system);
            let status = former::shell(system);
            if system.words.exec.is_some() {
                return shut_down(system, status.map_or(STATUS_CRASHED, code));
            }
        }
        Former::LineEnded => {
            say(system, "init crashed, and the command line with it");
            return shut_down(system, STATUS_CRASHED);
        }
    }
    let Some(personality) = &system.manifest.boot.personality else {
        return log!("the manifest names no personality: all domains are started, and that is all");
    };
    let index = system
        .manifest
        .index_of(personality)
        .expect("checked when the manifest was read");
    let status = match serve(system, index) {
        Ok(status) => status,
        Err(cause) => {
            say(system, &format!("cannot go on: {cause}"));
            1
        }
    };
    shut_down(system, status);
}

/// Starts all domains. What does not start is said on the console, once for each cause; where it
/// begins with a device that a machine may lack, in the log alone.
fn start_all(system: &Arc<System>) {
    let mut down: Vec<(String, DomainIndex, Vec<&str>)> = Vec::new();
    let at_boot = |index: &&DomainIndex| system.manifest[**index].disk.is_none();
    for &index in system.order.iter().filter(at_boot) {
        let name = system.manifest[index].name.as_str();
        let Err(failure) = system.with_instance(index, None, |_| ()) else {
            continue;
        };
        let cause = failure.text();
        match down.iter_mut().find(|(known, ..)| *known == cause) {
            Some((.., names)) => names.push(name),
            None => down.push((cause, index, Vec::from([name]))),
        }
    }
    // Domains start behind those that they need, so the first one is that whose fault it is.
    for (cause, first, names) in down {
        let text = format!("{cause} (not started: {})", names.join(", "));
        match system.manifest[first].is_optional {
            true => log!("{text}"),
            false => say(system, &text),
        }
    }
}

/// Runs shells one after the other; the status of the last one, with which the machine is to be
/// switched off.
///
/// # Errors
/// There is no personality or no shell, in words.
fn serve(system: &Arc<System>, index: DomainIndex) -> Result<u8, String> {
    let once = system.words.exec.is_some();
    let mut failed = None;
    loop {
        let (id, personality) = match grants::instance_offer(system, index, failed, None) {
            Ok(offered) => offered,
            Err(Failure::NoMemory(_)) => {
                time::sleep(SHORT_LIFE);
                continue;
            }
            Err(failure) => return Err(failure.text()),
        };
        let personality = personality.downcast::<dyn Personality>();
        let personality = personality
            .map_err(|_| String::from("the manifest's personality does not offer one"))?;
        let began = time::now();
        let result = run_shell(system, &personality);
        match result {
            Ok(status) if once => return Ok(code(status)),
            Ok(status) => log!("the shell ended ({status:?}); starting it again"),
            Err(Ended::Crashed) if once => {
                say(
                    system,
                    "the personality crashed, and the command line with it",
                );
                return Ok(STATUS_CRASHED);
            }
            Err(Ended::Crashed) => {
                say(
                    system,
                    "the personality crashed: its programs have ended, and the shell starts again",
                );
                failed = Some(Complaint { of: id, by: index });
            }
            Err(Ended::NoMemory) => log!("there is no memory for a shell now"),
            Err(Ended::NoShell(cause)) => return Err(cause),
        }
        if time::now() - began < SHORT_LIFE {
            time::sleep(SHORT_LIFE);
        }
    }
}

/// How running a shell ended without an exit status.
enum Ended {
    Crashed,
    /// There may be some later.
    NoMemory,
    NoShell(String),
}

/// Runs the shell, or the other one if it cannot be started. A disk without a shell is nothing
/// unusual, so that is only said in the log; other causes are said to the user.
fn run_shell(
    system: &Arc<System>,
    personality: &Handle<dyn Personality>,
) -> Result<ExitStatus, Ended> {
    let boot = &system.manifest.boot;
    let mut causes = Vec::new();
    for path in [&boot.shell, &boot.fallback].into_iter().flatten() {
        let error = match try_shell(system, personality, path) {
            Ok(status) => return Ok(status),
            Err(Errno::Rpc(RpcError::DomainCrashed)) => return Err(Ended::Crashed),
            Err(
                Errno::Rpc(RpcError::NoMemory)
                | Errno::Fs(FsError::Rpc(RpcError::NoMemory))
                | Errno::BadImage(LoadError::Rpc(RpcError::NoMemory))
                | Errno::NoStart(
                    StartError::Rpc(RpcError::NoMemory) | StartError::Failed(RpcError::NoMemory),
                ),
            ) => return Err(Ended::NoMemory),
            Err(error) => error,
        };
        let cause = format!("{path} cannot be started: {}", failure::program(&error));
        match error {
            Errno::Fs(FsError::NotFound) => log!("{cause}"),
            _ => say(system, &cause),
        }
        causes.push(cause);
    }
    if causes.is_empty() {
        causes.push("the manifest names no shell".to_string());
    }
    Err(Ended::NoShell(causes.join("; ")))
}

fn try_shell(
    system: &Arc<System>,
    personality: &Handle<dyn Personality>,
    path: &str,
) -> Result<ExitStatus, Errno> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let mut arguments = Vec::from(name.as_bytes());
    arguments.push(0);
    if let Some(line) = &system.words.exec {
        arguments.extend_from_slice(b"-c\0");
        arguments.extend_from_slice(line);
        arguments.push(0);
    }
    let path = RVec::from_slice(path.as_bytes())?;
    let arguments = RVec::from_slice(&arguments)?;
    match system.steward() {
        Ok(Some((_, steward))) => steward.run(personality.duplicate()?, path, arguments),
        _ => personality.run(path, arguments),
    }
}

fn code(status: ExitStatus) -> u8 {
    match status {
        ExitStatus::Exited(code) => code as u8,
        ExitStatus::Killed => STATUS_KILLED,
        ExitStatus::Crashed => STATUS_CRASHED,
    }
}

/// Says something in the log and on the console; with `exec=`, where error output goes.
fn say(system: &System, text: &str) {
    log!("{text}");
    let once = system.words.exec.is_some();
    let line = format!("init: {text}{}", if once { "\n" } else { "\r\n" });
    let written = console(system, once).is_some_and(|console| {
        let line = RVec::from_slice(line.as_bytes());
        line.is_ok_and(|line| console.write(&line).is_ok())
    });
    if !written {
        last_resort::write(&system.kernel.hardware, text, once);
    }
}

/// The console, or the place for error output.
fn console(system: &System, errors: bool) -> Option<Handle<dyn Console>> {
    let name = system.manifest.boot.console.as_ref()?;
    let mut offers = system.services[system.manifest.index_of(name)?]
        .offers()
        .ok()?;
    let wanted = if errors {
        offers.len().min(2).checked_sub(1)?
    } else {
        0
    };
    let console = (wanted < offers.len()).then(|| offers.swap_remove(wanted))?;
    console.downcast::<dyn Console>().ok()
}

/// Has every file system write what it holds back, those first that need others, and switches the
/// machine off.
fn shut_down(system: &System, status: u8) {
    for &index in system.order.iter().rev() {
        let name = &system.manifest[index].name;
        // Nobody waits for what is being started just now.
        let _ = system.services[index].sync(name);
    }
    if let Err(error) = off(system, status) {
        log!("the machine cannot be switched off: {error}");
    }
}

fn off(system: &System, status: u8) -> RpcResult<()> {
    system.kernel.power.off(status)
}
