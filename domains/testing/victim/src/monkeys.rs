//! Programs of random instructions in ring 3.
//!
//! Half of the code is bytes as they come, half is instructions that a kernel has trouble with:
//! system calls, privileged ones, flags, segments, returns. Registers are addresses of the program,
//! of the kernel, of nobody, and numbers. The code is changed while it runs, but not by itself: no
//! byte of it begins an instruction of AVX, for at some of these QEMU 7.2 ends.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, Ordering};
use domain_rt::sync::Mutex;
use domain_rt::thread;
use domain_rt::time;
use domain_rt::user::{self, UserEvent, UserRegisters};
use interfaces::{
    AddressSpace, AddressSpaces, Handle, Protection, RpcError, RpcResult, SpaceError, UserThread,
};

const PAGE: u64 = 4096;
const CODE: u64 = 0x40_0000;
const CODE_PAGES: u64 = 2;
const STACK: u64 = 0x7fff_ffff_d000;
/// Events of a program at most.
const EVENTS: u32 = 40;
/// How long a program may go on without an event, in nanoseconds.
const PATIENCE: u64 = 300_000;

const WRITE: Protection = Protection {
    read: true,
    write: true,
    execute: false,
};
const EXECUTE: Protection = Protection {
    read: true,
    write: false,
    execute: true,
};
/// Prefixes of instructions of AVX and AVX-512.
const WIDE: [u8; 3] = [0xc4, 0xc5, 0x62];

/// What random bytes do not come to often enough.
const INSTRUCTIONS: [&[u8]; 34] = [
    &[0x0f, 0x05],                         // syscall
    &[0x0f, 0x34],                         // sysenter
    &[0x48, 0x0f, 0x07],                   // sysretq
    &[0x48, 0xcf],                         // iretq
    &[0xcb],                               // retf
    &[0xcc],                               // int3
    &[0xf1],                               // icebp
    &[0xcd, 0x80],                         // int 0x80
    &[0xcd, 0x0e],                         // int 14
    &[0xcd, 0x02],                         // int 2
    &[0xf4],                               // hlt
    &[0xfa],                               // cli
    &[0x0f, 0x30],                         // wrmsr
    &[0x0f, 0x32],                         // rdmsr
    &[0x0f, 0x01, 0xf8],                   // swapgs
    &[0x0f, 0x01, 0xd1],                   // xsetbv
    &[0x0f, 0x22, 0xd8],                   // mov cr3, rax
    &[0x0f, 0x23, 0xf8],                   // mov dr7, rax
    &[0x0f, 0x01, 0x14, 0x24],             // lgdt [rsp]
    &[0x9d],                               // popf
    &[0x9c],                               // pushf
    &[0x68, 0x00, 0x01, 0x04, 0x00, 0x9d], // push TF and AC, popf
    &[0x68, 0xd5, 0x4f, 0x24, 0x00, 0x9d], // push what a program may set, and NT, popf
    &[0x8e, 0xe0],                         // mov fs, eax
    &[0x8e, 0xe8],                         // mov gs, eax
    &[0x8e, 0xd8],                         // mov ds, eax
    &[0x8e, 0xd0],                         // mov ss, eax
    &[0x0f, 0xae, 0x2c, 0x24],             // xrstor [rsp]
    &[0x0f, 0xae, 0x24, 0x24],             // xsave [rsp]
    &[0x0f, 0xae, 0x14, 0x24],             // ldmxcsr [rsp]
    &[0xdb, 0xe3],                         // fninit
    &[0x48, 0x89, 0x04, 0x25, 0, 0, 0x40], // mov [CODE], rax, in part
    &[0xeb, 0xfe],                         // jmp to itself
    &[0x48, 0x0f, 0xc7, 0xf0],             // rdrand rax
];

/// Numbers that look random (xorshift64).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// What a register may hold.
    fn word(&mut self) -> u64 {
        let near = self.below(64).wrapping_sub(32);
        match self.below(12) {
            0 => CODE + self.below(CODE_PAGES * PAGE),
            1 | 2 => STACK + self.below(PAGE),
            3 => 0xffff_8000_0000_0000_u64.wrapping_add(near),
            4 => 0xffff_ffff_8020_0000_u64.wrapping_add(near),
            5 => (1_u64 << 47).wrapping_add(near),
            6 => 0x7fff_ffff_f000_u64.wrapping_add(near),
            7 => near,
            8 => 1 << self.below(64),
            9 => self.below(0x40),
            _ => self.next(),
        }
    }

    fn code(&mut self) -> [u8; 512] {
        let mut code = [0; 512];
        let mut at = 0;
        while at < code.len() {
            let raw = self.next().to_le_bytes();
            let piece = match self.below(2) {
                0 => &raw[..1 + self.below(8) as usize],
                _ => INSTRUCTIONS[self.below(INSTRUCTIONS.len() as u64) as usize],
            };
            let end = (at + piece.len()).min(code.len());
            code[at..end].copy_from_slice(&piece[..end - at]);
            at = end;
        }
        for byte in code.iter_mut().filter(|byte| WIDE.contains(byte)) {
            *byte = 0x90;
        }
        code
    }

    fn registers(&mut self) -> UserRegisters {
        let rip = match self.below(8) {
            0 => self.word(),
            _ => self.place(),
        };
        let base = |numbers: &mut Self| match numbers.below(4) {
            0 => numbers.word(),
            _ => STACK,
        };
        UserRegisters {
            rax: self.word(),
            rbx: self.word(),
            rcx: if self.below(2) == 0 { rip } else { self.word() },
            rdx: self.word(),
            rsi: self.word(),
            rdi: self.word(),
            rbp: self.word(),
            rsp: self.word(),
            r8: self.word(),
            r9: self.word(),
            r10: self.word(),
            r11: if self.below(2) == 0 {
                0x202
            } else {
                self.word()
            },
            r12: self.word(),
            r13: self.word(),
            r14: self.word(),
            r15: self.word(),
            rip,
            rflags: if self.below(2) == 0 {
                0x202
            } else {
                self.word()
            },
            fs_base: base(self),
            gs_base: base(self),
        }
    }

    /// Somewhere in the code.
    fn place(&mut self) -> u64 {
        CODE + self.below(512)
    }
}

/// The thread that runs now, for who ends loops.
type Now = Arc<Mutex<Option<Handle<dyn UserThread>>>>;

/// Runs so many programs; how many events there were.
pub fn run(spaces: &Handle<dyn AddressSpaces>, seed: u64, programs: u64) -> RpcResult<u64> {
    let now: Now = Arc::new(Mutex::new(None));
    let ended = Arc::new(AtomicBool::new(false));
    let (kicked, over) = (now.clone(), ended.clone());
    thread::spawn("kicks", move || {
        while !over.load(Ordering::Acquire) {
            time::sleep(PATIENCE);
            if let Some(thread) = &*kicked.lock() {
                let _ = thread.kick();
            }
        }
    })?;
    let mut numbers = Numbers(seed | 1);
    let mut events = 0;
    let done = (0..programs).try_for_each(|_| {
        events += program(spaces, &mut numbers, &now)?;
        Ok::<_, SpaceError>(())
    });
    ended.store(true, Ordering::Release);
    *now.lock() = None;
    match done {
        Ok(()) => Ok(events),
        Err(SpaceError::Rpc(why)) => Err(why),
        Err(_) => Err(RpcError::Refused),
    }
}

/// Runs one program; how many events there were.
fn program(
    spaces: &Handle<dyn AddressSpaces>,
    numbers: &mut Numbers,
    now: &Now,
) -> Result<u64, SpaceError> {
    let space = spaces.create()?;
    space.map_zero(CODE, CODE_PAGES, WRITE)?;
    space.map_zero(STACK, 1, WRITE)?;
    put_code(&space, numbers)?;
    let thread = space.thread()?;
    *now.lock() = Some(thread.duplicate()?);
    let mut registers = numbers.registers();
    let mut events = 0;
    for _ in 0..EVENTS {
        let event = user::run(&thread, &mut registers);
        events += 1;
        match event {
            UserEvent::PageFault { address, write, .. } => {
                if space.touch(address, write).is_err() {
                    registers.rip = numbers.place();
                }
            }
            UserEvent::Syscall => change(&space, numbers, &mut registers)?,
            UserEvent::Refused => return Err(RpcError::Refused.into()),
            _ => {
                let rip = registers.rip;
                registers = numbers.registers();
                if numbers.below(2) == 0 {
                    registers.rip = rip.wrapping_add(1);
                }
            }
        }
    }
    Ok(events)
}

/// Puts other code in the place of what is there.
fn put_code(space: &Handle<dyn AddressSpace>, numbers: &mut Numbers) -> Result<(), SpaceError> {
    space.protect(CODE, CODE_PAGES, WRITE)?;
    space.touch(CODE, true)?;
    user::write(space, CODE, &numbers.code());
    space.protect(CODE, CODE_PAGES, EXECUTE).map(drop)
}

/// What a personality may do meanwhile.
fn change(
    space: &Handle<dyn AddressSpace>,
    numbers: &mut Numbers,
    registers: &mut UserRegisters,
) -> Result<(), SpaceError> {
    match numbers.below(6) {
        0 => {
            space.unmap(STACK, 1)?;
            space.map_zero(STACK, 1, WRITE)?;
        }
        2 => *registers = numbers.registers(),
        3 => put_code(space, numbers)?,
        _ => registers.rax = numbers.word(),
    }
    Ok(())
}
