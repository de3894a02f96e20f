//! `threadbench`: does the work of `cargo xtask bench schedule` (see `lib/testing/threadwork`),
//! with threads and locks of the domain.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::vec::Vec;
use domain_rt::sync::{Condvar, Mutex};
use domain_rt::{thread, time};
use interfaces::RpcError;
use threadwork::{Command, Place, Shared, System, USAGE};
use ulib::{Env, Handle, Process, Program, RpcResult, Stop, println};

/// The entry of the program.
///
/// # Errors
/// There is no memory for it.
pub fn start(process: Handle<dyn Process>) -> RpcResult<Handle<dyn Program>> {
    ulib::program(process, main)
}

fn main(env: &Env) -> Result<i32, Stop> {
    let words = env.arguments().iter();
    let words: Option<Vec<&str>> = words.map(|word| core::str::from_utf8(word).ok()).collect();
    let command = words.and_then(|words| Command::parse(&words));
    let Some(command) = command else {
        return Err(Stop::usage(USAGE.trim_ascii()));
    };
    let mut printed = Ok(());
    let done = command.run::<Trefoil>(&mut |line| {
        if printed.is_ok() {
            printed = println!(env, "{line}");
        }
    });
    done.map_err(|error| Stop::about(b"threadbench", error))?;
    printed.map(|()| env.status())
}

/// The domain's runtime.
struct Trefoil;

impl System for Trefoil {
    type Error = RpcError;
    type Shared<T: Send + 'static> = Locked<T>;

    fn now() -> u64 {
        time::now()
    }

    fn sleep(nanoseconds: u64) {
        time::sleep(nanoseconds);
    }

    fn yield_now() {
        thread::yield_now();
    }

    fn spawn(body: impl FnOnce() + Send + 'static) -> RpcResult<()> {
        thread::spawn("threadbench", body)
    }
}

/// Data with its lock and two places to wait.
struct Locked<T> {
    data: Mutex<T>,
    places: [Condvar; 2],
}

impl<T: Send + 'static> Shared<T> for Locked<T> {
    fn new(data: T) -> Self {
        Locked {
            data: Mutex::new(data),
            places: [Condvar::new(), Condvar::new()],
        }
    }

    fn until<R>(&self, place: Place, mut step: impl FnMut(&mut T) -> Option<R>) -> R {
        let mut data = self.data.lock();
        loop {
            if let Some(result) = step(&mut data) {
                return result;
            }
            // Should the program be ended meanwhile, the thread does not come back from here.
            (data, _) = self.places[place as usize].wait(data);
        }
    }

    fn wake_one(&self, place: Place) {
        self.places[place as usize].notify_one();
    }

    fn wake_all(&self, place: Place) {
        self.places[place as usize].notify_all();
    }
}
