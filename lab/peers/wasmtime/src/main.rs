//! Measures calls from the host into a WebAssembly module, and prints a JSON array of figures in
//! ticks of the time-stamp counter: a peer of the calls between domains.
//!
//! Usage: `wasmtime-peer CPU`

use std::arch::x86_64::{_mm_lfence, _rdtsc};
use std::hint::black_box;
use wasmtime::{Engine, Instance, Module, Store};

/// As in the benchmark of our calls.
const ROUNDS: usize = 4000;
const CALLS: u64 = 1000;

/// A module with two functions: `null`, which does nothing, and `add`, which gives the sum of two
/// numbers.
#[rustfmt::skip]
const MODULE: &[u8] = &[
    0x00, b'a', b's', b'm', 1, 0, 0, 0,
    // Types: () -> (), (i64, i64) -> i64.
    1, 10, 2, 0x60, 0, 0, 0x60, 2, 0x7e, 0x7e, 1, 0x7e,
    // Functions.
    3, 3, 2, 0, 1,
    // Exports.
    7, 14, 2, 4, b'n', b'u', b'l', b'l', 0, 0, 3, b'a', b'd', b'd', 0, 1,
    // Code: end; local.get 0, local.get 1, i64.add, end.
    10, 12, 2, 2, 0, 0x0b, 7, 0, 0x20, 0, 0x20, 1, 0x7c, 0x0b,
];

fn tsc() -> u64 {
    // SAFETY: every x86-64 processor has both; neither touches memory.
    unsafe {
        _mm_lfence();
        let now = _rdtsc();
        _mm_lfence();
        now
    }
}

/// Binds the process to one processor.
fn pin(cpu: usize) {
    // SAFETY: the set is filled in and read by the system.
    let result = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set)
    };
    assert_eq!(result, 0, "there is no processor {cpu}");
}

/// Best and middle of the rounds, in ticks per call.
fn measure(mut call: impl FnMut()) -> (f64, f64) {
    let mut rounds: Vec<u64> = (0..ROUNDS)
        .map(|_| {
            let begin = tsc();
            (0..CALLS).for_each(|_| call());
            tsc() - begin
        })
        .collect();
    rounds.sort_unstable();
    let per_call = |round: u64| round as f64 / CALLS as f64;
    (per_call(rounds[0]), per_call(rounds[ROUNDS / 2]))
}

fn main() -> wasmtime::Result<()> {
    let cpu = std::env::args().nth(1).and_then(|cpu| cpu.parse().ok());
    pin(cpu.expect("the number of a processor"));
    let engine = Engine::default();
    let module = Module::new(&engine, MODULE)?;
    let mut store = Store::new(&engine, ());
    let instance = Instance::new(&mut store, &module, &[])?;
    let null = instance.get_typed_func::<(), ()>(&mut store, "null")?;
    let add = instance.get_typed_func::<(i64, i64), i64>(&mut store, "add")?;
    assert_eq!(add.call(&mut store, (2, 3))?, 5);
    let nulls = measure(|| {
        black_box(null.call(&mut store, ()).is_ok())
            .then_some(())
            .unwrap()
    });
    let sums = measure(|| _ = black_box(add.call(&mut store, black_box((1, 2)))));
    let figure = |id: &str, name: &str, (best, median): (f64, f64)| {
        format!(
            "{{\"id\":\"{id}\",\"name\":\"{name}\",\"best\":{best},\"median\":{median},\"unit\":\"ticks\"}}"
        )
    };
    println!(
        "[{},{}]",
        figure("W1", "wasmtime, host to module, null", nulls),
        figure(
            "W1a",
            "wasmtime, host to module, two numbers and a result",
            sums
        )
    );
    Ok(())
}
