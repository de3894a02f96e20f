//! The program that `cargo xtask test` runs: `tests [--list] [NAME]`.

use std::process::ExitCode;

fn main() -> ExitCode {
    // It builds, too, so cargo may call it in place of the compiler.
    if let Some(code) = trefoil_gate::signer::called().or_else(trefoil_gate::guard::called) {
        return code;
    }
    trefoil_gate::tool::end_with_the_reader();
    match tests::runner::main(std::env::args().skip(1).collect()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
