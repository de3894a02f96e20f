//! Users, groups and capabilities. All programs run as user 0 with all rights, since file
//! permissions are not checked yet. A program that asks for another user is refused: it would keep
//! all rights.

use super::Result;
use crate::errno::{EFAULT, EINVAL, EPERM};
use crate::memory;
use crate::task::Task;
use alloc::vec::Vec;

/// `prctl` (`linux/prctl.h`).
mod control {
    pub const SET_DEATH_SIGNAL: u64 = 1;
    pub const GET_DEATH_SIGNAL: u64 = 2;
    pub const GET_DUMPABLE: u64 = 3;
    pub const SET_DUMPABLE: u64 = 4;
    pub const SET_NAME: u64 = 15;
    pub const GET_NAME: u64 = 16;
    pub const GET_BOUND: u64 = 23;
    pub const SET_NO_RIGHTS: u64 = 38;
    pub const GET_NO_RIGHTS: u64 = 39;
}
/// The bytes of a thread's name, with the zero behind it.
const NAME: usize = 16;
/// All capabilities that there are.
const CAPABILITIES: u64 = (1 << 41) - 1;
/// The form of `capget` that is answered.
const FORM: u32 = 0x2008_0522;

impl Task {
    /// `setuid` and its kin, each number of which may be -1: leave it.
    pub(super) fn become_user(&self, ids: &[u64]) -> Result<u64> {
        let same = ids.iter().all(|id| matches!(*id as u32, 0 | u32::MAX));
        match same {
            true => Ok(0),
            false => Err(EPERM),
        }
    }

    /// `getresuid`, `getresgid`.
    pub(super) fn put_users(&self, places: [u64; 3]) -> Result<u64> {
        for at in places {
            memory::write(&self.program.space, at, &[0; 4])?;
        }
        Ok(0)
    }

    /// `setgroups`: of other groups none can be left or entered.
    pub(super) fn set_groups(&self, count: u64, at: u64) -> Result<u64> {
        if count > 65_536 {
            return Err(EINVAL);
        }
        let mut id = [0; 4];
        for index in 0..count {
            memory::read(&self.program.space, at.wrapping_add(4 * index), &mut id)?;
            if id != [0; 4] {
                return Err(EPERM);
            }
        }
        Ok(0)
    }

    /// `capget`: all, of any process.
    pub(super) fn capabilities(&self, header: u64, at: u64) -> Result<u64> {
        let form = (memory::read_word(&self.program.space, header)? & 0xffff_ffff) as u32;
        if form != FORM {
            memory::write(&self.program.space, header, &FORM.to_le_bytes())?;
            return if at == 0 { Ok(0) } else { Err(EINVAL) };
        }
        if at == 0 {
            return Err(EFAULT);
        }
        let [low, high] = [CAPABILITIES & 0xffff_ffff, CAPABILITIES >> 32];
        let words = [low, low, 0, high, high, 0].map(|word| word as u32);
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        memory::write(&self.program.space, at, &bytes)?;
        Ok(0)
    }

    /// `prctl`.
    pub(super) fn control_self(&mut self, what: u64, a: u64, b: u64) -> Result<u64> {
        match what {
            control::SET_DEATH_SIGNAL if a <= 64 => Ok(0),
            control::GET_DEATH_SIGNAL => {
                memory::write(&self.program.space, a, &[0; 4])?;
                Ok(0)
            }
            control::GET_DUMPABLE => Ok(1),
            control::SET_DUMPABLE if a <= 1 => Ok(0),
            control::SET_NAME => {
                let mut name = memory::read_text_up_to(&self.program.space, a, NAME - 1)?;
                name.resize(NAME, 0);
                self.name.copy_from_slice(&name);
                Ok(0)
            }
            control::GET_NAME => {
                memory::write(&self.program.space, a, &self.name)?;
                Ok(0)
            }
            control::GET_BOUND => match a < 41 {
                true => Ok(1),
                false => Err(EINVAL),
            },
            // No file gives its program more rights.
            control::SET_NO_RIGHTS if a == 1 && b == 0 => Ok(0),
            control::GET_NO_RIGHTS => Ok(0),
            _ => Err(EINVAL),
        }
    }
}
