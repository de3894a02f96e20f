//! Boots, runs the programs that the command line names, each in an address space of its own, and
//! powers off with the status of the last one.

extern crate alloc;

use alloc::{format, string::String};
use core::ops::ControlFlow::{self, Break, Continue};
use framework::io::IoPort;
use framework::mem::PAGE_SIZE;
use framework::user::{Registers, UserContext, UserEvent, UserMode, UserProt, VmError, VmSpace};
use policy::KernelScheduler;

framework::kernel_main!(boot);

static SCHEDULER: KernelScheduler = KernelScheduler::new();

fn boot() -> ! {
    framework::task::start(&SCHEDULER, first_thread, 0)
}

/// Includes a program that the build script assembled.
macro_rules! program {
    ($name:literal) => {
        ($name, include_bytes!(concat!(env!("OUT_DIR"), "/", $name)))
    };
}

const PROGRAMS: [(&str, &[u8]); 5] = [
    program!("hello"),
    program!("pointers"),
    program!("peek"),
    program!("wild"),
    program!("halt"),
];

/// The first port of the console.
const COM1: u16 = 0x3f8;
/// The status of a program that did what it must not, as a Unix shell tells it.
const FAULTED: u8 = 139;

extern "C" fn first_thread(_: usize) {
    let console = IoPort::acquire(COM1, 8).expect("nobody else wants the console");
    let mut status = 0;
    for word in framework::boot::command_line().split_whitespace() {
        if let Some((name, code)) = PROGRAMS.iter().find(|(name, _)| *name == word) {
            status = run(code, &console).unwrap_or_else(|why| {
                print(&console, format!("{name}: {why}\n").as_bytes());
                FAULTED
            });
        }
    }
    framework::power::off_with_status(status)
}

/// Where programs see their code and their stack.
const CODE: usize = 0x40_0000;
const STACK: usize = 0x7f_0000;

/// An address space with the code, which cannot be written, and a page of stack.
fn load(code: &[u8]) -> Result<VmSpace, VmError> {
    let space = VmSpace::new().map_err(|_| VmError::NoMemory)?;
    for (at, page) in (CODE..).step_by(PAGE_SIZE).zip(code.chunks(PAGE_SIZE)) {
        space.map_zero(at, 1, UserProt::READ_WRITE)?;
        space.write(at, page)?;
        space.protect(at, 1, UserProt::READ_EXECUTE)?;
    }
    space.map_zero(STACK, 1, UserProt::READ_WRITE)?;
    Ok(space)
}

/// Runs a program to its end. Gives its status, or else why it has none.
fn run(code: &[u8], console: &IoPort) -> Result<u8, String> {
    let space = load(code).map_err(|why| format!("cannot be loaded: {why:?}"))?;
    let mut context = UserContext::new(CODE, STACK + PAGE_SIZE);
    loop {
        match UserMode::new(&mut context, &space).run() {
            UserEvent::Interrupted => (),
            UserEvent::Syscall => match system_call(&context.registers(), &space, console) {
                Continue(result) => context.set_result(result as u64),
                Break(status) => return Ok(status),
            },
            event => return Err(format!("ended by {event:x?}")),
        }
    }
}

/// Linux's numbers: of the calls, and of the errors that they return, negated.
const WRITE: u64 = 1;
const EXIT: u64 = 60;
const EBADF: i64 = -9;
const EFAULT: i64 = -14;
const ENOSYS: i64 = -38;

/// Answers a system call with its result, or the program's status if that was the last.
fn system_call(call: &Registers, space: &VmSpace, console: &IoPort) -> ControlFlow<u8, i64> {
    match (call.rax, call.rdi) {
        (EXIT, status) => Break(status as u8),
        (WRITE, 1) => {
            let mut buffer = [0; 256];
            let length = buffer.len().min(call.rdx as usize);
            let bytes = &mut buffer[..length];
            Continue(match space.read(call.rsi as usize, bytes) {
                Ok(()) => print(console, bytes),
                Err(_) => EFAULT,
            })
        }
        (WRITE, _) => Continue(EBADF),
        _ => Continue(ENOSYS),
    }
}

/// Sends bytes to the serial port (16550), each when the one before has left; says how many.
fn print(console: &IoPort, bytes: &[u8]) -> i64 {
    for byte in bytes {
        while console.read(5).is_ok_and(|status: u8| status & 0x20 == 0) {}
        let _ = console.write(0, *byte);
    }
    bytes.len() as i64
}
