//! What the log says of the stacks of those that die. That each frame is right, for each way to
//! die, is tested by the prober's `backtrace-*`; here is the system around that.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use lab::gdb::{Action, Gdb};
use lab::steps::symbols::Symbols;
use machine::session::Session;

use super::{Case, case};
use crate::bench::{Bench, LIMIT};

pub(super) const CASES: &[Case] = &[
    case("backtrace-leads-from-ext2-to-the-shell", to_the_shell),
    case("backtrace-of-a-program-that-ends-is-not-told", not_told),
    case("backtrace-without-symbols-says-so", without_symbols),
    case("backtrace-of-a-kernel-that-panics", of_the_kernel),
    case("backtrace-of-a-log-that-was-kept", kept),
];

/// The frames in a log: what stands behind their numbers.
fn frames(log: &str) -> Vec<&str> {
    let frames = log.lines().filter_map(|line| line.split_once("]     #"));
    frames
        .filter_map(|(_, frame)| Some(frame.split_once(' ')?.1.trim()))
        .collect()
}

/// Whether each of `wanted` is in a frame of its own, in that order.
fn in_order(frames: &[&str], wanted: &[&str]) -> Result<()> {
    let mut rest = frames.iter();
    for want in wanted {
        let found = rest.any(|frame| frame.contains(want));
        ensure!(
            found,
            "no {want:?} where it should be in\n{}",
            frames.join("\n")
        );
    }
    Ok(())
}

fn to_the_shell(bench: &Bench<'_>) -> Result<()> {
    let answer = bench.exec(&bench.disk()?, "crash ext2; ls / > /dev/null")?;
    let answer = answer.status(0)?;
    let frames = frames(&answer.log);
    in_order(
        &frames,
        &[
            "ext2: domain_rt::crash at runtime/src/lib.rs:",
            "kernel: proxies::FileSystemProxy::",
            "vfs: vfs_shadow::",
            "kernel: proxies::FileSystemProxy::",
            "rv6: rv6::volumes::Volumes::",
            "kernel: proxies::ProcessProxy::",
            "sh: ",
            "kernel: proxies::ProgramProxy::run",
            "rv6: domain_rt::thread::run at runtime/src/thread.rs:",
        ],
    )?;
    let raw = answer.log.lines().find(|line| line.contains("] stack "));
    ensure!(raw.is_none(), "{raw:?} is not in words");
    ensure!(!answer.log.contains("??"), "{}", frames.join("\n"));
    Ok(())
}

fn not_told(bench: &Bench<'_>) -> Result<()> {
    let line = "yes > /dev/null & sleep 1; kill -9 $!; wait; cat /none; false; echo done";
    let answer = bench.exec(&bench.disk()?, line)?;
    ensure!(answer.log.contains("yes: domain "), "{}", answer.log);
    ensure!(frames(&answer.log).is_empty(), "{}", answer.log);
    Ok(())
}

fn without_symbols(bench: &Bench<'_>) -> Result<()> {
    let built = &bench.site.project.out;
    let kept = built.join(symbols::FOLDER);
    ensure!(fs::read_dir(&kept)?.count() > 50, "few symbols are kept");
    // The same kernel where there are no others.
    let folder = bench.folder.join("bare");
    fs::create_dir_all(folder.join(symbols::FOLDER))?;
    let mut machine = bench.machine_with(&bench.disk()?);
    let kernel = folder.join("trefoil");
    fs::copy(&machine.kernel, &kernel)?;
    machine.kernel = kernel;
    let answer = bench.exec_on(machine, "crash ext2; ls / > /dev/null")?;
    let frames = frames(&answer.status(0)?.log).join("\n");
    ensure!(frames.contains("kernel: isolation::"), "{frames}");
    ensure!(frames.contains("rv6: +0x"), "{frames}");
    ensure!(frames.contains("(no symbols of build "), "{frames}");
    Ok(())
}

/// A log as it came over the line, read by `cargo xtask backtrace`.
fn kept(bench: &Bench<'_>) -> Result<()> {
    let machine = bench.machine_with(&bench.disk()?);
    let mut session = bench.session(&machine)?;
    session.run("crash ext2; ls /", LIMIT)?;
    let deadline = Instant::now() + LIMIT;
    let raw = loop {
        let raw = fs::read_to_string(&session.guest.log)?;
        if raw.contains(": end") || Instant::now() > deadline {
            break raw;
        }
        thread::sleep(Duration::from_millis(20));
    };
    session.type_line(b"poweroff")?;
    session.end(LIMIT)?;
    ensure!(frames(&raw).is_empty() && raw.contains("] stack "), "{raw}");
    let file = bench.folder.join("raw.log");
    fs::write(&file, raw.replace('\n', "\r\n"))?;
    let mut command = bench.tool("backtrace")?;
    command.arg("--kernel").arg(&machine.kernel).arg(&file);
    let output = command.output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    ensure!(
        output.status.success() && !said.contains("] stack "),
        "{said}"
    );
    in_order(
        &frames(&said),
        &["ext2: ", "vfs: ", "rv6: ", "sh: ", "rv6: "],
    )?;
    let none = bench.tool("backtrace")?.arg("/none").output()?;
    let errors = String::from_utf8_lossy(&none.stderr);
    ensure!(
        !none.status.success() && errors.contains("cannot read /none"),
        "{errors}"
    );
    Ok(())
}

/// What the processor does not know.
const UD2: [u8; 2] = [0x0f, 0x0b];

fn of_the_kernel(bench: &Bench<'_>) -> Result<()> {
    let mut machine = bench.machine_with(&bench.disk()?);
    let socket = std::env::temp_dir().join(format!("trefoil-panic-{}", std::process::id()));
    machine.stub = Some(socket.clone());
    machine.processors = 2;
    machine.words.push("panic=off".into());
    let mut session = Session::start(&machine, false)?;
    session.prompt(LIMIT)?;
    let found = Symbols::of(&machine.kernel)?.find("10SharedHeap11free_all_of")?;
    let mut gdb = Gdb::connect(&socket, Duration::from_secs(20))?;
    gdb.write(0, found, &UD2)?;
    gdb.go(&[(0, Action::Run), (1, Action::Run)])?;
    session.type_line(b"crash ext2; ls /")?;
    // It is turned off.
    let _ = session.end(LIMIT);
    let _ = fs::remove_file(&socket);
    let log = session.guest.log();
    let (_, panic) = log.split_once("PANIC: ").with_context(|| log.clone())?;
    let told = frames(panic);
    in_order(
        &told,
        &[
            "kernel: isolation::memory::heap::SharedHeap::free_all_of at kernel/isolation/src/memory/heap",
            "kernel: isolation::death::kill::reclaim at kernel/isolation/src/death/kill.rs:",
            "kernel: isolation::death::undertaker::",
        ],
    )?;
    // The other one was idle, or in a domain's code.
    let other = panic.contains("in the code of a domain") || panic.matches("#0 ").count() == 2;
    ensure!(other, "one processor says nothing:\n{panic}");
    Ok(())
}
