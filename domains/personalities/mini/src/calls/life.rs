//! How processes begin, become another program, and are waited for.

use super::Result;
use crate::errno::{EAGAIN, EINVAL, ENOENT, ENOMEM, ENOSYS};
use crate::files;
use crate::memory::{self, Program};
use crate::process::Process;
use interfaces::SpaceError;

const CLONE_VM: u64 = 0x100;
const CLONE_VFORK: u64 = 0x4000;
const CLONE_CHILD_SETTID: u64 = 0x0100_0000;

impl Process {
    pub(super) fn fork(&mut self, flags: u64, stack: u64, child_number: u64) -> Result<u64> {
        // Threads share their memory: there are none.
        if flags & CLONE_VM != 0 && flags & CLONE_VFORK == 0 {
            return Err(ENOSYS);
        }
        let space = self.system.spaces.create().map_err(|_| ENOMEM)?;
        let mut next = Some(0);
        while let Some(from) = next {
            let child = space.duplicate().map_err(|_| ENOMEM)?;
            next = self.program.space.fork(child, from).map_err(|_| ENOMEM)?;
        }
        let thread = space.thread().map_err(|_: SpaceError| ENOMEM)?;
        let mut registers = self.program.registers;
        registers.rax = 0;
        if stack != 0 {
            registers.rsp = stack;
        }
        let Program {
            asked,
            heap,
            heap_end,
            mappings,
            ..
        } = self.program;
        let child = Program {
            space,
            thread,
            registers,
            asked,
            heap,
            heap_end,
            mappings,
        };
        let child = self.child(child).map_err(|_| ENOMEM)?;
        let id = child.id;
        if flags & CLONE_CHILD_SETTID != 0 {
            memory::write(&child.program.space, child_number, &id.to_le_bytes())?;
        }
        child.start_from(self).map_err(|_| EAGAIN)?;
        Ok(id.into())
    }

    pub(super) fn exec(&mut self, path: u64, arguments: u64, environment: u64) -> Result<()> {
        let space = &self.program.space;
        let path = memory::read_text(space, path)?;
        let arguments = memory::read_texts(space, arguments)?;
        let environment = memory::read_texts(space, environment)?;
        let whole = match &path[..] {
            b"/proc/self/exe" => b"bin/sh".to_vec(),
            _ => files::resolve(&self.directory, &path),
        };
        let file = self.system.files.program(&whole).ok_or(ENOENT)?;
        let program = self.system.load(file, &path, &arguments, &environment)?;
        self.forget_handlers();
        for slot in &mut self.files {
            slot.take_if(|(_, closes)| *closes);
        }
        self.replace(program).map_err(|_| ENOMEM)
    }

    pub(super) fn wait_child_for(&mut self, which: i32, status: u64, options: u64) -> Result<u64> {
        let Some((id, how)) = self.wait_child(which, options & 1 != 0)? else {
            return Ok(0);
        };
        if status != 0 {
            memory::write(&self.program.space, status, &how.to_le_bytes())?;
        }
        Ok(id.into())
    }

    /// `uname`: six texts of 65 bytes.
    pub(super) fn name(&self, at: u64) -> Result<u64> {
        let texts: [&[u8]; 6] = [
            b"Linux",
            b"trefoil",
            b"6.1.0",
            b"Trefoil mini",
            b"x86_64",
            b"",
        ];
        let mut bytes = [0; 6 * 65];
        for (place, text) in bytes.chunks_mut(65).zip(texts) {
            place[..text.len()].copy_from_slice(text);
        }
        memory::write(&self.program.space, at, &bytes)?;
        Ok(0)
    }

    /// `arch_prctl`: sets the base of FS.
    pub(super) fn set_segment(&mut self, what: u64, base: u64) -> Result<u64> {
        if what != 0x1002 || base >= 1 << 47 {
            return Err(EINVAL);
        }
        self.program.registers.fs_base = base;
        Ok(0)
    }
}
