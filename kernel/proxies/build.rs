//! Has `idlc` check all `.idl` files and write the input of the proxy macro.

fn main() -> std::process::ExitCode {
    idlc::build::script("../..", "proxies.rs", idlc::emit_proxies)
}
