//! Starting a program as a process, and seeing it to its end.
//!
//! A process lives like this: its file is read and verified ([`Images`](crate::images::Images)); it
//! gets a number; its domain is started, on the thread of who asked; a thread of its own calls the
//! program's `run`. When that returns, whatever the reason, the domain is ended, the descriptors
//! are closed, and when the kernel has taken back all memory the status is noted and whoever waits
//! for it goes on. If the program returned by itself, alone and with little memory, the status is
//! noted first.

use alloc::sync::Arc;
use core::array;
use domain_rt::{log, time};
use interfaces::{
    AnyHandle, CrashReason, DomainSpec, Errno, ExitStatus, FsError, Handle, Program, RVec,
    RpcError, RpcResult, StartError, Text,
};
use vfs::walk::{file_name, walk};

use crate::calls::Calls;
use crate::description::Description;
use crate::descriptors::Descriptors;
use crate::errors;
use crate::images::Prepared;
use crate::ledger::{Charge, Later, PROCESS};
use crate::names;
use crate::process::{Birth, Directory, Process, Running};
use crate::script;
use crate::system::System;
use crate::volumes::Node;

/// Most bytes of arguments and environment together.
const ARGUMENTS_LIMIT: usize = 2 * 1024 * 1024;

/// How long to wait before a wait that was cut short is tried again, in nanoseconds.
const AGAIN: u64 = 1_000_000;

/// Private memory and memory objects, in bytes, of a program whose memory nobody has to wait for.
const LIGHT: u64 = 1 << 20;

/// Most threads of a job, unless one of its programs alone may have more.
const THREADS_OF_JOB: u32 = 256;

/// A program to start.
pub struct Launch {
    /// Who starts it, for `wait`.
    pub parent: u32,
    /// The session it belongs to; `None`: a new one.
    pub session: Option<u32>,
    /// The working directory: paths are relative to it, and the process starts in it.
    pub directory: Arc<Directory>,
    /// Path of the image.
    pub path: RVec<u8>,
    /// Arguments, each followed by a zero byte.
    pub arguments: RVec<u8>,
    /// Environment, each followed by a zero byte.
    pub environment: RVec<u8>,
    /// Descriptors 0, 1, 2.
    pub descriptors: [Option<Arc<Description>>; 3],
    /// Ctrl-C does not reach it.
    pub background: bool,
    /// The job it belongs to; `None`: a new one.
    pub job: Option<u32>,
}

/// Starts a program; its number.
///
/// # Errors
/// Those of the file system, the loader and the start; `Invalid` if the arguments are too long.
pub fn launch(system: &Arc<System>, mut launch: Launch) -> Result<u32, Errno> {
    if launch
        .arguments
        .len()
        .saturating_add(launch.environment.len())
        > ARGUMENTS_LIMIT
    {
        return Err(Errno::Invalid);
    }
    let prepared = names::look_again(|_| find_image(system, &mut launch))?;
    let name = file_name(&launch.path);
    let charged = PROCESS + launch.arguments.len() + launch.environment.len();
    let job = launch.job.unwrap_or_else(|| system.table.new_job());
    let ledger = system.ledger(job);
    let birth = Birth {
        charge: Charge::new(&ledger, charged)?,
        // It goes to the kernel's log, and to the terminals of those who ask for all processes.
        name: core::str::from_utf8(name).map_or(prepared.name, Text::name),
        image: prepared.name,
        arguments: launch.arguments,
        environment: launch.environment,
        descriptors: Descriptors::new(ledger.clone(), launch.descriptors)?,
        ledger,
        directory: launch.directory,
        background: launch.background,
        session: launch.session,
        job,
    };
    let process = system.table.add(launch.parent, birth)?;
    // Before it was in the table, Ctrl-C did not reach it.
    let parent = system.table.get(launch.parent);
    if !launch.background && parent.is_ok_and(|parent| parent.is_cut_short()) {
        process.kill();
    }
    match begin(system, &process, &prepared) {
        Ok(()) => Ok(process.pid),
        Err(error) => {
            process.descriptors.close_all();
            system.table.remove(process.pid);
            Err(error)
        }
    }
}

/// The image to start. If the file is a script, the launch becomes that of its interpreter.
fn find_image(system: &System, launch: &mut Launch) -> Result<Arc<Prepared>, Errno> {
    let node = find(system, launch, &launch.path)?;
    let refused = match system.images.get(&system.volumes, node) {
        Err(refused @ Errno::BadImage(_)) => refused,
        answer => return answer,
    };
    let exists = |path: &[u8]| find(system, launch, path).is_ok();
    let script = script::interpreter(system, node, &launch.path, &launch.arguments, exists)?;
    let Some(interpreter) = script else {
        return Err(refused);
    };
    let node = find(system, launch, &interpreter.path)?;
    let image = system.images.get(&system.volumes, node)?;
    launch.path = interpreter.path;
    launch.arguments = interpreter.arguments;
    Ok(image)
}

fn find(system: &System, launch: &Launch, path: &[u8]) -> Result<Node, Errno> {
    let found = walk(&system.volumes, &launch.directory.place, path, true);
    let found = found.map_err(errors::walk)?;
    found.node.ok_or(Errno::Fs(FsError::NotFound))
}

/// Starts the domain of a process and the thread that runs it.
fn begin(system: &Arc<System>, process: &Arc<Process>, prepared: &Prepared) -> Result<(), Errno> {
    let calls = Calls::new(system.clone(), process.clone());
    let calls = Handle::<dyn interfaces::Process>::new(calls)?;
    let mut grants: [Option<AnyHandle>; 16] = array::from_fn(|_| None);
    grants[0] = Some(calls.into_any());
    let spec = DomainSpec {
        name: process.name,
        page_limit: system.page_limit,
        shared_limit: system.page_limit,
        thread_limit: system.thread_limit,
        call_limit: 0,
        call_budget_ms: 0,
        reserve_pages: 0,
        log_rate: 0,
        group: process.job,
        group_pages: system.page_limit,
        group_threads: THREADS_OF_JOB.max(system.thread_limit),
        weight: 0,
        cpu_percent: 0,
        deadline_percent: 0,
    };
    let started = prepared.image.start(spec, grants, RVec::from_slice(&[])?);
    let started = started.map_err(errors::start)?;
    let [first, ..] = started.offers;
    let program = first.and_then(|offer| offer.downcast::<dyn Program>().ok());
    let id = started.control.info().map_or(0, |info| info.id);
    let running = Arc::new(Running {
        id,
        control: started.control,
    });
    process.attach(running.clone());
    let begun = match program {
        Some(program) => run_in_thread(system, process, &running, program),
        None => Err(Errno::NoStart(StartError::Failed(RpcError::Refused))),
    };
    if begun.is_err() {
        process.detach();
        clear_away(&running);
    }
    begun
}

fn run_in_thread(
    system: &Arc<System>,
    process: &Arc<Process>,
    running: &Arc<Running>,
    program: Handle<dyn Program>,
) -> Result<(), Errno> {
    let (system, process, running) = (system.clone(), process.clone(), running.clone());
    let name = process.name;
    let of_thread = process.clone();
    process.account.run(name.as_str(), move || {
        see_to_the_end(&system, &of_thread, &running, program)
    })?;
    Ok(())
}

/// The body of a process' thread.
fn see_to_the_end(
    system: &Arc<System>,
    process: &Arc<Process>,
    running: &Running,
    program: Handle<dyn Program>,
) {
    // What the program does is its job's time, not ours.
    let _ = running.control.adopt_thread();
    let result = program.run();
    let main = process.account.main_thread(system.monitor());
    // Closed before the memory is waited for, so that readers of its pipes go on.
    let _ = running.control.kill();
    process.descriptors.close_all();
    drop(program);
    if let Some(_later) = may_be_told(process, running, &result) {
        // The calls that the program was given keep the process until they are taken back.
        process.leave_directory(&system.volumes);
        end(
            system,
            process,
            running,
            main,
            status(process, result, CrashReason::None),
        );
        clear_away(running);
    } else {
        let reason = clear_away(running);
        end(
            system,
            process,
            running,
            main,
            status(process, result, reason),
        );
    }
}

/// Notes how a process has ended, for those who wait for it.
fn end(system: &System, process: &Process, running: &Running, main: u64, status: ExitStatus) {
    process.account.end(main, running.control.info().ok());
    process.detach();
    system.release_terminal(process);
    if process.session == process.pid {
        system.end_session(process);
    }
    system.table.end(process.pid, status);
}

/// Whether the end of a process can be told before its domain is cleared away, for which all
/// processors have to be waited for: the program has returned, so nobody is inside, there are no
/// other threads of it that are still to leave somewhere, and it has little that another one could
/// lack.
fn may_be_told(process: &Process, running: &Running, result: &RpcResult<i32>) -> Option<Later> {
    let info = running.control.info().ok()?;
    let is_light = info.threads == 0 && info.heap_bytes + info.object_bytes <= LIGHT;
    let has_returned = result.is_ok() && process.session != process.pid;
    (is_light && has_returned).then(|| process.ledger.clear_later())?
}

/// Ends a domain and returns when nothing of it is left; why it ended.
fn clear_away(running: &Running) -> CrashReason {
    loop {
        // Again before each wait: a kill that failed for want of memory must not make us wait for
        // ever.
        let _ = running.control.kill();
        match running.control.wait() {
            Ok(reason) => return reason,
            Err(RpcError::DomainCrashed | RpcError::Refused) => return CrashReason::None,
            // Ours is not the wait that was to be ended: it was the program's.
            Err(_) => time::sleep(AGAIN),
        }
    }
}

fn status(process: &Process, result: RpcResult<i32>, reason: CrashReason) -> ExitStatus {
    match (result, reason) {
        (Ok(code), _) => ExitStatus::Exited(code),
        (Err(RpcError::DomainCrashed), CrashReason::Killed | CrashReason::None) => {
            ExitStatus::Killed
        }
        (Err(RpcError::DomainCrashed), _) => ExitStatus::Crashed,
        (Err(error), _) => {
            log!(
                "process {} ({}) was not run: {error}",
                process.pid,
                process.name
            );
            ExitStatus::Crashed
        }
    }
}
