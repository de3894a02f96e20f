//! Copies to and from memory of programs, which somebody lends.

use domain_rt::thread;
use domain_rt::user::{self, UserBuf, UserDirection, UserSegment};
use interfaces::{
    AddressSpace, AddressSpaces, Handle, Protection, RpcError, RpcResult, SpaceError, Subject,
    VmoView,
};

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

const PAGE: u64 = 4096;
/// Where the program of [`copy_often`] has its pages, and how many.
const THERE: u64 = 0x40_0000;
const PAGES: u64 = 4;

const WRITE: Protection = Protection {
    read: true,
    write: true,
    execute: false,
};

fn refused(error: SpaceError) -> RpcError {
    match error {
        SpaceError::Rpc(error) => error,
        _ => RpcError::Refused,
    }
}

/// Takes pages of a program away and gives it new ones, without end.
fn change_pages(space: &Handle<dyn AddressSpace>) {
    for page in (0..PAGES).cycle() {
        let at = THERE + page * PAGE;
        let changed = space
            .unmap(at, 1)
            .and_then(|_| space.map_zero(at, 1, WRITE))
            .and_then(|()| space.touch(at, true));
        if matches!(changed, Err(SpaceError::Rpc(_))) {
            return;
        }
    }
}

/// Fills a segment of a program's memory with what `bytes` has; whether all of it could be.
fn mark_all(space: &Handle<dyn AddressSpace>, segment: &UserSegment, bytes: &[u8; ONCE]) -> bool {
    let mut done = 0;
    while done < segment.length {
        let part = (segment.length - done).min(ONCE as u64) as usize;
        if user::write(space, segment.start + done, &bytes[..part]) < part {
            return false;
        }
        done += part as u64;
    }
    true
}

/// Copies between an object and a program whose pages come and go, until a byte is neither 0 nor
/// what belongs to its page in the object; which page.
pub fn copy_often(
    spaces: &Handle<dyn AddressSpaces>,
    object: &Handle<dyn VmoView>,
    seed: u64,
) -> RpcResult<u64> {
    // It may just have none.
    let pages = object.limit()?.max(1);
    let space = spaces.create().map_err(refused)?;
    space.map_zero(THERE, PAGES, WRITE).map_err(refused)?;
    let other = space.duplicate()?;
    thread::spawn("pages", move || change_pages(&other))?;
    let mut random = seed;
    let mut below = |end: u64| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % end
    };
    loop {
        let page = below(pages);
        let (from, count) = (below(PAGE), 1 + below(2 * PAGE));
        // What belongs to another page is never in the buffer: it ends where the page does.
        let count = count.min(PAGE - from);
        let mark = (page % 255) as u8 + 1;
        let segments = [
            UserSegment {
                start: THERE + PAGE + below(2 * PAGE),
                length: count / 2,
            },
            UserSegment {
                start: THERE + below(PAGE / 2),
                length: count - count / 2,
            },
        ];
        let bytes = [mark; ONCE];
        // Where a page is not there just now, what belongs to another one may stay.
        if !segments
            .iter()
            .all(|segment| mark_all(&space, segment, &bytes))
        {
            continue;
        }
        let offset = page * PAGE + from;
        let lent = UserBuf::new(&space, &segments, UserDirection::FromProgram);
        let _ = object.write_from(offset, count, &lent.ok_or(RpcError::Refused)?, 0);
        let lent = UserBuf::new(&space, &segments, UserDirection::ToProgram);
        let _ = object.read_to(offset, count, &lent.ok_or(RpcError::Refused)?, 0);
        for segment in segments {
            let mut bytes = [0; ONCE];
            let part = (segment.length as usize).min(ONCE);
            let seen = user::read(&space, segment.start, &mut bytes[..part]);
            let others = |byte: &u8| *byte != 0 && *byte != mark;
            if bytes[..seen].iter().any(others) {
                return Ok(page);
            }
        }
    }
}

/// Has `next` fill memory in an address space of this domain's own, until that is an error.
pub fn lend(spaces: &Handle<dyn AddressSpaces>, next: &Handle<dyn Subject>) -> RpcResult<u64> {
    const AT: u64 = 0x40_0000;
    const LENGTH: u64 = 3 * 4096;
    let space = spaces.create().map_err(refused)?;
    space.map_zero(AT, LENGTH / PAGE, WRITE).map_err(refused)?;
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
