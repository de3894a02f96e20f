//! Tests of faults in ring 0: each one is provoked and must be reported as what it is.

use alloc::format;
use alloc::string::String;
use core::arch::asm;
use core::hint::black_box;

use super::{Test, catch};
use crate::fault::{Fault, FaultKind};
use crate::mem::{DIRECT_MAP, KERNEL_BASE, kernel_text};

/// The tests of this file.
pub(super) static TESTS: &[Test] = &[
    ("fault-null-read", null_read),
    ("fault-null-call", null_call),
    ("fault-divide", divide),
    ("fault-invalid-opcode", invalid_opcode),
    ("fault-non-canonical", non_canonical),
    ("fault-stack-overflow", stack_overflow),
    ("fault-write-to-code", write_to_code),
    ("fault-write-to-constants", write_to_constants),
    ("fault-write-to-code-alias", write_to_code_alias),
    ("fault-execute-data", execute_data),
    ("fault-identity-map-gone", identity_map_gone),
    ("fault-registers-survive", registers_survive),
];

/// Whether the caught fault is of the expected kind.
fn expect(caught: Option<Fault>, kind: FaultKind) -> Result<(), String> {
    match caught {
        Some(fault) if fault.kind == kind => Ok(()),
        other => Err(format!("expected {kind:?}, got {other:?}")),
    }
}

const READ: FaultKind = FaultKind::PageFault {
    write: false,
    execute: false,
};
const WRITE: FaultKind = FaultKind::PageFault {
    write: true,
    execute: false,
};
const EXECUTE: FaultKind = FaultKind::PageFault {
    write: false,
    execute: true,
};

/// Reads a byte in a way the compiler cannot reason about.
pub(super) fn touch(address: usize) {
    // SAFETY: the tests call this with addresses that fault, or that are mapped kernel memory;
    // reading has no effect and the value is not used.
    unsafe { asm!("mov {0:l}, [{1}]", out(reg) _, in(reg) address, options(nostack, readonly)) };
}

/// Writes the byte that is there already.
pub(super) fn rewrite(address: usize) {
    // SAFETY: the same value is written, so memory is unchanged even where the write succeeds.
    unsafe { asm!("lock or byte ptr [{}], 0", in(reg) address, options(nostack)) };
}

fn null_read() -> Result<(), String> {
    expect(catch(|| touch(black_box(8))), READ)
}

/// Calls an address that must fault.
pub(super) fn call(address: usize) {
    // SAFETY: the call faults on the first fetch, and `catch` restores the registers.
    unsafe { asm!("call {}", in(reg) address, clobber_abi("C")) };
}

fn null_call() -> Result<(), String> {
    expect(catch(|| call(black_box(0))), EXECUTE)
}

fn divide() -> Result<(), String> {
    let divide = || {
        // SAFETY: the division faults; no memory is touched.
        unsafe { asm!("xor {0:e}, {0:e}", "div {0:e}", out(reg) _, out("eax") _, out("edx") _) };
    };
    expect(catch(divide), FaultKind::Divide)
}

fn invalid_opcode() -> Result<(), String> {
    let undefined = || {
        // SAFETY: the instruction faults and does nothing else.
        unsafe { asm!("ud2") };
    };
    expect(catch(undefined), FaultKind::InvalidOpcode)
}

fn non_canonical() -> Result<(), String> {
    expect(
        catch(|| touch(black_box(1 << 60))),
        FaultKind::GeneralProtection,
    )
}

/// Recurses until the stack is full.
#[allow(unconditional_recursion)]
fn recurse(depth: usize) -> usize {
    let frame = black_box([depth; 64]);
    recurse(depth + 1) + frame[depth % 64]
}

fn stack_overflow() -> Result<(), String> {
    let overflow = || {
        black_box(recurse(0));
    };
    expect(catch(overflow), FaultKind::StackOverflow)
}

fn write_to_code() -> Result<(), String> {
    expect(catch(|| rewrite(kernel_text().start)), WRITE)
}

fn write_to_constants() -> Result<(), String> {
    static CONSTANT: [u8; 16] = [7; 16];
    expect(
        catch(|| rewrite(black_box(&CONSTANT).as_ptr() as usize)),
        WRITE,
    )
}

fn write_to_code_alias() -> Result<(), String> {
    let alias = || rewrite(kernel_text().start - KERNEL_BASE + DIRECT_MAP);
    expect(catch(alias), WRITE)
}

fn execute_data() -> Result<(), String> {
    let execute = || {
        let code = black_box([0xc3_u8; 16]);
        call(code.as_ptr() as usize);
    };
    expect(catch(execute), EXECUTE)
}

fn identity_map_gone() -> Result<(), String> {
    expect(catch(|| touch(kernel_text().start - KERNEL_BASE)), READ)
}

/// A fault that the hook repairs by skipping it leaves all registers as they were.
fn registers_survive() -> Result<(), String> {
    let (mut low, mut high) = (1_u64, 2_u64);
    let previous = crate::fault::replace_hook(Some(|frame, _| {
        frame.rip += 2;
        crate::fault::FaultOutcome::Handled
    }));
    // SAFETY: the hook above steps over the `ud2`; the registers named are preserved or declared.
    unsafe {
        asm!("mov r12, 77", "mov r9, 88", "ud2", "mov {0}, r12", "mov {1}, r9",
            inout(reg) low, inout(reg) high, out("r12") _, out("r9") _);
    }
    crate::fault::replace_hook(previous);
    crate::check!((low, high) == (77, 88), "registers are {low} and {high}");
    Ok(())
}
