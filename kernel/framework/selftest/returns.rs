//! Tests of the way back to ring 3.

use super::Test;
use super::user::{hello_and_loop, run, space};
use crate::arch::user::{can_sysret, prepare};
use crate::check;
use crate::user::UserEvent;
use alloc::string::String;

/// The tests of this file.
pub(super) static TESTS: &[Test] = &[("user-system-calls-go-back-the-quick-way", quick)];

/// After a system call that changed nothing else the program goes on by SYSRET.
fn quick() -> Result<(), String> {
    let space = space()?;
    let (mut hello, _) = hello_and_loop();
    for step in 0..2 {
        let event = run(&mut hello, &space);
        check!(event == UserEvent::Syscall, "{event:?}");
        let mut registers = hello.registers();
        let prepared = prepare(&mut registers);
        check!(prepared == Ok(()), "{prepared:?}");
        check!(can_sysret(&registers), "call {step} goes back by IRETQ");
        registers.rip += 1;
        check!(!can_sysret(&registers), "SYSRET goes to another place");
        registers.rip -= 1;
        registers.rflags |= 0x100;
        registers.r11 |= 0x100;
        check!(!can_sysret(&registers), "SYSRET with the trap flag");
    }
    Ok(())
}
