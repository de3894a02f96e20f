//! The work of `cargo xtask bench schedule` (see `lib/testing/threadwork`) on Linux: the peer of
//! `domains/testing/threadbench`. It is linked statically, and runs in the initial disk of the
//! kernel that is measured.
#![forbid(unsafe_code)]

use std::io;
use std::process::ExitCode;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use threadwork::{Command, Place, Shared, System, USAGE};

/// Threads and locks of the standard library, which are made of the kernel's threads and futexes.
struct Linux;

impl System for Linux {
    type Error = io::Error;
    type Shared<T: Send + 'static> = Locked<T>;

    fn now() -> u64 {
        let time = clock_gettime(ClockId::Monotonic);
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    }

    fn sleep(nanoseconds: u64) {
        thread::sleep(Duration::from_nanos(nanoseconds));
    }

    fn yield_now() {
        thread::yield_now();
    }

    fn spawn(body: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let builder = thread::Builder::new().stack_size(128 * 1024);
        builder.spawn(body).map(drop)
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
            places: Default::default(),
        }
    }

    fn until<R>(&self, place: Place, mut step: impl FnMut(&mut T) -> Option<R>) -> R {
        let mut data: MutexGuard<'_, T> = self.data.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(result) = step(&mut data) {
                return result;
            }
            let waited = self.places[place as usize].wait(data);
            data = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn wake_one(&self, place: Place) {
        self.places[place as usize].notify_one();
    }

    fn wake_all(&self, place: Place) {
        self.places[place as usize].notify_all();
    }
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let Some(command) = Command::parse(&words) else {
        eprintln!("{}", USAGE.trim());
        return ExitCode::from(2);
    };
    match command.run::<Linux>(&mut |line| println!("{line}")) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("threadbench: {error}");
            ExitCode::FAILURE
        }
    }
}
