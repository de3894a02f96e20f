//! The keys that end `top`: a thread of its own waits for them, since reading blocks.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, Ordering};
use domain_rt::thread;
use interfaces::RVec;
use ulib::{Env, RpcResult};

/// Ctrl-C, as the raw console gives it.
const INTERRUPT: u8 = 3;
/// How long to sleep at most before keys are asked for, in nanoseconds.
const LOOK: u64 = 100_000_000;

/// Whether a key was typed that ends the program.
pub struct Keys {
    typed: Arc<AtomicBool>,
}

impl Keys {
    /// Has the console give keys as they are typed, without showing them. It is cooked again when
    /// the process ends.
    ///
    /// # Errors
    /// There is no memory for the thread.
    pub fn watch(env: &Env) -> RpcResult<Keys> {
        let typed = Arc::new(AtomicBool::new(false));
        // Where the console is no terminal, Ctrl-C does as it always does.
        if env.process().set_raw(true).unwrap_or(false) {
            let (process, told) = (env.process().duplicate()?, typed.clone());
            thread::spawn("keys", move || {
                let key = || {
                    RVec::filled(0, 1)
                        .ok()
                        .and_then(|room| process.read(0, room).ok())
                };
                while let Some(key) = key() {
                    if matches!(*key, [] | [b'q' | b'Q' | INTERRUPT]) {
                        break;
                    }
                }
                told.store(true, Ordering::Relaxed);
            })?;
        }
        Ok(Keys { typed })
    }

    /// Sleeps so many nanoseconds, or until such a key is typed; whether it was.
    pub fn sleep(&self, env: &Env, nanoseconds: u64) -> bool {
        let mut left = nanoseconds;
        while left > 0 && !self.typed.load(Ordering::Relaxed) {
            let now = left.min(LOOK);
            if env.process().sleep(now).is_err() {
                return true;
            }
            left -= now;
        }
        self.typed.load(Ordering::Relaxed)
    }
}
