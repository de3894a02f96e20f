//! busybox's shell at a terminal of the personality `linux`: what somebody types.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use machine::qemu::Machine;
use machine::session::Session;
use trefoil_gate::{build, setup};

use super::{Case, case};
use crate::bench::{Bench, LIMIT};

pub(super) const CASES: &[Case] = &[
    case("static-terminal-keys", keys),
    case("static-terminal-jobs", jobs),
];

const CTRL_C: &[u8] = &[3];
const CTRL_D: &[u8] = &[4];
const CTRL_Z: &[u8] = &[26];

/// The image of `run --static`.
fn machine(bench: &Bench<'_>) -> Result<Machine> {
    let project = &bench.site.project;
    let manifest = fs::read(project.root.join("images/static.toml"))?;
    let busybox = fs::read(setup::busybox()?)?;
    let archive = bench.folder.join("archive.cpio");
    let packed = build::packed_with(project, &manifest, &[("busybox", &busybox)])?;
    fs::write(&archive, packed)?;
    let mut machine = bench.machine();
    machine.archive = Some(archive);
    machine.disk = None;
    Ok(machine)
}

fn start(bench: &Bench<'_>) -> Result<Session> {
    let mut session = Session::start(&machine(bench)?, false)?;
    session.prompt(LIMIT)?;
    Ok(session)
}

/// What the shell prints for a line.
fn expect(session: &mut Session, line: &str, text: &str) -> Result<()> {
    let printed = session.run(line, LIMIT)?;
    ensure!(
        printed.contains(text),
        "{line}: {printed:?} in place of {text:?}\n{}",
        session.report()
    );
    Ok(())
}

/// As [`expect`], but what it says may come to be a moment later.
fn expect_soon(session: &mut Session, line: &str, text: &str) -> Result<()> {
    let end = Instant::now() + LIMIT;
    while Instant::now() < end {
        if session.run(line, LIMIT)?.contains(text) {
            return Ok(());
        }
    }
    expect(session, line, text)
}

/// Starts something that does not end by itself, and gives it time to begin.
fn begin(session: &mut Session, line: &str) -> Result<usize> {
    session.type_line(line.as_bytes())?;
    session.settle(Duration::from_millis(500));
    Ok(session.printed())
}

/// Ctrl-C ends what is in the foreground and the shell goes on; lines are edited and end by Ctrl-D.
fn keys(bench: &Bench<'_>) -> Result<()> {
    let mut session = start(bench)?;
    expect(&mut session, "stty | head -1", "speed 38400 baud")?;
    for line in [
        "sleep 100",
        "yes | cat > /dev/null",
        "cat",
        "while :; do :; done",
    ] {
        let from = begin(&mut session, line)?;
        session.guest.send(CTRL_C)?;
        let from = session.wait_for(from, "^C", LIMIT)?;
        session.wait_for(from, "$ ", LIMIT)?;
        expect(&mut session, "echo back $?", "back 130\n")?;
    }
    let from = begin(&mut session, "cat; echo end $?")?;
    session.guest.send(b"onx\x7fe\n")?;
    // What is erased is seen in between.
    let from = session.wait_for(from, "e\r\none\r\n", LIMIT)?;
    session.guest.send(b"two\n")?;
    let from = session.wait_for(from, "two\r\ntwo\r\n", LIMIT)?;
    session.guest.send(CTRL_D)?;
    let from = session.wait_for(from, "end 0", LIMIT)?;
    session.wait_for(from, "$ ", LIMIT)?;
    // What is not shown is read all the same.
    let from = begin(&mut session, "stty -echo; read x; stty echo; echo got $x")?;
    session.guest.send(b"secret\n")?;
    let to = session.wait_for(from, "got secret", LIMIT)?;
    ensure!(
        session.screen().matches("secret").count() == 1 && to > from,
        "{}",
        session.report()
    );
    session.wait_for(to, "$ ", LIMIT)?;
    // The shell that ends is followed by another.
    session.type_line(b"exit")?;
    let from = session.printed();
    session.wait_for(from, "$ ", LIMIT)?;
    session.settle(Duration::from_millis(500));
    expect(&mut session, "echo again", "again\n")
}

/// Jobs in the background, stopped, and gone on with.
fn jobs(bench: &Bench<'_>) -> Result<()> {
    let mut session = start(bench)?;
    let from = begin(&mut session, "sleep 1 && echo late $((3 + 4)) &")?;
    session.wait_for(from, "late 7", LIMIT)?;
    begin(&mut session, "")?;
    let from = begin(&mut session, "sleep 2; echo slept")?;
    session.guest.send(CTRL_Z)?;
    let from = session.wait_for(from, "Stopped", LIMIT)?;
    session.wait_for(from, "$ ", LIMIT)?;
    session.settle(Duration::from_millis(500));
    expect(&mut session, "jobs", "Stopped")?;
    expect(&mut session, "fg > /dev/null; echo fg $?", "fg 0\n")?;
    // Who reads in the background stops, until it is in the foreground.
    begin(&mut session, "cat &")?;
    expect_soon(&mut session, "sleep 0.1; jobs", "Stopped (tty input)")?;
    let from = begin(&mut session, "fg")?;
    session.guest.send(b"here\n")?;
    let from = session.wait_for(from, "here\r\nhere\r\n", LIMIT)?;
    session.guest.send(CTRL_C)?;
    session.wait_for(from, "$ ", LIMIT)?;
    begin(&mut session, "sleep 100 &")?;
    expect_soon(&mut session, "kill -STOP $!; sleep 0.1; jobs", "Stopped")?;
    expect(&mut session, "bg > /dev/null; jobs", "Running")?;
    expect(&mut session, "kill %1; wait $!; echo $?", "143\n")
}
