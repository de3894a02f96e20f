//! The command line of the interface compiler.

fn main() -> std::process::ExitCode {
    match idlc::load(std::path::Path::new(".")) {
        Ok(model) => {
            println!("{}\n{}", idlc::emit_interfaces(&model), idlc::emit_proxies(&model));
            std::process::ExitCode::SUCCESS
        }
        Err(report) => {
            eprint!("{report}");
            std::process::ExitCode::FAILURE
        }
    }
}
