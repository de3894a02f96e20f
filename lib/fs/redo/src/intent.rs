//! A change of names that is about to be tried, as bytes: for who comes after the one who tries it.
//!
//! | bytes | what |
//! | --- | --- |
//! | 1, 1, 2 | which change; what it makes or replaces; permission bits |
//! | 8, 8 | the inodes that it is about |
//! | 8, 8 | what its names lead to; [`NOTHING`]: to nothing |
//! | 2, 2 | bytes of the first name; of the second, or of the target of a symbolic link |
//! | the rest | these two |

use alloc::vec::Vec;

use crate::action::{Action, Kind, Target};
use crate::log::Basis;

/// Stands for no inode.
const NOTHING: u64 = u64::MAX;
/// Bytes in front of the names.
const FRONT: usize = 40;

/// What [`unpack`] makes of bytes.
pub type Unpacked<T> = (Action<<T as Target>::Data, <T as Target>::Setting>, Basis);

/// The bytes. `None`: it changes no name, a name is too long, or there is no memory.
pub fn pack<T: Target>(action: &Action<T::Data, T::Setting>, basis: &Basis) -> Option<Vec<u8>> {
    let (code, kind, mode, first, second): (u8, _, u16, &[u8], &[u8]) = match action {
        Action::Write { .. } | Action::Truncate { .. } | Action::Set(_) => return None,
        Action::Create { name, kind, mode } => (1, Some(*kind), *mode, name, &[]),
        Action::Symlink { name, target } => (2, None, 0, name, target),
        Action::Link { name } => (3, None, 0, name, &[]),
        Action::Unlink { name } => (4, None, 0, name, &[]),
        Action::RemoveDirectory { name } => (5, None, 0, name, &[]),
        Action::Rename { name, new_name } => (6, basis.replaced, 0, name, new_name),
    };
    let lengths = [first, second].map(|name| u16::try_from(name.len()).ok());
    let [Some(first_length), Some(second_length)] = lengths else {
        return None;
    };
    let mut packed = Vec::new();
    packed
        .try_reserve_exact(FRONT + first.len() + second.len())
        .ok()?;
    packed.extend_from_slice(&[code, kind.map_or(0, code_of)]);
    packed.extend_from_slice(&mode.to_le_bytes());
    for word in basis.on {
        packed.extend_from_slice(&word.to_le_bytes());
    }
    for there in basis.before {
        packed.extend_from_slice(&there.unwrap_or(NOTHING).to_le_bytes());
    }
    packed.extend_from_slice(&first_length.to_le_bytes());
    packed.extend_from_slice(&second_length.to_le_bytes());
    packed.extend_from_slice(first);
    packed.extend_from_slice(second);
    Some(packed)
}

/// The change again. `None`: [`pack`] did not make these bytes, or there is no memory.
pub fn unpack<T: Target>(packed: &[u8]) -> Option<Unpacked<T>> {
    let mut rest = packed;
    let [code, kind] = *rest.split_off(..2)? else {
        return None;
    };
    let mode = short(&mut rest)?;
    let on = [word(&mut rest)?, word(&mut rest)?];
    let before = [word(&mut rest)?, word(&mut rest)?];
    let [first, second] = [short(&mut rest)?, short(&mut rest)?];
    let first = rest.split_off(..usize::from(first))?;
    let second = rest.split_off(..usize::from(second))?;
    let data = |bytes| T::data(bytes).ok();
    let kind = kind_of(kind)?;
    let name = data(first)?;
    let action = match code {
        1 => Action::Create {
            name,
            kind: kind?,
            mode,
        },
        2 => Action::Symlink {
            name,
            target: data(second)?,
        },
        3 => Action::Link { name },
        4 => Action::Unlink { name },
        5 => Action::RemoveDirectory { name },
        6 => Action::Rename {
            name,
            new_name: data(second)?,
        },
        _ => return None,
    };
    let basis = Basis {
        on,
        before: before.map(|there| (there != NOTHING).then_some(there)),
        replaced: if code == 6 { kind } else { None },
    };
    rest.is_empty().then_some((action, basis))
}

fn code_of(kind: Kind) -> u8 {
    match kind {
        Kind::File => 1,
        Kind::Directory => 2,
        Kind::Other => 3,
    }
}

fn kind_of(code: u8) -> Option<Option<Kind>> {
    match code {
        0 => Some(None),
        1 => Some(Some(Kind::File)),
        2 => Some(Some(Kind::Directory)),
        3 => Some(Some(Kind::Other)),
        _ => None,
    }
}

fn word(rest: &mut &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(rest.split_off(..8)?.try_into().ok()?))
}

fn short(rest: &mut &[u8]) -> Option<u16> {
    Some(u16::from_le_bytes(rest.split_off(..2)?.try_into().ok()?))
}
