//! What a hostile value of each built-in type is.
//!
//! Half of the numbers are ones that a call gave before, or small ones: others are refused by the
//! first check, and what stands behind it would never be reached.

use crate::{Hostile, Imitated, Rogue, Source, below};
use alloc::vec::Vec;
use interfaces::{
    AnyHandle, Exchangeable, Handle, Plain, RRef, RVec, RpcError, RpcResult, Text, UserBuf,
    UserDirection,
};

/// Bytes in the largest object of the shared heap; one more is refused.
const LARGEST: usize = 64 << 20;
/// What texts are made of. The paths and names lead to something on the systems of the tests.
const WORDS: &[&[u8]] = &[
    b"",
    b".",
    b"..",
    b"/",
    b"a",
    b"b",
    b"victim",
    b"/boot",
    b"/boot/bin/true",
    b"/boot/bin/echo",
    b"/tmp",
    b"/tmp/a",
    b"/tmp/b/c",
    b"/proc",
    b"/proc/mounts",
    b"../../..",
    b"a\0b",
    b"a/b",
    b"/tmp//./../tmp/a/",
    b"monitor",
    b"supervisor",
    b"disks",
    b"vda",
    b"vdb",
    b"ext2",
    b"memory-disk",
    b"ramfs",
    b"NAME=value\0OTHER=\0",
    b"echo\0a\0\0",
    b"\xff\xfe\x00\xc0",
    "\u{202e}\u{200f}\u{10ffff}\u{e000}".as_bytes(),
    b"%n%s\x1b[2J\r\n\x07",
];

/// 64 bits, of which the caller takes as many as fit.
fn number(source: &mut dyn Source) -> u64 {
    let bits = source.random();
    let power = 1u64 << (bits >> 8 & 63);
    match bits & 15 {
        0 => 0,
        1 => 1,
        2 => u64::MAX,
        3 => u64::MAX - 1,
        4 => power,
        5 => power - 1,
        6 => power + 1,
        7 => u64::MAX << (bits >> 8 & 63),
        8 => source.random(),
        9 => bits >> 8 & 0xfff,
        10..=12 => bits >> 8 & 7,
        _ => match source.known_number() {
            Some(known) if bits >> 8 & 3 == 0 => known.wrapping_add(bits >> 16 & 3).wrapping_sub(1),
            Some(known) => known,
            None => bits >> 8 & 0xff,
        },
    }
}

macro_rules! integers {
    ($($ty:ident)*) => {$(
        impl Hostile for $ty {
            fn make(source: &mut dyn Source) -> RpcResult<Self> {
                // The ends of narrow types are none of the wide one.
                Ok(match source.random() & 31 {
                    0 => $ty::MAX,
                    1 => $ty::MIN,
                    2 => $ty::MAX - 1,
                    3 => $ty::MAX / 2,
                    4 => $ty::MAX / 2 + 1,
                    _ => number(source) as $ty,
                })
            }

            fn take(self, source: &mut dyn Source) {
                source.keep_number(self as u64);
            }
        }
    )*};
}

integers!(u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize);

impl Hostile for u8 {
    fn make(source: &mut dyn Source) -> RpcResult<Self> {
        Ok(number(source) as u8)
    }

    fn word(source: &mut dyn Source) -> Option<&'static [u8]> {
        let word = WORDS[below(source, WORDS.len())];
        (source.random() & 1 == 0).then_some(word)
    }

    /// A word, or anything.
    fn vary(run: &mut [u8], source: &mut dyn Source) {
        let word = WORDS[below(source, WORDS.len())];
        match source.random() & 3 {
            0 | 1 => {
                let count = word.len().min(run.len());
                run[..count].copy_from_slice(&word[..count]);
            }
            2 => {
                let step = below(source, 4096) + 1;
                for place in run.iter_mut().step_by(step) {
                    *place = source.random() as u8;
                }
            }
            _ => {}
        }
    }
}

impl Hostile for bool {
    fn make(source: &mut dyn Source) -> RpcResult<Self> {
        Ok(source.random() & 1 == 1)
    }
}

impl Hostile for char {
    fn make(source: &mut dyn Source) -> RpcResult<Self> {
        Ok(char::from_u32(number(source) as u32).unwrap_or(char::MAX))
    }
}

impl Hostile for () {
    fn make(_: &mut dyn Source) -> RpcResult<Self> {
        Ok(())
    }
}

macro_rules! floats {
    ($($ty:ident: $bits:ident)*) => {$(
        impl Hostile for $ty {
            fn make(source: &mut dyn Source) -> RpcResult<Self> {
                Ok($ty::from_bits(number(source) as $bits))
            }
        }
    )*};
}

floats!(f32: u32 f64: u64);

impl Hostile for RpcError {
    fn make(source: &mut dyn Source) -> RpcResult<Self> {
        const ALL: [RpcError; 6] = [
            RpcError::DomainCrashed,
            RpcError::NoMemory,
            RpcError::StackLow,
            RpcError::Interrupted,
            RpcError::Refused,
            RpcError::Busy,
        ];
        Ok(ALL[below(source, ALL.len())])
    }
}

impl<const N: usize> Hostile for Text<N> {
    /// A word, as many characters of one kind as fit, or one less. Four bytes a character may leave
    /// a gap at the end.
    fn make(source: &mut dyn Source) -> RpcResult<Self> {
        let letters = [
            "a",
            "\0",
            "\u{e9}",
            "\u{20ac}",
            "\u{10ffff}",
            "/",
            "\u{202e}",
        ];
        let letter = letters[below(source, letters.len())];
        let mut text = Vec::new();
        match source.random() & 7 {
            0 => text.resize(N, letter.as_bytes()[0] & 0x7f),
            1 => {
                let count = (N / letter.len()).saturating_sub(below(source, 2));
                (0..count).for_each(|_| text.extend_from_slice(letter.as_bytes()));
            }
            _ => text.extend_from_slice(WORDS[below(source, WORDS.len())]),
        }
        Ok(Text::new(core::str::from_utf8(&text).unwrap_or("\u{fffd}")))
    }
}

impl<T: Hostile> Hostile for Option<T> {
    fn nothing() -> Option<Self> {
        Some(None)
    }

    fn make(source: &mut dyn Source) -> RpcResult<Self> {
        match source.random() & 3 {
            0 => Ok(None),
            _ => T::make(source).map(Some),
        }
    }

    fn take(self, source: &mut dyn Source) {
        if let Some(value) = self {
            value.take(source);
        }
    }
}

impl<T: Hostile, E: Hostile> Hostile for Result<T, E> {
    fn make(source: &mut dyn Source) -> RpcResult<Self> {
        match source.random() & 3 {
            0 => E::make(source).map(Err),
            _ => T::make(source).map(Ok),
        }
    }

    fn take(self, source: &mut dyn Source) {
        match self {
            Ok(value) => value.take(source),
            Err(error) => error.take(source),
        }
    }
}

macro_rules! tuples {
    ($(($($name:ident)*))*) => {$(
        #[allow(non_snake_case)]
        impl<$($name: Hostile),*> Hostile for ($($name,)*) {
            fn make(source: &mut dyn Source) -> RpcResult<Self> {
                Ok(($($name::make(source)?,)*))
            }

            fn take(self, source: &mut dyn Source) {
                let ($($name,)*) = self;
                $($name.take(source);)*
            }
        }
    )*};
}

tuples!((A)(A B)(A B C)(A B C D));

impl<T: Hostile, const N: usize> Hostile for [T; N] {
    fn make(source: &mut dyn Source) -> RpcResult<Self> {
        let mut all = Vec::new();
        all.try_reserve_exact(N).map_err(|_| RpcError::NoMemory)?;
        // A value for each of many places would take all memory, and all of a few are seldom right
        // together.
        let is_bare = below(source, if N > 16 { 16 } else { 2 }) > 0;
        for _ in 0..N {
            let nothing = T::nothing().filter(|_| is_bare && source.random() & 15 > 0);
            all.push(match nothing {
                Some(nothing) => nothing,
                None => T::make(source)?,
            });
        }
        all.try_into().map_err(|_| RpcError::NoMemory)
    }

    fn take(self, source: &mut dyn Source) {
        self.into_iter().for_each(|it| it.take(source));
    }
}

impl<T: Hostile + Exchangeable> Hostile for RRef<T> {
    fn make(source: &mut dyn Source) -> RpcResult<Self> {
        RRef::new(T::make(source)?)
    }

    fn take(self, source: &mut dyn Source) {
        self.into_inner().take(source);
    }
}

/// How many values of `size` bytes a run has.
fn length(size: usize, source: &mut dyn Source) -> usize {
    const USUAL: [usize; 14] = [
        0, 1, 2, 7, 8, 9, 64, 511, 512, 513, 1024, 4095, 4096, 65_536,
    ];
    let bytes = match source.random() & 255 {
        0 => LARGEST,
        1 => LARGEST + 1,
        2 => usize::MAX - below(source, 16),
        3 => LARGEST / 8,
        4..=7 => 1 << 20,
        8..=15 => below(source, 1 << 18),
        16..=47 => return WORDS[below(source, WORDS.len())].len(),
        _ => USUAL[below(source, USUAL.len())],
    };
    // Some runs count values, others bytes.
    match source.random() & 1 {
        0 if bytes <= 4096 => bytes,
        _ => bytes.div_ceil(size),
    }
}

impl<T: Hostile + Plain> Hostile for RVec<T> {
    fn make(source: &mut dyn Source) -> RpcResult<Self> {
        if let Some(word) = T::word(source) {
            return RVec::from_slice(word);
        }
        let length = length(size_of::<T>().max(1), source);
        let mut run = RVec::filled(T::make(source)?, length)?;
        T::vary(&mut run, source);
        Ok(run)
    }
}

impl Hostile for AnyHandle {
    fn make(source: &mut dyn Source) -> RpcResult<Self> {
        source.handle(0).ok_or(RpcError::Refused)
    }

    fn take(self, source: &mut dyn Source) {
        source.keep_handle(self);
    }
}

impl<I: ?Sized + Imitated> Hostile for Handle<I> {
    fn make(source: &mut dyn Source) -> RpcResult<Self> {
        let given = source.handle(I::NUMBER).map(AnyHandle::downcast);
        match given {
            Some(Ok(handle)) => Ok(handle),
            _ => I::imitate(Rogue(source.mind())),
        }
    }

    fn take(self, source: &mut dyn Source) {
        source.keep_handle(self.into_any());
    }
}

/// Of no program: who makes the calls has none. Real ones are for the isolation tests.
impl Hostile for UserBuf<'static> {
    fn make(source: &mut dyn Source) -> RpcResult<Self> {
        Ok(UserBuf::empty(match below(source, 2) {
            0 => UserDirection::FromProgram,
            _ => UserDirection::ToProgram,
        }))
    }

    fn take(self, _: &mut dyn Source) {}
}
