//! What the log says of the stacks of those that die. That each frame is right, for each way to
//! die, is tested by the prober's `backtrace-*`; here is the system around that.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use lab::gdb::{Action, Gdb};
use lab::steps::symbols::Symbols;
use machine::qemu::Ended;
use machine::session::Session;
use machine::{disk, tables};

use super::guide::labelled;
use super::{Case, case};
use crate::bench::{Bench, LIMIT};

pub(super) const CASES: &[Case] = &[
    case("backtrace-leads-from-ext2-to-the-shell", to_the_shell),
    case("backtrace-of-a-program-that-ends-is-not-told", not_told),
    case("backtrace-that-was-told-is-one-line", told_before),
    case("backtrace-without-symbols-says-so", without_symbols),
    case("backtrace-of-a-kernel-that-panics", of_the_kernel),
    case("backtrace-of-a-log-that-was-kept", kept),
    case("backtrace-inside-says-what-the-host-says", inside),
    case("backtrace-tables-say-what-the-compiler-wrote", agree),
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

/// Of a driver that dies again and again in the same way each death is in the log, and its stack
/// whole or in one line; of another domain it is whole.
fn told_before(bench: &Bench<'_>) -> Result<()> {
    let line = "crash ext2; ls / > /dev/null; ".repeat(3);
    let line = line + "crash virtio-blk; echo x > /x; sync";
    let answer = bench.exec(&bench.disk()?, &line)?;
    let log = &answer.log;
    let deaths = log.lines().filter(|line| line.contains("ext2: domain "));
    let deaths = deaths.filter(|line| line.contains("asked to crash"));
    let numbers: Vec<_> = deaths
        .filter_map(|line| number_behind(line, "domain "))
        .collect();
    let again: Vec<_> = log
        .lines()
        .filter_map(|line| number_behind(line, "the stack that was told of domain "))
        .collect();
    let whole = frames(log);
    let whole = whole
        .iter()
        .filter(|frame| frame.starts_with("ext2: domain_rt::crash at"));
    ensure!(numbers.len() == 3 && !again.is_empty(), "{log}");
    ensure!(whole.count() + again.len() == 3, "{log}");
    ensure!(again.iter().all(|of| numbers.contains(of)), "{log}");
    in_order(
        &frames(log),
        &["virtio-blk: domain_rt::crash at runtime/src/lib.rs:"],
    )
}

fn number_behind(line: &str, what: &str) -> Option<u32> {
    let (_, rest) = line.split_once(what)?;
    let end = rest.find(|letter: char| !letter.is_ascii_digit())?;
    rest[..end].parse().ok()
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
    // It is turned off, with status 0.
    let ended = session.end(LIMIT);
    let _ = fs::remove_file(&socket);
    let log = session.guest.log();
    let is_panic = matches!(ended, Ok(Ended::KernelPanic));
    ensure!(is_panic, "it ended by {ended:?}:\n{log}");
    let (_, panic) = log
        .split_once("] kernel panic: ")
        .with_context(|| log.clone())?;
    let told = frames(panic);
    in_order(
        &told,
        &[
            "kernel: isolation::memory::heap::SharedHeap::free_all_of at kernel/isolation/src/memory/heap",
            "kernel: isolation::death::kill::reclaim at kernel/isolation/src/death/kill.rs:",
            "kernel: isolation::death::undertaker::",
        ],
    )?;
    // The other one was idle, or in a domain's code, or had come to the same place: then it panics,
    // too, and says where it was when it was halted as well.
    let other = panic.contains("in the code of a domain") || panic.matches("#0 ").count() >= 2;
    ensure!(other, "one processor says nothing:\n{panic}");
    Ok(())
}

/// What takes part when the shell's `ls` meets a dead file system.
const TAKES_PART: [&str; 5] = ["ext2", "vfs-shadow", "rv6", "sh", "ls"];

/// The line of the guide, on a disk with symbols: `dmesg -b` tells each frame as the host does.
/// Then with symbols that are not right.
fn inside(bench: &Bench<'_>) -> Result<()> {
    let (project, kernel) = (&bench.site.project, &bench.site.built.kernel);
    let folder = bench.folder.join("tables");
    let made = tables::make(project, kernel, &TAKES_PART.map(String::from), &folder)?;
    let guide = fs::read_to_string(project.root.join("docs/guide/debugging.md"))?;
    let line = labelled(&guide, "text backtrace-inside");
    let line = line.trim().strip_prefix("$ ").context("no prompt")?;
    let disk = bench.disk()?;
    tables::put(&disk, &folder, &made)?;
    let answer = bench.exec(&disk, line)?.status(0)?;
    let (told, by_host) = (frames(&answer.stdout), frames(&answer.log));
    in_order(&told, &["ext2: domain_rt::crash at runtime/src/lib.rs:"])?;
    ensure!(
        told == by_host && told.len() > 20,
        "inside:\n{}\non the host:\n{}",
        told.join("\n"),
        by_host.join("\n")
    );
    // What is no stack is as it was, and nothing is lost.
    ensure!(!answer.stdout.contains("] stack "), "{}", answer.stdout);
    let died = answer.stdout.matches("crashed in").count();
    ensure!(died == 1, "{}", answer.stdout);
    wrong_inside(bench, &disk, &folder, &made)?;
    does_not_fit(bench, &folder, &made)
}

/// Symbols of another build, damaged ones, and none: said, and no harm done.
fn wrong_inside(
    bench: &Bench<'_>,
    disk: &Path,
    folder: &Path,
    made: &[symbols::Made],
) -> Result<()> {
    let name = |of: &str| {
        let found = made.iter().find(|table| table.of == of);
        found.map(|table| table.name.clone()).context("not made")
    };
    let (ext2, vfs, rv6) = (name("ext2")?, name("vfs-shadow")?, name("rv6")?);
    let mut changed = made.to_vec();
    changed.retain(|table| !["sh", "ls"].contains(&table.of.as_str()));
    fs::copy(folder.join(&ext2), folder.join(&vfs))?;
    let whole = fs::read(folder.join(&rv6))?;
    fs::write(folder.join(&rv6), &whole[..whole.len() / 2])?;
    // Newer ones take the place of those that are there.
    tables::put(disk, folder, &changed)?;
    let line = "ls /lib/symbols | wc -l; crash ext2; ls / > /dev/null; sleep 1; dmesg -b; echo NONE; dmesg -s /none";
    let answer = bench.exec(disk, line)?.status(0)?;
    let (some, none) = answer.stdout.split_once("NONE").context("no end")?;
    for wanted in [
        format!("{}\n", changed.len()),
        "ext2: domain_rt::crash at runtime/src/lib.rs:".into(),
        format!("(symbols of build {ext2}, not {vfs})"),
        format!("(the symbols of build {rv6} are damaged)"),
        "(no symbols of build ".into(),
    ] {
        ensure!(some.contains(&wanted), "no {wanted} in {some}");
    }
    ensure!(none.contains("(no symbols of kernel "), "{none}");
    Ok(())
}

/// A disk that is full is said to be, and so is an image that is not there.
fn does_not_fit(bench: &Bench<'_>, folder: &Path, made: &[symbols::Made]) -> Result<()> {
    let (root, full) = (bench.folder.join("root"), bench.folder.join("full"));
    fs::create_dir_all(&root)?;
    disk::make(&root, &full, "200K")?;
    let error = tables::put(&full, folder, made).err();
    let error = error.context("it fits")?.to_string();
    ensure!(error.contains("do not fit"), "{error}");
    let (project, kernel) = (&bench.site.project, &bench.site.built.kernel);
    let none = tables::make(project, kernel, &["nobody".into()], folder);
    let error = none.err().context("it is there")?.to_string();
    ensure!(error.contains("no image `nobody`"), "{error}");
    Ok(())
}

/// Bytes of code between two that are compared.
const STRIDE: usize = 97;

/// At each place a table says what the debug information and the unwind tables say.
fn agree(bench: &Bench<'_>) -> Result<()> {
    let project = &bench.site.project;
    let kernel = fs::read(&bench.site.built.kernel)?;
    let differs = symbols::differs(&kernel, None, &project.root, STRIDE)?;
    ensure!(differs.is_none(), "the kernel: at {differs:x?}");
    let kept = fs::read_dir(project.out.join(symbols::FOLDER))?;
    for file in kept.take(2) {
        let file = file?.path();
        let differs = symbols::differs(&fs::read(&file)?, Some(0), &project.root, STRIDE)?;
        ensure!(differs.is_none(), "{}: at {differs:x?}", file.display());
    }
    Ok(())
}
