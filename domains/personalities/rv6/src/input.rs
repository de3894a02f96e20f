//! The thread that reads the keyboard.

use alloc::vec::Vec;
use domain_rt::{log, time};
use interfaces::RVec;
use tty::Event;

use crate::system::System;

/// Most bytes that are taken from the console at once.
const BATCH: usize = 256;

/// How long to wait when the console gave nothing, and when it failed, in nanoseconds.
const SHORT: u64 = 10_000_000;
const LONG: u64 = 1_000_000_000;

/// The body of the thread.
pub fn read_for_ever(system: &System) {
    let mut failing = false;
    loop {
        let typed = system
            .terminal
            .device()
            .call(|console| console.read(RVec::filled(0, BATCH)?));
        match typed {
            Ok(typed) if typed.is_empty() => time::sleep(SHORT),
            Ok(typed) => take(system, &typed),
            Err(error) => {
                // Said once for a row of failures.
                if !failing {
                    log!("keyboard: {error}");
                }
                time::sleep(LONG);
                failing = true;
                continue;
            }
        }
        failing = false;
    }
}

/// Works off what was typed. The echo is written before anybody acts on it.
fn take(system: &System, typed: &[u8]) {
    let mut echo = Vec::new();
    for &byte in typed {
        let Some(event) = system.terminal.feed(byte, &mut echo) else {
            continue;
        };
        show(system, &mut echo);
        system.terminal.shown();
        act(system, event);
    }
    show(system, &mut echo);
}

/// Does what a key asks for, and wakes who waits for it.
pub fn act(system: &System, event: Event) {
    match event {
        Event::Interrupt => system.interrupt(),
        Event::Suspend => system.suspend(),
        Event::Ready => {}
    }
    system.terminal.wake();
}

/// Writes what is to be echoed.
pub fn show(system: &System, echo: &mut Vec<u8>) {
    if echo.is_empty() {
        return;
    }
    if let Ok(text) = RVec::from_slice(echo) {
        // A console that cannot show the echo will be noticed by whoever writes next.
        let _ = system.terminal.echo(&text);
    }
    echo.clear();
}
