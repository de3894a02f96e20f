//! Plug-ins for Linux programs: crash-isolated, restarted, and replaceable while they are called.
//!
//! ```no_run
//! # fn main() -> anyhow::Result<()> {
//! let host = hosted::plug::Host::start(&std::fs::read("target/trefoil/hosted-core")?, 64 << 20)?;
//! let image = std::fs::read("target/trefoil/images/domains/filter-one")?;
//! let filter = host.plug_in(&image, b"")?;
//! assert_eq!(filter.call(b"hello")?, b"HELLO");
//! # Ok(())
//! # }
//! ```

use crate::launch::{self, Options, core};
use crate::threads::Membership;
use anyhow::{Context, Result, bail};
use hosted_core::{CRASHED, DONE, NO_MEMORY, PlugWish, REFUSED};
use std::cell::RefCell;
use std::fmt;

/// Why a call gave no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallError {
    /// The plug-in crashed (or looped for too long). It has been started again for the next call.
    Crashed,
    /// The plug-in refuses; why.
    Refused(String),
    /// There is no memory for request or answer.
    NoMemory,
    /// Anything else.
    Failed(String),
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CallError::Crashed => f.write_str("the plug-in crashed"),
            CallError::Refused(why) => write!(f, "the plug-in refuses: {why}"),
            CallError::NoMemory => f.write_str("no memory for the call"),
            CallError::Failed(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for CallError {}

/// The isolation half inside this process. There is one.
#[derive(Clone, Copy, Debug)]
pub struct Host(());

/// A plug-in, through all its instances and versions. Dropping it ends the instance.
#[derive(Debug)]
pub struct PlugIn {
    number: u32,
}

thread_local! {
    /// What makes this thread one that may call plug-ins, from its first call to its end.
    static MEMBERSHIP: RefCell<Option<Membership>> = const { RefCell::new(None) };
}

/// Makes the running thread one that may run core code; whether it is.
fn join() -> bool {
    let joined = MEMBERSHIP.try_with(|membership| {
        let mut membership = membership.borrow_mut();
        if membership.is_none() {
            *membership = Membership::new(usize::MAX);
        }
        membership.is_some()
    });
    // A thread that is ending has left already.
    joined.unwrap_or(false)
}

/// Collects what the core says.
extern "C" fn collect(context: usize, start: usize, len: usize) {
    // SAFETY: `ask` passes its own vector as the context; the core lends the bytes for the call.
    unsafe {
        let text = std::slice::from_raw_parts(start as *const u8, len);
        (*(context as *mut Vec<u8>)).extend_from_slice(text);
    }
}

type Function = unsafe extern "C" fn(*mut PlugWish) -> u32;

/// Calls a function of the core; its status and what it said.
fn ask(function: Function, number: &mut u32, input: &[u8], options: &[u8]) -> (u32, Vec<u8>) {
    if !join() {
        return (NO_MEMORY, Vec::new());
    }
    let mut said = Vec::new();
    let mut wish = PlugWish {
        number: *number,
        input: [input.as_ptr() as usize, input.len()],
        options: [options.as_ptr() as usize, options.len()],
        sink: [collect as *const () as usize, (&raw mut said) as usize],
    };
    // SAFETY: everything that the wish names lives until the call returns.
    let status = unsafe { function(&mut wish) };
    *number = wish.number;
    (status, said)
}

impl Host {
    /// Loads the core from its file's content. All plug-ins together may have `memory` bytes.
    ///
    /// # Errors
    /// If the core cannot be loaded, or has been loaded before.
    pub fn start(core: &[u8], memory: usize) -> Result<Host> {
        let options = Options {
            memory,
            quiet: true,
            files: Vec::new(),
        };
        if !join() {
            bail!("no memory for the thread");
        }
        launch::load(core, options).map(|()| Host(()))
    }

    /// Starts a plug-in from a signed image.
    ///
    /// # Errors
    /// What is wrong with the image, or why the plug-in does not start.
    pub fn plug_in(&self, image: &[u8], options: &[u8]) -> Result<PlugIn> {
        let mut number = 0;
        done(ask(core().plug_load, &mut number, image, options))?;
        Ok(PlugIn { number })
    }
}

fn done((status, said): (u32, Vec<u8>)) -> Result<()> {
    if status == DONE {
        return Ok(());
    }
    Err(anyhow::anyhow!("{}", String::from_utf8_lossy(&said))).context("plug-in")
}

impl PlugIn {
    /// Has the plug-in answer a request. Any thread may call, many at once.
    ///
    /// # Errors
    /// Why there is no answer.
    pub fn call(&self, request: &[u8]) -> Result<Vec<u8>, CallError> {
        let (status, said) = ask(core().plug_call, &mut self.number.clone(), request, b"");
        let text = || String::from_utf8_lossy(&said).into_owned();
        match status {
            DONE => Ok(said),
            CRASHED => Err(CallError::Crashed),
            REFUSED => Err(CallError::Refused(text())),
            NO_MEMORY => Err(CallError::NoMemory),
            _ => Err(CallError::Failed(text())),
        }
    }

    /// Replaces the plug-in by the version in `image`. New calls wait meanwhile, running ones
    /// finish, and the old version hands its state over to the new one.
    ///
    /// # Errors
    /// Why the old version is still there.
    pub fn update(&self, image: &[u8], options: &[u8]) -> Result<()> {
        done(ask(
            core().plug_update,
            &mut self.number.clone(),
            image,
            options,
        ))
    }
}

impl Drop for PlugIn {
    fn drop(&mut self) {
        if join() {
            (core().plug_end)(self.number);
        }
    }
}
