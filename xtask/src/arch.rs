//! Whether the framework keeps to its interface of the machine: what is x86-64's stands in the
//! folder of that machine, and that folder names nothing of the framework but the interface.
//! `kernel/framework/src/arch/mod.rs` says what the interface is.

use std::path::Path;

use trefoil_gate::lexer::{self, Kind, Token};
use trefoil_gate::trust::Breach;

/// The package that has the interface, below the top of the sources.
pub const FRAMEWORK: &str = "kernel/framework";
/// Its sources; the tests beside them look into the machine.
const SOURCES: &str = "src";
/// Where the machine lives, below [`SOURCES`].
const MACHINE: &str = "arch/x86_64";
/// The one file that names the machine.
const INTERFACE: &str = "arch/mod.rs";
/// The machine's name.
const NAME: &str = "x86_64";

/// What writes instructions.
const ASSEMBLY: [&str; 4] = ["asm", "global_asm", "naked", "naked_asm"];
/// Registers, as fields of a frame or names of functions would have them.
const REGISTERS: [&str; 34] = [
    "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11", "r12", "r13",
    "r14", "r15", "rip", "eax", "ebx", "ecx", "edx", "rflags", "eflags", "cr0", "cr2", "cr3",
    "cr4", "dr6", "dr7", "cs", "gs", "fs_base", "rdmsr", "wrmsr",
];

/// What breaks the interface in a file of the framework, by its path in the package.
pub fn breaches(file: &Path, in_package: &Path, text: &str) -> Vec<Breach> {
    let Ok(in_sources) = in_package.strip_prefix(SOURCES) else {
        return Vec::new();
    };
    let tokens = lexer::code_tokens(text);
    let wrong: Vec<(usize, String)> = if in_sources.starts_with(MACHINE) {
        names_the_framework(&tokens)
    } else {
        names_the_machine(&tokens, in_sources == Path::new(INTERFACE))
    };
    let breach = |(line, text)| Breach {
        file: file.to_path_buf(),
        line,
        text,
    };
    wrong.into_iter().map(breach).collect()
}

/// Words outside of the machine's folder that are the machine's.
fn names_the_machine(tokens: &[Token<'_>], is_interface: bool) -> Vec<(usize, String)> {
    let words = tokens.iter().filter(|token| token.kind == Kind::Word);
    let wrong = words.filter(|token| {
        let word = token.text.strip_prefix("r#").unwrap_or(token.text);
        let is_name = word == NAME && !is_interface;
        is_name || ASSEMBLY.contains(&word) || REGISTERS.contains(&word)
    });
    wrong
        .map(|token| {
            let text = format!(
                "`{}` belongs to the machine: in {FRAMEWORK}/{SOURCES}/{MACHINE}, behind \
                 `crate::arch`",
                token.text
            );
            (token.line, text)
        })
        .collect()
}

/// Paths in the machine's folder that lead out of `crate::arch`.
fn names_the_framework(tokens: &[Token<'_>]) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let is_path = |from: usize| {
            let mark = |at: usize| tokens.get(at).is_some_and(|token| token.text == ":");
            mark(from) && mark(from + 1)
        };
        let next = |at: usize| tokens.get(at).map_or("", |token| token.text);
        let leaves = token.text == "crate" && is_path(at + 1) && next(at + 3) != "arch";
        let climbs = token.text == "super" && is_path(at + 1) && next(at + 3) == "super";
        if leaves || climbs {
            let text = "a machine names the framework only by `crate::arch`; what it needs stands \
                        in `arch/upcalls.rs`";
            found.push((token.line, text.into()));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(in_package: &str, text: &str) -> Vec<usize> {
        let found = breaches(Path::new("a.rs"), Path::new(in_package), text);
        found.into_iter().map(|breach| breach.line).collect()
    }

    #[test]
    fn instructions_and_registers_stand_with_the_machine() {
        let outside = "src/task/sched.rs";
        for text in [
            "fn a() {\n    unsafe { asm!(\"cli\") }\n}",
            "use core::arch::x86_64::_rdtsc;\nfn a(frame: &TrapFrame) -> u64 {\n    frame.rip\n}",
            "//! A file.\n#[unsafe(naked)]\nextern \"C\" fn a() {}",
            "use crate::arch::x86_64::regs;",
            "fn a() {\n    core::arch::global_asm!(\"nop\");\n}",
            "fn a(frame: &mut TrapFrame) {\n    frame.r#rsp = 0;\n}",
        ] {
            assert!(!lines(outside, text).is_empty(), "{text}");
            assert!(lines("src/arch/x86_64/trap.rs", text).is_empty(), "{text}");
            assert!(lines("selftest/faults.rs", text).is_empty(), "{text}");
        }
        assert_eq!(lines(outside, "fn a() {\n    b.rflags = 0;\n}"), [2]);
    }

    #[test]
    fn one_file_names_the_machine() {
        let text = "mod x86_64;\nuse x86_64 as machine;";
        assert!(lines("src/arch/mod.rs", text).is_empty());
        assert_eq!(lines("src/arch/cpu.rs", text), [1, 2]);
        assert_eq!(lines("src/arch/mod.rs", "fn a() { asm!(\"nop\") }"), [1]);
    }

    #[test]
    fn what_is_said_is_no_use() {
        let text = "//! On x86_64 this is `rip`.\nconst A: &str = \"rsp\"; // asm!";
        assert!(lines("src/fault.rs", text).is_empty());
    }

    #[test]
    fn the_machine_names_the_interface_only() {
        let machine = "src/arch/x86_64/lapic.rs";
        for text in [
            "use crate::task;",
            "fn a() { crate :: mem::init() }",
            "use super::super::super::task;",
            "pub(in crate::smp) fn a() {}",
        ] {
            assert_eq!(lines(machine, text).first(), Some(&1), "{text}");
        }
        for text in [
            "use crate::arch::upcalls::relax;",
            "pub(crate) fn a() {}",
            "use super::regs;",
            "pub(in crate::arch) struct A;",
        ] {
            assert!(lines(machine, text).is_empty(), "{text}");
        }
    }
}
