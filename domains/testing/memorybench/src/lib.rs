//! `memorybench`: does the work of `cargo xtask bench memory` (see `lib/testing/memorywork`) with a
//! memory object, and with address spaces.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod spaces;

use domain_rt::time;
use interfaces::{
    AddressSpaces, Handle, MemoryError, MemoryObjects, RVec, RpcError, VmoFill, VmoOwner,
    VmoRights, VmoView,
};
use memorywork::{Memory, PAGE, PAGES};
use spaces::Spaces;
use ulib::{Env, Process, Program, RpcResult, Stop, println};

/// The entry of the program.
///
/// # Errors
/// There is no memory for it.
pub fn start(process: Handle<dyn Process>) -> RpcResult<Handle<dyn Program>> {
    ulib::program(process, main)
}

fn main(env: &Env) -> Result<i32, Stop> {
    let objects = env.service::<dyn MemoryObjects>("objects")?;
    let mut object = Object::new(&objects).map_err(stop)?;
    let mut printed = Ok(());
    let done = memorywork::run(&mut object, &mut |line| {
        if printed.is_ok() {
            printed = println!(env, "{line}");
        }
    });
    done.map_err(stop)?;
    printed?;
    let spaces = Spaces::new(env.service::<dyn AddressSpaces>("spaces")?, objects);
    let mut printed = Ok(());
    let done = spaces.run(&mut |name, value| {
        if printed.is_ok() {
            printed = println!(env, "{}", memorywork::line(name, value));
        }
    });
    done.map_err(|error| Stop::about(b"memorybench", spaces::rpc(error)))?;
    printed.map(|()| env.status())
}

fn stop(error: MemoryError) -> Stop {
    let error = match error {
        MemoryError::Rpc(error) => error,
        _ => RpcError::Refused,
    };
    Stop::about(b"memorybench", error)
}

/// An object, a view of it, and what is read into and written from.
struct Object {
    owner: Handle<dyn VmoOwner>,
    view: Handle<dyn VmoView>,
    /// 64 bytes, and a page.
    buffers: [Option<RVec<u8>>; 2],
}

impl Object {
    fn new(objects: &Handle<dyn MemoryObjects>) -> Result<Self, MemoryError> {
        let owner = objects.create(PAGES, VmoFill::Zero)?;
        let rights = VmoRights {
            read: true,
            write: true,
            map: false,
            execute: false,
        };
        let view = owner.view(rights)?;
        let buffer = |length| RVec::filled(1, length).map_err(MemoryError::Rpc);
        Ok(Object {
            owner,
            view,
            buffers: [Some(buffer(64)?), Some(buffer(PAGE as usize)?)],
        })
    }
}

impl Memory for Object {
    type Error = MemoryError;

    fn now() -> u64 {
        time::now()
    }

    fn read(&mut self, offset: u64, length: usize) -> Result<(), MemoryError> {
        let buffer = &mut self.buffers[usize::from(length > 64)];
        if let Some(bytes) = buffer.take() {
            *buffer = Some(self.view.read(offset, bytes)?.0);
        }
        Ok(())
    }

    fn write(&mut self, offset: u64, length: usize) -> Result<(), MemoryError> {
        if let Some(bytes) = &self.buffers[usize::from(length > 64)] {
            self.view.write(offset, bytes)?;
        }
        Ok(())
    }

    fn clear(&mut self) -> Result<(), MemoryError> {
        self.owner.cut(0, PAGES).map(drop)
    }
}
