//! Has `idlc` check all `.idl` files and write the calls.

fn main() -> std::process::ExitCode {
    idlc::build::script("../../..", "hostile.rs", idlc::emit_hostile)
}
