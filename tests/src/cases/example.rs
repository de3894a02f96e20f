//! The kernel of `kernel/example`, which is the framework without domains: what its programs print,
//! how they end, and that `docs/guide/write-a-kernel.md` shows it as it is.

use std::fs;
use std::time::Instant;

use anyhow::{Result, ensure};
use machine::qemu::{Ended, Event, Machine};
use trefoil_gate::build;

use super::guide::{read, shown};
use super::{Case, case};
use crate::bench::{Bench, LIMIT};

pub(super) const CASES: &[Case] = &[
    case("example-guide-shows-the-kernel-that-is-built", verbatim),
    case("example-kernel-has-100-safe-lines", short),
    case("example-program-writes-and-exits", hello),
    case("example-bad-calls-are-errors", pointers),
    case("example-kernel-goes-on-after-faults", faults),
    case("example-programs-on-4-processors", processors),
];

const GUIDE: &str = "docs/guide/write-a-kernel.md";
const SOURCES: [&str; 2] = ["kernel/example/src/main.rs", "kernel/example/src/kernel.rs"];
/// The most lines that the example may have, without those that are blank or comments.
const MOST_LINES: usize = 100;

const HELLO: &str = "Hello from ring 3\n";
const PEEK: &str =
    "peek: ended by PageFault { address: ffff800000000000, write: false, execute: false }\n";
const WILD: &str = "wild: ended by PageFault { address: 1230, write: true, execute: false }\n";
const HALT: &str = "halt: ended by Exception { vector: d, error_code: 0 }\n";

/// Every block that names a file is that file, and the kernel is among them.
fn verbatim(bench: &Bench<'_>) -> Result<()> {
    let shown = shown(bench, GUIDE)?;
    for source in SOURCES {
        let is_shown = shown.iter().any(|path| path == source);
        ensure!(is_shown, "{GUIDE} does not show {source}");
    }
    Ok(())
}

/// All its Rust is what the guide shows, and is safe and short.
fn short(bench: &Bench<'_>) -> Result<()> {
    let folder = bench.site.project.root.join("kernel/example/src");
    let files = fs::read_dir(folder)?.count();
    ensure!(files == SOURCES.len(), "{files} files of sources");
    let mut lines = 0;
    for source in SOURCES {
        let text = read(bench, source)?;
        let code = text.lines().map(str::trim);
        lines += code
            .filter(|line| !line.is_empty() && !line.starts_with("//"))
            .count();
    }
    ensure!(lines <= MOST_LINES, "{lines} lines");
    let root = read(bench, SOURCES[0])?;
    ensure!(root.contains("#![forbid(unsafe_code)]"), "it may be unsafe");
    Ok(())
}

/// Has the kernel run `programs` on so many processors; what they print and the status must be
/// these.
fn expect(
    bench: &Bench<'_>,
    processors: u32,
    programs: &[&str],
    printed: &str,
    status: i32,
) -> Result<()> {
    let kernel = build::build_example(&bench.site.project)?;
    let mut machine = Machine::new(&kernel, &bench.folder);
    machine.processors = processors;
    machine.words.push("panic=off".into());
    machine
        .words
        .extend(programs.iter().map(|name| name.to_string()));
    let mut guest = machine.start()?;
    guest.close_input();
    let deadline = Instant::now() + LIMIT;
    let mut bytes = Vec::new();
    while let Event::Bytes(more) = guest.receive(deadline) {
        bytes.extend(more);
    }
    let ended = guest.wait(Some(deadline))?;
    let seen = String::from_utf8_lossy(&bytes);
    ensure!(
        seen == printed && ended == Some(Ended::Status(status)),
        "{programs:?}: {seen:?}, {ended:?} in place of {printed:?}, {status}; log:\n{}",
        guest.log()
    );
    Ok(())
}

/// By the command that the guide names.
fn hello(bench: &Bench<'_>) -> Result<()> {
    let output = bench.tool("example")?.output()?;
    let printed = String::from_utf8_lossy(&output.stdout);
    ensure!(
        printed == HELLO && output.status.code() == Some(42),
        "{printed:?}, {:?}; {}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    let unknown = bench.tool("example")?.arg("nosuch").output()?;
    let told = String::from_utf8_lossy(&unknown.stderr);
    let is_refused = !unknown.status.success() && told.contains("nosuch");
    ensure!(is_refused, "no program: {:?}, {told}", unknown.status);
    expect(bench, 1, &[], "", 0)
}

/// Pointers into nothing, into the kernel, over the end of the stack and of all addresses; a file
/// and a call that there are not.
fn pointers(bench: &Bench<'_>) -> Result<()> {
    expect(bench, 1, &["pointers"], "bad calls are errors\n", 0)
}

/// A program that does what it must not ends, with a message; the next one runs.
fn faults(bench: &Bench<'_>) -> Result<()> {
    for (program, printed) in [("peek", PEEK), ("wild", WILD), ("halt", HALT)] {
        expect(bench, 1, &[program], printed, 139)?;
        expect(
            bench,
            1,
            &[program, "hello"],
            &format!("{printed}{HELLO}"),
            42,
        )?;
    }
    Ok(())
}

fn processors(bench: &Bench<'_>) -> Result<()> {
    let programs = ["hello", "peek", "hello", "wild", "halt", "pointers", "peek"];
    let printed = format!("{HELLO}{PEEK}{HELLO}{WILD}{HALT}bad calls are errors\n{PEEK}");
    expect(bench, 4, &programs, &printed, 139)
}
