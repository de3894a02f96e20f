//! The program that `cargo xtask test` runs: `tests [--list] [NAME]`.

use std::process::ExitCode;

fn main() -> ExitCode {
    match tests::runner::main(std::env::args().skip(1).collect()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
