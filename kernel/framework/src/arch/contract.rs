//! The functions that a machine gives, with their types. One that is missing or declared otherwise
//! does not compile. What each does, and what a caller owes, stands at the function.

use super::cpu::PerCpu;
use super::trap::TrapFrame;
use super::types::Rights;
use super::types::{Fault, Polarity, Rates, Trigger};
use super::user::{Registers, VectorState};
use super::{
    clock, controller, entropy, interrupts, loader, page, power, serial, start, switch, untyped,
    user,
};
use crate::boot::start_info::Boot;
use crate::mem::NoMemory;
use crate::mem::map::Range;
use abi::user::UserEvent;
use core::sync::atomic::AtomicU64;

const _: () = {
    let _: fn() -> &'static PerCpu = super::cpu::this_cpu;
    let _: fn() -> usize = super::cpu::sched_word::<0>;
    let _: fn() -> [usize; 3] = super::cpu::place;
    let _: fn() = super::cpu::log_features;
    let _: fn() -> bool = super::cpu::is_emulated;
    let _: fn() -> usize = super::boot_stack_low;
    let _: fn(usize) -> Result<(), NoMemory> = super::init_cpu;
};

const _: () = {
    let _: fn() -> bool = interrupts::disable;
    let _: fn() = interrupts::enable;
    let _: fn() -> bool = interrupts::enabled;
    let _: fn() = interrupts::wait;
    let _: fn() -> ! = interrupts::halt_forever;
};

const _: () = {
    let _: fn() -> u32 = page::largest_level;
    let _: fn(Rights) -> page::Bits = page::bits;
    let _: page::Bits = page::HIDDEN;
    let _: [u64; 3] = page::MARKS;
    let _: fn(u64, u32, page::Bits) -> u64 = page::leaf;
    let _: fn(u64, bool) -> u64 = page::table;
    let _: fn(&AtomicU64) = page::hide;
    let _: fn(u64) -> bool = page::is_present;
    let _: fn(u64, u32) -> bool = page::is_leaf;
    let _: fn(u64) -> u64 = page::address;
    let _: fn(u64) -> u64 = page::read_only;
    let _: fn(u64) -> Rights = page::rights;
    let _: fn() -> u64 = page::root;
    let _: unsafe fn(u64) = page::load_root;
    let _: fn(usize) = page::flush_page;
    let _: fn() = page::flush_all;
    // The address space of the kernel has two halves of 128 TiB, and pages of 4 KiB.
    assert!(page::PAGE_BITS + page::INDEX_BITS * page::LEVELS == 48);
    assert!(1 << page::PAGE_BITS == crate::mem::PAGE_SIZE);
};

const _: () = {
    let _: unsafe extern "C" fn(*mut usize, usize, extern "C" fn() -> !) = switch::leave;
    let _: unsafe extern "C" fn(usize) -> ! = switch::resume;
    let _: unsafe extern "C" fn(usize, extern "C" fn() -> !) -> ! = switch::jump;
    let _: fn(extern "C" fn(usize), usize) -> [usize; switch::PREPARED_WORDS] = switch::prepare;
};

const _: () = {
    let _: unsafe fn(&TrapFrame) -> ! = super::trap::return_to;
    let _: fn(&TrapFrame) -> bool = TrapFrame::is_user;
    let _: fn(&TrapFrame) -> bool = TrapFrame::interrupts_were_on;
    let _: fn(&TrapFrame) -> usize = TrapFrame::instruction;
    let _: fn(&mut TrapFrame, usize, usize, usize, [usize; super::trap::SAVED]) =
        TrapFrame::redirect;
    let _: fn(&TrapFrame) -> Fault = TrapFrame::fault;
    let _: fn(&TrapFrame) -> u64 = TrapFrame::number;
    let _: fn(&TrapFrame) -> u64 = TrapFrame::detail;
    let _: fn(&TrapFrame) -> [usize; 3] = TrapFrame::place;
    let _: fn(&TrapFrame) = TrapFrame::print;
};

const _: () = {
    let _: fn(usize, usize) -> Registers = user::first_registers;
    let _: fn(&mut Registers, u64) = user::set_result;
    let _: fn(&mut Registers) -> Result<(), UserEvent> = user::prepare;
    let _: fn(&Registers) -> user::Bases = user::bases;
    let _: unsafe fn(user::Bases) = user::load_segments;
    let _: unsafe fn(user::Bases) = user::load_bases;
    let _: unsafe fn(&mut Registers) -> UserEvent = user::enter;
    let _: fn() -> VectorState = VectorState::new;
    let _: fn() -> usize = VectorState::bytes;
    let _: unsafe fn(&VectorState) = VectorState::save;
    let _: unsafe fn(&VectorState) = VectorState::load;
    // Programs have no more than the lower half.
    assert!(user::USER_END < 1 << 47);
};

const _: () = {
    let _: fn() = controller::init;
    let _: fn() = controller::enable;
    let _: fn() = controller::end;
    let _: fn(usize) -> u8 = controller::vector;
    let _: fn(usize, usize) -> (u64, u32) = controller::message;
    let _: fn(u32) -> bool = controller::has_input;
    let _: fn(u32, usize, usize, Trigger, Polarity) = controller::connect;
    let _: fn(u32, bool) = controller::set_masked;
    let _: fn(u8) -> (u32, Trigger, Polarity) = controller::legacy_input;
    let _: fn(usize) = controller::request;
    let _: fn() = controller::expect_halt;
    let _: fn(usize) = controller::halt;
    assert!(controller::LINES > 0);
};

const _: () = {
    let _: fn(u64, &mut Boot) = loader::read;
    let _: fn() -> Rates = clock::measure;
    let _: fn() -> u64 = clock::now;
    let _: fn() -> bool = clock::is_steady;
    let _: fn() -> u64 = clock::wall_seconds;
    let _: fn(&mut [u64]) -> usize = entropy::words;
    let _: fn() = clock::enable;
    let _: fn(u64, u32) = clock::arm;
    let _: unsafe fn(usize, u32, usize, &dyn Fn() -> bool) -> bool = start::start;
};

const _: () = {
    let _: [serial::Uart; 2] = [serial::CONSOLE, serial::MIRROR];
    let _: fn(serial::Uart) -> bool = serial::Uart::init;
    let _: fn(serial::Uart) -> usize = serial::Uart::room;
    let _: fn(serial::Uart, u8) = serial::Uart::put;
    let _: fn(u8) = power::tell;
    let _: fn() = power::off;
    let _: fn() = power::reset;
    let _: fn(u16, u16) -> bool = super::ports::could_break;
    let _: Range = super::reserved::PLATFORM;
    let _: u64 = super::reserved::LOW_MEMORY;
    let _: unsafe fn(usize, &mut [u8]) = untyped::copy_out;
    let _: unsafe fn(usize, &[u8]) = untyped::copy_in;
    let _: unsafe fn(usize, usize, usize) = untyped::copy;
    let _: unsafe fn(usize, u32, u32) -> u32 = untyped::exchange;
    let _: fn() -> bool = untyped::can_copy_program;
    let _: unsafe fn(usize, usize, usize) -> usize = untyped::copy_program;
};
