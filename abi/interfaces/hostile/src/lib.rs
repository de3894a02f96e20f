//! Every method of every interface, called with values that are meant to do harm.
//!
//! `idlc` writes [`METHODS`] from the `.idl` files: for each method a function that makes its
//! arguments, field by field and variant by variant, calls it and takes the result apart; and for
//! each interface an implementation by [`Rogue`], whose methods answer with such values. What a
//! hostile value of a built-in type is stands in [`values`]. Where the numbers come from, which
//! handles there are, and how a rogue behaves is decided by whoever uses this, through [`Source`]
//! and [`Mind`].
//!
//! This crate is for tests: only what stands in `domains/testing` may depend on it (`cargo xtask
//! check`), so nothing of it is in any other image. It is an ordinary user of `interfaces`, and has
//! no `unsafe`.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod values;

use alloc::sync::Arc;
use core::fmt::Debug;
use core::fmt::Display;
use interfaces::{AnyHandle, Handle, Interface, RpcError, RpcResult};

/// What `idlc` wrote.
#[allow(clippy::all, unused_variables)]
mod generated {
    use interfaces::*;

    include!(concat!(env!("OUT_DIR"), "/hostile.rs"));
}

pub use generated::METHODS;

/// A method of an interface.
pub struct Method {
    /// The number of its interface.
    pub interface: u64,
    /// The name of its interface.
    pub of: &'static str,
    /// Its name.
    pub name: &'static str,
    /// To which interfaces its result may hold handles; 0 stands for any.
    pub gives: &'static [u64],
    /// It may wait without a limit.
    pub waits: bool,
    /// Calls it.
    pub call: fn(AnyHandle, &mut dyn Source) -> Outcome,
}

/// What came of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The handle is of another interface.
    OtherType,
    /// An argument could not be made, for want of memory or because it would be too large.
    Unmade,
    /// The call gave an error.
    Failed,
    /// The call succeeded.
    Done,
}

/// Where values come from and results go.
pub trait Source {
    /// A random number.
    fn random(&mut self) -> u64;
    /// A number that a call gave before, or something like it.
    fn known_number(&mut self) -> Option<u64>;
    /// A handle to give away, of this interface (0: any). `None`: there is none, or it is time for
    /// a rogue.
    fn handle(&mut self, interface: u64) -> Option<AnyHandle>;
    /// The mind of a new rogue.
    fn mind(&mut self) -> Arc<dyn Mind>;
    /// A number in a result.
    fn keep_number(&mut self, number: u64);
    /// A handle in a result.
    fn keep_handle(&mut self, handle: AnyHandle);
    /// All arguments are made, and the call comes now.
    fn begins(&mut self, arguments: &dyn Display);
    /// The call gave this error.
    fn failed(&mut self, error: &dyn Debug);
}

/// What the objects behind [`Rogue`] think of.
pub trait Mind: Send + Sync {
    /// Does harm, or not, and then has `work` done with a source of values. It may also not return
    /// at all.
    fn think(&self, work: &mut dyn FnMut(&mut dyn Source));
}

/// An object with every interface there is.
pub struct Rogue(pub Arc<dyn Mind>);

impl Rogue {
    /// What any method answers.
    fn answer<T: Hostile, E: Hostile + From<RpcError>>(&self) -> Result<T, E> {
        let mut answer = None;
        self.0
            .think(&mut |source| answer = Some(Hostile::make(source)));
        match answer {
            Some(Ok(answer)) => answer,
            Some(Err(error)) => Err(E::from(error)),
            None => Err(E::from(RpcError::Refused)),
        }
    }
}

/// An interface that [`Rogue`] has.
pub trait Imitated: Interface {
    /// A handle to it.
    ///
    /// # Errors
    /// [`RpcError::NoMemory`].
    fn imitate(rogue: Rogue) -> RpcResult<Handle<Self>>;
}

/// A type of which there are hostile values.
pub trait Hostile: Sized {
    /// One of them.
    ///
    /// # Errors
    /// It cannot be made.
    fn make(source: &mut dyn Source) -> RpcResult<Self>;

    /// A value with nothing in it, if the type has one.
    fn nothing() -> Option<Self> {
        None
    }

    /// A run of values that leads somewhere, now and then.
    fn word(source: &mut dyn Source) -> Option<&'static [Self]> {
        let _ = source;
        None
    }

    /// Takes a result apart: what can be used in later calls is kept.
    fn take(self, source: &mut dyn Source) {
        let _ = (self, source);
    }

    /// Makes some of the values in `run`, which are all the same, different.
    fn vary(run: &mut [Self], source: &mut dyn Source) {
        for _ in 0..3 {
            let at = below(source, run.len());
            if let (Some(place), Ok(value)) = (run.get_mut(at), Self::make(source)) {
                *place = value;
            }
        }
    }
}

/// A random number below `end`, or 0.
pub fn below(source: &mut dyn Source, end: usize) -> usize {
    (source.random() % end.max(1) as u64) as usize
}

/// What came of a call with this result.
fn ended<T: Hostile, E: Debug>(result: Result<T, E>, source: &mut dyn Source) -> Outcome {
    match result {
        Ok(value) => {
            value.take(source);
            Outcome::Done
        }
        Err(error) => {
            source.failed(&error);
            Outcome::Failed
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::{METHODS, Mind, Outcome, Source};
    use alloc::sync::Arc;
    use core::fmt::{Debug, Display};
    use interfaces::AnyHandle;
    use std::collections::BTreeSet;
    use std::path::Path;
    use std::string::String;
    use std::vec::Vec;

    #[test]
    fn every_method_of_every_idl_file_is_called() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
        let model = idlc::load(&root).unwrap_or_else(|report| panic!("{report}"));
        let wanted = model.interfaces.iter().flat_map(|interface| {
            let of = &interface.name;
            let methods = interface.methods.iter();
            methods.map(move |method| std::format!("{of}.{}", method.name))
        });
        let wanted: BTreeSet<String> = wanted.collect();
        let covered = METHODS
            .iter()
            .map(|it| std::format!("{}.{}", it.of, it.name));
        let covered: Vec<String> = covered.collect();
        assert_eq!(covered.len(), wanted.len(), "a method stands there twice");
        assert_eq!(covered.into_iter().collect::<BTreeSet<_>>(), wanted);
    }

    #[test]
    fn who_gives_handles_is_known() {
        let gives = |of: &str, name: &str| {
            let found = METHODS.iter().find(|it| it.of == of && it.name == name);
            found.expect("there is such a method").gives
        };
        let number = |of: &str| {
            let found = METHODS.iter().find(|it| it.of == of);
            found.expect("there is such an interface").interface
        };
        assert_eq!(gives("Block", "open"), [number("BlockQueue")]);
        assert_eq!(gives("Respawn", "instance"), [0]);
        assert!(gives("Image", "start").contains(&number("Domain")));
        assert!(gives("Block", "geometry").is_empty());
    }

    /// Numbers, and nothing else.
    struct Counter(u64);

    impl Source for Counter {
        fn random(&mut self) -> u64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed ^ (mixed >> 29)
        }

        fn known_number(&mut self) -> Option<u64> {
            None
        }

        fn handle(&mut self, _: u64) -> Option<AnyHandle> {
            None
        }

        fn mind(&mut self) -> Arc<dyn Mind> {
            unreachable!("numbers have no mind")
        }

        fn keep_number(&mut self, _: u64) {}

        fn keep_handle(&mut self, _: AnyHandle) {}

        fn begins(&mut self, _: &dyn Display) {}

        fn failed(&mut self, _: &dyn Debug) {}
    }

    #[test]
    fn hostile_numbers_are_at_the_ends_and_the_powers() {
        use super::Hostile;
        let mut source = Counter(0);
        let made: BTreeSet<u32> = (0..20_000)
            .filter_map(|_| u32::make(&mut source).ok())
            .collect();
        for wanted in [0, 1, u32::MAX, u32::MAX - 1, 1 << 31, (1 << 31) - 1, 4096] {
            assert!(made.contains(&wanted), "{wanted}");
        }
        let signed: BTreeSet<i32> = (0..20_000)
            .filter_map(|_| i32::make(&mut source).ok())
            .collect();
        assert!(signed.contains(&i32::MIN) && signed.contains(&-1));
        assert_ne!(Outcome::Done, Outcome::Failed);
    }
}
