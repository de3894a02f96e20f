//! The terminal: editing, Ctrl-C, Ctrl-D, and a prompt that always comes back.

use std::time::Duration;

use anyhow::{Result, ensure};
use xtask::qemu::Ended;

use super::{Case, case};
use crate::bench::{Bench, LIMIT};

pub(super) const CASES: &[Case] = &[
    case("console-typed-lines-run", typed),
    case("console-ctrl-c-ends-a-program", interrupt),
    case("console-ctrl-d-ends-input", end_of_input),
    case("console-erase-key", erase),
    case("console-bad-input-gives-the-prompt-back", bad_input),
];

const CTRL_C: &[u8] = &[3];
const CTRL_D: &[u8] = &[4];

fn typed(bench: &Bench<'_>) -> Result<()> {
    let mut session = bench.session(&bench.machine())?;
    ensure!(
        session.run("echo one", LIMIT)? == "one\n",
        "{}",
        session.report()
    );
    ensure!(
        session.run("seq 1 3", LIMIT)? == "1\n2\n3\n",
        "{}",
        session.report()
    );
    session.type_line(b"poweroff")?;
    let ended = session.end(LIMIT)?;
    ensure!(
        matches!(ended, Ended::Status(0) | Ended::Off),
        "poweroff ended with {ended:?}"
    );
    Ok(())
}

fn interrupt(bench: &Bench<'_>) -> Result<()> {
    let mut session = bench.session(&bench.machine())?;
    for line in ["sleep 1000", "yes > /dev-null-or-nothing", "cat"] {
        session.type_line(line.as_bytes())?;
        session.settle(Duration::from_millis(500));
        session.guest.send(CTRL_C)?;
        session.prompt(LIMIT)?;
        let printed = session.run("echo back", LIMIT)?;
        ensure!(
            printed.ends_with("back\n"),
            "after `{line}`: {printed:?}\n{}",
            session.report()
        );
    }
    Ok(())
}

fn end_of_input(bench: &Bench<'_>) -> Result<()> {
    let mut session = bench.session(&bench.machine())?;
    session.type_line(b"wc -l")?;
    session.settle(Duration::from_millis(500));
    session.guest.send(b"a\nb\n")?;
    session.guest.send(CTRL_D)?;
    let from = session.printed();
    session.wait_for(from, "2\r\n", LIMIT)?;
    session.prompt(LIMIT)
}

fn erase(bench: &Bench<'_>) -> Result<()> {
    let mut session = bench.session(&bench.machine())?;
    let printed = session.run("echo wronx\x7fg", LIMIT)?;
    ensure!(printed == "wrong\n", "expected wrong: {printed:?}");
    Ok(())
}

fn bad_input(bench: &Bench<'_>) -> Result<()> {
    let mut session = bench.session(&bench.machine())?;
    let long = "x".repeat(3000);
    for line in [
        "no-such-command",
        "echo )",
        "| |",
        "\u{1}\u{2}\u{7}\u{1b}[A",
        long.as_str(),
    ] {
        session.run(line, LIMIT)?;
    }
    ensure!(
        session.run("echo fine", LIMIT)? == "fine\n",
        "{}",
        session.report()
    );
    Ok(())
}
