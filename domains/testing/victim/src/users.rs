//! Copies to and from memory of programs, which somebody lends.

use domain_rt::user::{UserBuf, UserDirection, UserSegment};
use interfaces::{AddressSpaces, Handle, Protection, RpcError, RpcResult, SpaceError, Subject};

/// Bytes of one copy.
const ONCE: usize = 600;

/// Byte `i` of the whole becomes `seed + i`; how many did.
pub fn fill(to: &UserBuf<'_>, seed: u64) -> u64 {
    let (mut done, mut bytes) = (0, [0; ONCE]);
    loop {
        let left = usize::try_from(to.len().saturating_sub(done)).unwrap_or(ONCE);
        let bytes = &mut bytes[..left.min(ONCE)];
        for (value, byte) in (seed.wrapping_add(done)..).zip(bytes.iter_mut()) {
            *byte = value as u8;
        }
        let copied = to.write(done, bytes);
        done += copied as u64;
        if copied < ONCE {
            return done;
        }
    }
}

/// The sum of the bytes, and how many there were.
pub fn sum(from: &UserBuf<'_>) -> (u64, u64) {
    let (mut sum, mut done, mut bytes) = (0, 0, [0; ONCE]);
    loop {
        let copied = from.read(done, &mut bytes);
        sum += bytes[..copied]
            .iter()
            .map(|byte| u64::from(*byte))
            .sum::<u64>();
        done += copied as u64;
        if copied < ONCE {
            return (sum, done);
        }
    }
}

/// Has `next` fill memory in an address space of this domain's own, until that is an error.
pub fn lend(spaces: &Handle<dyn AddressSpaces>, next: &Handle<dyn Subject>) -> RpcResult<u64> {
    const AT: u64 = 0x40_0000;
    const LENGTH: u64 = 3 * 4096;
    let refused = |error| match error {
        SpaceError::Rpc(error) => error,
        _ => RpcError::Refused,
    };
    let space = spaces.create().map_err(refused)?;
    let how = Protection {
        read: true,
        write: true,
        execute: false,
    };
    space.map_zero(AT, LENGTH / 4096, how).map_err(refused)?;
    for at in (AT..AT + LENGTH).step_by(4096) {
        space.touch(at, true).map_err(refused)?;
    }
    let segments = [
        UserSegment {
            start: AT + 100,
            length: LENGTH - 100,
        },
        UserSegment {
            start: AT,
            length: 100,
        },
    ];
    for seed in 0.. {
        let to = UserBuf::new(&space, &segments, UserDirection::ToProgram);
        let done = next.fill_user(&to.ok_or(RpcError::Refused)?, seed)?;
        if done != LENGTH {
            return Ok(done);
        }
    }
    Err(RpcError::Refused)
}
