//! Users, groups and capabilities. Those of a process are all its threads'.

use super::Result;
use crate::errno::{EFAULT, EINVAL, ENOMEM, EPERM};
use crate::memory;
use crate::task::Task;
use alloc::vec::Vec;
use linux::cred::{Ids, MOST_GROUPS};

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

/// Of what an id is one.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    User,
    Group,
}

impl Task {
    /// `setuid`, `setgid` and their kin.
    pub(super) fn become_other<T>(
        &self,
        what: Kind,
        change: impl FnOnce(&mut Ids, bool) -> Result<T>,
    ) -> Result<T> {
        self.process.change_cred(|cred| {
            let may = cred.is_root();
            match what {
                Kind::User => change(&mut cred.user, may),
                Kind::Group => change(&mut cred.group, may),
            }
        })
    }

    /// `setfsuid` and `setfsgid`: the one of before.
    pub(super) fn use_files_as(&self, what: Kind, id: u64) -> Result<u64> {
        let before = self.become_other(what, |ids, may| Ok(ids.set_files(id as u32, may)));
        before.map(u64::from)
    }

    /// `getresuid`, `getresgid`.
    pub(super) fn put_ids(&self, ids: &Ids, places: [u64; 3]) -> Result<u64> {
        for (at, id) in places.into_iter().zip([ids.real, ids.effective, ids.saved]) {
            memory::write(&self.program.mm.space, at, &id.to_le_bytes())?;
        }
        Ok(0)
    }

    /// `getgroups`: without room how many there are.
    pub(super) fn put_groups(&self, room: u64, at: u64) -> Result<u64> {
        let cred = self.process.cred();
        let groups = cred.others();
        let room = u32::try_from(room as i32).map_err(|_| EINVAL)? as usize;
        if room != 0 && room < groups.len() {
            return Err(EINVAL);
        }
        if room != 0 {
            let bytes: Vec<u8> = groups.iter().flat_map(|id| id.to_le_bytes()).collect();
            memory::write(&self.program.mm.space, at, &bytes)?;
        }
        Ok(groups.len() as u64)
    }

    /// `setgroups`.
    pub(super) fn set_groups(&self, count: u64, at: u64) -> Result<u64> {
        if !self.process.cred().is_root() {
            return Err(EPERM);
        }
        let count = count as u32 as usize;
        if count > MOST_GROUPS {
            return Err(EINVAL);
        }
        let mut groups = Vec::new();
        groups.try_reserve_exact(count).map_err(|_| ENOMEM)?;
        let mut id = [0; 4];
        for index in 0..count as u64 {
            memory::read(&self.program.mm.space, at.wrapping_add(4 * index), &mut id)?;
            groups.push(u32::from_le_bytes(id));
        }
        self.process.change_cred(|cred| cred.set_others(groups))?;
        Ok(0)
    }

    /// `capget`: all, or none: of the user 0.
    pub(super) fn capabilities(&self, header: u64, at: u64) -> Result<u64> {
        let form = (memory::read_word(&self.program.mm.space, header)? & 0xffff_ffff) as u32;
        if form != FORM {
            memory::write(&self.program.mm.space, header, &FORM.to_le_bytes())?;
            return if at == 0 { Ok(0) } else { Err(EINVAL) };
        }
        if at == 0 {
            return Err(EFAULT);
        }
        let user = self.process.cred().user;
        let has = |is_root| if is_root { CAPABILITIES } else { 0 };
        let effective = has(user.effective == 0);
        let permitted = has([user.real, user.effective, user.saved].contains(&0));
        let half = |shift: u32| [effective >> shift, permitted >> shift, 0];
        let [low, high] = [half(0), half(32)].map(|it| it.map(|word| word & 0xffff_ffff));
        let words = [low[0], low[1], low[2], high[0], high[1], high[2]].map(|word| word as u32);
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        memory::write(&self.program.mm.space, at, &bytes)?;
        Ok(0)
    }

    /// `prctl`.
    pub(super) fn control_self(&mut self, what: u64, a: u64, b: u64) -> Result<u64> {
        match what {
            control::SET_DEATH_SIGNAL if a <= 64 => Ok(0),
            control::GET_DEATH_SIGNAL => {
                memory::write(&self.program.mm.space, a, &[0; 4])?;
                Ok(0)
            }
            control::GET_DUMPABLE => Ok(1),
            control::SET_DUMPABLE if a <= 1 => Ok(0),
            control::SET_NAME => {
                let mut name = memory::read_text_up_to(&self.program.mm.space, a, NAME - 1)?;
                name.resize(NAME, 0);
                self.name.copy_from_slice(&name);
                Ok(0)
            }
            control::GET_NAME => {
                memory::write(&self.program.mm.space, a, &self.name)?;
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
