//! Assembles the ring-3 programs to flat images, with the assembler and linker that the host's
//! compiler needs anyway, and passes the framework's linker script to the kernel's linker.

use std::path::Path;
use std::process::Command;

/// The files in `programs`, without their extension.
const PROGRAMS: [&str; 5] = ["hello", "pointers", "peek", "wild", "halt"];

fn main() {
    println!("cargo:rerun-if-changed=programs");
    println!("cargo:rerun-if-changed=../framework/kernel.ld");
    let variable = |name| std::env::var(name).expect("cargo sets it");
    if variable("CARGO_CFG_TARGET_OS") != "none" {
        return;
    }
    let out = variable("OUT_DIR");
    for name in PROGRAMS {
        assemble(name, Path::new(&out));
    }
    let script = format!(
        "-T{}/../framework/kernel.ld",
        variable("CARGO_MANIFEST_DIR")
    );
    for argument in ["--no-pie", "-znorelro", "--build-id=none", &script] {
        println!("cargo:rustc-link-arg-bins={argument}");
    }
}

/// Makes `programs/NAME.s` the file `NAME` in `out`, whose first byte is the first instruction.
fn assemble(name: &str, out: &Path) {
    let (source, object) = (format!("programs/{name}.s"), out.join(format!("{name}.o")));
    run(Command::new("as")
        .arg("--64")
        .arg("-o")
        .arg(&object)
        .arg(source));
    let mut linker = Command::new("ld");
    linker.args(["-m", "elf_x86_64", "--oformat", "binary", "-e", "0"]);
    linker.args(["-Ttext", "0x400000", "-o"]);
    run(linker.arg(out.join(name)).arg(&object));
}

fn run(command: &mut Command) {
    let status = command.status();
    let succeeded = status.as_ref().is_ok_and(|status| status.success());
    assert!(succeeded, "{command:?}: {status:?}");
}
