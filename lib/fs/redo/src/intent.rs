//! A change that is about to be tried, as bytes: for who comes after the one who tries it.
//!
//! | bytes | what |
//! | --- | --- |
//! | 1, 1, 2 | which change; what it makes or replaces; permission bits |
//! | 8, 8 | the inodes that it is about |
//! | 8, 8 | what its names lead to, [`NOTHING`]: to nothing; of content: where, and 0 |
//! | 2, 2 | bytes of the first name; of the second, of the target of a link, or of a node |
//! | the rest | these two; of content: the bytes that are written, or what is set |

use core::ops::Deref;

use crate::action::{Action, Kind, Node, Target};
use crate::log::Basis;

/// Bytes of what a node is.
const NODE: usize = 5;
/// Stands for no inode.
const NOTHING: u64 = u64::MAX;
/// Bytes in front of the names.
const FRONT: usize = 40;
/// Bytes of what is set of an inode.
pub const SETTING: usize = 64;

/// What [`unpack`] makes of bytes.
pub type Unpacked<T> = (Action<<T as Target>::Data, <T as Target>::Setting>, Basis);

/// How many bytes [`pack`] makes of it.
pub fn length<D: Deref<Target = [u8]>, S>(action: &Action<D, S>) -> usize {
    let more = match action {
        Action::Set(_) => SETTING,
        Action::Node { name, .. } => name.len() + NODE,
        action => action.weight(),
    };
    FRONT + more
}

/// Makes the bytes: [`length`] many, at the start of `place`, which is zeros. `None`: a name is too
/// long, or the place too short.
pub fn pack<T: Target>(
    action: &Action<T::Data, T::Setting>,
    basis: &Basis,
    place: &mut [u8],
) -> Option<()> {
    draft::<T>(action, place)?;
    complete(action, basis, place)
}

/// Completes what [`draft`] made of the same change. `None`: it did not make these bytes.
pub fn complete<D: Deref<Target = [u8]>, S>(
    action: &Action<D, S>,
    basis: &Basis,
    place: &mut [u8],
) -> Option<()> {
    let front = place.first_chunk_mut::<FRONT>()?;
    front[4..20].copy_from_slice(basis.on.map(u64::to_le_bytes).as_flattened());
    if !action.is_content() {
        let before = basis.before.map(|there| there.unwrap_or(NOTHING));
        front[20..36].copy_from_slice(before.map(u64::to_le_bytes).as_flattened());
    }
    if let Action::Rename { .. } = action {
        front[1] = basis.replaced.map_or(0, code_of);
    }
    Some(())
}

/// Makes of the bytes what can be made before the basis is known; else as [`pack`].
pub fn draft<T: Target>(action: &Action<T::Data, T::Setting>, place: &mut [u8]) -> Option<()> {
    let nothing: (_, u16, &[u8], &[u8]) = (None, 0, &[], &[]);
    let mut number = [0; NODE];
    if let Action::Node { node, .. } = action {
        number[0] = node.kind;
        number[1..].copy_from_slice(&node.device.to_le_bytes());
    }
    let (code, (kind, mode, first, second)): (u8, _) = match action {
        Action::Create { name, kind, mode } => (1, (Some(*kind), *mode, &name[..], nothing.3)),
        Action::Symlink { name, target } => (2, (None, 0, &name[..], &target[..])),
        Action::Link { name } => (3, (None, 0, &name[..], nothing.3)),
        Action::Unlink { name } => (4, (None, 0, &name[..], nothing.3)),
        Action::RemoveDirectory { name } => (5, (None, 0, &name[..], nothing.3)),
        Action::Rename { name, new_name } => (6, (None, 0, &name[..], &new_name[..])),
        Action::Write { .. } => (7, nothing),
        Action::Truncate { .. } => (8, nothing),
        Action::Set(_) => (9, nothing),
        Action::Exchange { name, new_name } => (10, (None, 0, &name[..], &new_name[..])),
        Action::Node { name, node } => (11, (None, node.mode, &name[..], &number[..])),
    };
    let content = match action {
        Action::Write { offset, .. } => *offset,
        Action::Truncate { size } => *size,
        _ => 0,
    };
    let (front, mut rest) = place.split_first_chunk_mut::<FRONT>()?;
    (front[0], front[1]) = (code, kind.map_or(0, code_of));
    front[2..4].copy_from_slice(&mode.to_le_bytes());
    front[20..28].copy_from_slice(&content.to_le_bytes());
    for (place, name) in [36, 38].into_iter().zip([first, second]) {
        let length = u16::try_from(name.len()).ok()?;
        front[place..place + 2].copy_from_slice(&length.to_le_bytes());
    }
    let mut put = |bytes: &[u8]| {
        rest.split_off_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(())
    };
    match action {
        Action::Write { data, .. } => put(data),
        Action::Set(setting) => T::pack_setting(setting, rest.get_mut(..SETTING)?.try_into().ok()?),
        _ => {
            put(first)?;
            put(second)
        }
    }
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
    if matches!(code, 7..=9) {
        let bytes = core::mem::take(&mut rest);
        let action = match code {
            7 => Action::Write {
                offset: before[0],
                data: data(bytes)?,
            },
            8 if bytes.is_empty() => Action::Truncate { size: before[0] },
            9 => Action::Set(T::unpack_setting(bytes.try_into().ok()?)?),
            _ => return None,
        };
        let basis = Basis {
            on,
            before: [None; 2],
            replaced: None,
        };
        return Some((action, basis));
    }
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
        10 => Action::Exchange {
            name,
            new_name: data(second)?,
        },
        11 => Action::Node {
            name,
            node: node_of(mode, second)?,
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

fn node_of(mode: u16, bytes: &[u8]) -> Option<Node> {
    let (kind, device) = bytes.split_first()?;
    Some(Node {
        kind: *kind,
        mode,
        device: u32::from_le_bytes(device.try_into().ok()?),
    })
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
