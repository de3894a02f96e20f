//! One instance that answers, or why there is none.

use core::fmt::{self, Write};
use core::sync::atomic::{AtomicU64, Ordering};
use interfaces::{Failure, Handle, Interface, Respawn, RespawnError, RpcError, Text};

use crate::{report, until_answered};

/// What this domain was last told of an absence.
static LAST: Last = Last(AtomicU64::new(0));

/// The digest of a text; 0: there was none since something was found.
struct Last(AtomicU64);

impl Last {
    /// Whether this says something else than the last one.
    fn is_news(&self, text: &impl fmt::Display) -> bool {
        let mut digest = Digest(0xcbf2_9ce4_8422_2325);
        // It cannot fail.
        let _ = write!(digest, "{text}");
        self.0.swap(digest.0, Ordering::Relaxed) != digest.0
    }

    fn forget(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

/// The FNV-1a digest of what is written to it.
struct Digest(u64);

impl fmt::Write for Digest {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
        Ok(())
    }
}

/// One instance of a domain, and what it said first.
pub struct Live<I: ?Sized + Interface, G = ()> {
    /// Its number. 0 is none's.
    pub id: u32,
    /// What it offers.
    pub service: Handle<I>,
    /// What came of the greeting.
    pub greeting: G,
}

/// Why there is no instance. `E` is the error of the greeting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absent<E> {
    /// It crashed too often and stays down.
    GaveUp,
    /// It does not start; what was said.
    CannotStart(Text<64>),
    /// Who would start it is dead.
    NobodyAsked,
    /// The call to who would start it failed otherwise.
    Unasked(RpcError),
    /// What was started offers something else.
    OtherInterface,
    /// Instance after instance was gone before it had answered.
    KeepsDying,
    /// It answered the greeting with this.
    Greeting(E),
}

impl<E: Failure> Absent<E> {
    /// What a caller is told. `down` stands for all that does not say more; then the reason is in
    /// the log, under the name `what`.
    pub fn tell(self, what: &str, down: E) -> E {
        // `init` says it once, not at each call, that something crashed too often.
        if !matches!(
            self,
            Absent::GaveUp | Absent::Unasked(_) | Absent::Greeting(_)
        ) {
            // Whoever waits for it asks again and again.
            if LAST.is_news(&self) {
                report(format_args!("no {what}: {self}"));
            }
        }
        match self {
            Absent::Unasked(error) => error.into(),
            Absent::Greeting(error) => error,
            _ => down,
        }
    }
}

impl<E> From<RespawnError> for Absent<E> {
    fn from(error: RespawnError) -> Self {
        match error {
            RespawnError::GaveUp => Absent::GaveUp,
            RespawnError::CannotStart(why) => Absent::CannotStart(why),
            RespawnError::Rpc(RpcError::DomainCrashed) => Absent::NobodyAsked,
            RespawnError::Rpc(error) => Absent::Unasked(error),
        }
    }
}

impl<E> fmt::Display for Absent<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Absent::GaveUp => "it crashed too often",
            Absent::CannotStart(why) => why.as_str(),
            Absent::NobodyAsked => "it is dead, and nobody is there to start it again",
            Absent::Unasked(_) => "init could not be asked",
            Absent::OtherInterface => "what was started is not what was asked for",
            Absent::KeepsDying => "it crashes when it is used",
            Absent::Greeting(_) => "it started, but does not work",
        })
    }
}

/// An instance other than `failed` (0: any) that answers `greet`. If one is gone before it has
/// answered, the next is asked for.
///
/// # Errors
/// See [`Absent`].
pub fn fetch<I, G, E>(
    respawn: &Handle<dyn Respawn>,
    mut failed: u32,
    mut greet: impl FnMut(&Handle<I>) -> Result<G, E>,
) -> Result<Live<I, G>, Absent<E>>
where
    I: ?Sized + Interface,
    E: Failure,
{
    let found = until_answered(|| {
        let (id, service) = match next(respawn, failed) {
            Ok(next) => next,
            Err(why) => return Some(Err(why)),
        };
        match greet(&service) {
            Ok(greeting) => {
                LAST.forget();
                Some(Ok(Live {
                    id,
                    service,
                    greeting,
                }))
            }
            Err(error) if error.is_gone() => {
                failed = id;
                None
            }
            Err(error) => Some(Err(Absent::Greeting(error))),
        }
    });
    found.unwrap_or(Err(Absent::KeepsDying))
}

fn next<I: ?Sized + Interface, E>(
    respawn: &Handle<dyn Respawn>,
    failed: u32,
) -> Result<(u32, Handle<I>), Absent<E>> {
    let incarnation = respawn.instance(failed)?;
    let service = incarnation.service.downcast::<I>();
    Ok((incarnation.id, service.map_err(|_| Absent::OtherInterface)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absence_is_told_once() {
        let last = Last(AtomicU64::new(0));
        assert!(last.is_news(&"no device"));
        assert!(!last.is_news(&"no device"));
        assert!(last.is_news(&"no memory"));
        assert!(last.is_news(&"no device"));
        last.forget();
        assert!(last.is_news(&"no device"));
    }
}
