//! One program: how it gets into memory, and the loop that runs it.

use crate::System;
use crate::calls::Open;
use alloc::format;
use alloc::vec::Vec;
use domain_rt::user::{self, UserEvent, UserRegisters};
use guests::archive::File;
use guests::space::{Space, error};
use interfaces::{Handle, RVec, UserThread};
use linux::errno::{Error, SIGKILL, SIGSEGV};
use linux::faults::{Stuck, signal_of};
use linux::layout::Layout;
use linux::memory::Memory;
use linux::program::{Image, Words};

/// A program in memory.
pub struct Process<'a> {
    pub system: &'a System,
    /// Its path, for messages.
    pub name: &'a [u8],
    pub space: Space,
    thread: Handle<dyn UserThread>,
    pub registers: UserRegisters,
    pub layout: Layout,
    /// What is open, by descriptor.
    pub files: Vec<Option<Open>>,
    /// How many calls were not answered.
    pub unknown: u32,
    stuck: Stuck,
}

impl<'a> Process<'a> {
    /// Puts a program into a new address space.
    ///
    /// # Errors
    /// The file is no static program, or there is no memory.
    pub fn load(
        system: &'a System,
        file: File,
        name: &'a [u8],
        arguments: &[Vec<u8>],
    ) -> Result<Self, Error> {
        let content = system.files.content(file)?;
        let image = Image::new(&content)?;
        let space = Space(system.spaces.create().map_err(error)?);
        let words = Words {
            path: name,
            arguments,
            environment: &[b"PATH=/bin".to_vec()],
            seed: &system.random(16)?,
        };
        let begin = image.load(&space, &words)?;
        Ok(Process {
            system,
            name,
            thread: space.0.thread().map_err(error)?,
            space,
            registers: UserRegisters {
                rip: begin.entry,
                rsp: begin.stack,
                ..UserRegisters::default()
            },
            layout: begin.layout,
            files: [Open::Nothing, Open::Console, Open::Console]
                .map(Some)
                .into(),
            unknown: 0,
            stuck: Stuck::default(),
        })
    }

    /// Runs it to its end; its status, as a shell shows it.
    pub fn run(mut self) -> i32 {
        loop {
            let event = user::run(&self.thread, &mut self.registers);
            let ended = match event {
                UserEvent::Syscall => self.call(),
                UserEvent::PageFault {
                    address,
                    write,
                    execute,
                } => self.fault(address, write, execute),
                UserEvent::Exception { vector, .. } => Some(self.hit(signal_of(vector))),
                UserEvent::Refused => Some(self.hit(SIGKILL)),
                UserEvent::Kicked | UserEvent::Interrupted => None,
            };
            if let Some(status) = ended {
                return status;
            }
        }
    }

    /// Makes the page ready that the program has met, if it may have it.
    fn fault(&mut self, address: u64, write: bool, execute: bool) -> Option<i32> {
        let tries = !execute || self.stuck.tries_again(&self.space, address);
        let is_ready = tries && self.space.touch(address, write).is_ok();
        (!is_ready).then(|| self.hit(SIGSEGV))
    }

    /// The program has done what it must not: says so, and gives the status for it.
    fn hit(&self, signal: u32) -> i32 {
        let name = self.name.escape_ascii();
        let at = self.registers.rip;
        let text = format!("first: {name} was ended by signal {signal} at {at:#x}\n");
        if let Ok(text) = RVec::from_slice(text.as_bytes()) {
            // Without a console nobody is there to be told.
            let _ = self.system.print(&text);
        }
        128 + signal as i32
    }
}
