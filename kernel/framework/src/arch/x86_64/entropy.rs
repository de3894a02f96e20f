//! The processor's own source of random numbers: RDSEED, or else RDRAND (SDM volume 1, 7.3.17).
//!
//! What they say is not judged here: some processors answer with all ones, or with zeros, and say
//! that this was a success.

use core::arch::asm;

use super::regs;

/// So often a word is asked for before the source counts as empty. RDRAND fails ten times in a row
/// only if it is broken (SDM volume 1, 7.3.17.1); RDSEED may be used up by other processors.
const TRIES: usize = 64;

/// Which instruction there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Instruction {
    Rdseed,
    Rdrand,
}

/// What CPUID announces.
fn find() -> Option<Instruction> {
    if regs::cpuid(7, 0).ebx >> 18 & 1 != 0 {
        return Some(Instruction::Rdseed);
    }
    let has_rdrand = regs::cpuid(1, 0).ecx >> 30 & 1 != 0;
    has_rdrand.then_some(Instruction::Rdrand)
}

/// Executes the instruction once; `None` if it had nothing (the carry flag is clear).
///
/// # Safety
/// The processor has it.
unsafe fn ask(instruction: Instruction) -> Option<u64> {
    let (word, is_there): (u64, u8);
    // SAFETY: by the caller's duty; both write one register and flags, and nothing else.
    unsafe {
        match instruction {
            Instruction::Rdseed => {
                asm!("rdseed {}", "setc {}", out(reg) word, out(reg_byte) is_there, options(nomem, nostack));
            }
            Instruction::Rdrand => {
                asm!("rdrand {}", "setc {}", out(reg) word, out(reg_byte) is_there, options(nomem, nostack));
            }
        }
    }
    (is_there != 0).then_some(word)
}

/// Puts words of the source into `words`, from the first on; how many. Fewer, also none, if it has
/// no more now or does not exist.
pub fn words(words: &mut [u64]) -> usize {
    let Some(instruction) = find() else {
        return 0;
    };
    let mut count = 0;
    for place in words {
        // SAFETY: CPUID says that there is this instruction, and all processors of a machine have
        // the same; if one had not, this would be an invalid opcode and no damage.
        let mut tries = (0..TRIES).map(|_| unsafe { ask(instruction) });
        let Some(word) = tries.find_map(|word| word) else {
            break;
        };
        *place = word;
        count += 1;
    }
    count
}
