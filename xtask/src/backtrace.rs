//! `cargo xtask backtrace`: a log that was kept, with stacks in words.

use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal, Read, Write};
use std::path::PathBuf;

use anyhow::{Context, Result};
use trefoil_gate::project::Project;
use trefoil_gate::tool;

/// What to read.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// A log, such as one that came over a serial line; `-` or nothing: standard input
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// The kernel that was booted, if it is not the one that was built last
    #[arg(long, value_name = "FILE")]
    pub kernel: Option<PathBuf>,
}

/// The command.
///
/// # Errors
/// If the log cannot be read, or nobody reads what is printed.
pub fn backtrace(project: &Project, options: &Options) -> Result<()> {
    let kernel = options.kernel.clone().unwrap_or_else(|| project.kernel());
    let mut reader = machine::log::reader(&kernel);
    let file = options.file.as_ref().filter(|file| file.as_os_str() != "-");
    let input: Box<dyn Read> = match file {
        Some(path) => {
            Box::new(File::open(path).with_context(|| format!("cannot read {}", path.display()))?)
        }
        None => {
            if io::stdin().is_terminal() {
                eprintln!("reading the log from the terminal; Ctrl-D ends it");
            }
            Box::new(io::stdin())
        }
    };
    let mut lines = BufReader::new(input);
    let (mut line, mut out) = (Vec::new(), io::stdout().lock());
    while lines
        .read_until(b'\n', &mut line)
        .context("the log cannot be read")?
        > 0
    {
        let text = String::from_utf8_lossy(&line);
        out.write_all(reader.lines(&tool::plain(&text)).as_bytes())?;
        line.clear();
    }
    Ok(())
}
