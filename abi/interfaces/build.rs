//! Has `idlc` check all `.idl` files and write this crate's types and traits.

fn main() -> std::process::ExitCode {
    idlc::build::script("../..", "interfaces.rs", idlc::emit_interfaces)
}
