//! What is known of files besides their content, as static Linux programs set it and are told it:
//! times, owners, modes, names that are moved by flags, devices, holes. One says here what it says
//! on Linux (`lab/peers/names/linux.txt`), and the host's tools find it on the disk.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use machine::manifests;
use machine::qemu::Machine;
use trefoil_gate::{setup, tool};

use super::mapping::{RUN, archive, machine};
use super::recovery::{MANY_RESTARTS, expect_no_restart, expect_restarts_from};
use super::statics::run;
use super::{Case, case};
use crate::bench::Bench;

pub(super) const CASES: &[Case] = &[
    case("static-sets-times-in-nanoseconds", times),
    case("static-gives-files-away-as-on-linux", owners),
    case("static-moves-names-by-flags-as-on-linux", moves),
    case(
        "static-moves-no-names-at-once-without-a-journal",
        no_journal,
    ),
    case("static-makes-devices-as-on-linux", nodes),
    case("static-opens-pipes-with-names-as-on-linux", pipes),
    case("static-finds-and-makes-holes-as-on-linux", holes),
    case("static-exchanges-names-while-it-crashes", swap),
    case(
        "static-exchanges-names-while-the-shadow-dies",
        swap_over_shadows,
    ),
    case("static-shows-devices-and-owners-by-busybox", busybox),
];

/// With a journal, and room in each inode.
const OPTIONS: [&str; 7] = ["-j", "-J", "size=4", "-b", "4096", "-I", "256"];

/// The program, made by the host's compiler.
fn program(bench: &Bench<'_>) -> Result<PathBuf> {
    let program = bench.folder.join("names");
    let source = bench.site.project.root.join("lab/peers/names/names.c");
    let mut compiler = Command::new("gcc");
    compiler.args(["-O2", "-static", "-o"]).arg(&program);
    let made = compiler.arg(source).output();
    let made = made.context("gcc cannot be started")?;
    let errors = String::from_utf8_lossy(&made.stderr);
    ensure!(made.status.success(), "gcc failed: {errors}");
    Ok(program)
}

/// What Linux says for a part.
fn there(bench: &Bench<'_>, part: &str) -> Result<String> {
    let all = bench.site.project.root.join("lab/peers/names/linux.txt");
    let all = fs::read_to_string(all)?;
    let head = format!("== {part}\n");
    let (_, rest) = all.split_once(&head).context("no such part")?;
    Ok(rest.split("== ").next().unwrap_or(rest).into())
}

/// Has the program do a part on a disk, which says what Linux says; nothing is started again.
fn compare(bench: &Bench<'_>, disk: &Path, part: &str) -> Result<()> {
    let right = there(bench, part)?;
    let machine = machine(bench, &program(bench)?, disk, "")?;
    let line = format!("{RUN} '/disk {part}'; sync");
    let answer = bench.exec_on(machine, &line)?;
    let seen = answer.stdout.replace('\r', "");
    for (seen, right) in seen.lines().zip(right.lines()) {
        ensure!(seen == right, "{seen:?} in place of {right:?}: {seen}");
    }
    ensure!(
        seen.starts_with(&right),
        "{seen}\n{}\n{}",
        answer.stderr,
        answer.log
    );
    bench.expect_clean(disk)
}

/// A machine with this disk and the program.
pub(super) fn machine_of(bench: &Bench<'_>, disk: &Path) -> Result<Machine> {
    machine(bench, &program(bench)?, disk, "")
}

/// A small disk with a journal.
pub(super) fn small(bench: &Bench<'_>) -> Result<PathBuf> {
    bench.small_disk("16M", &OPTIONS, |_| Ok(()))
}

/// What the host's tool says of a file, which must have all of `facts` in it.
fn expect_host(disk: &Path, file: &str, facts: &[&str]) -> Result<()> {
    let debugfs = tool::need("debugfs", "e2fsprogs")?;
    let mut command = Command::new(debugfs);
    command.args(["-R", &format!("stat {file}")]).arg(disk);
    let said = tool::output(&mut command)?;
    for fact in facts {
        ensure!(said.contains(fact), "no {fact:?} in {said}");
    }
    Ok(())
}

/// Of each time debugfs shows the seconds, and the word with the nanoseconds.
fn times(bench: &Bench<'_>) -> Result<()> {
    let disk = small(bench)?;
    compare(bench, &disk, "times")?;
    let modified = format!("mtime: 0x{:08x}:{:08x}", 981_173_106, 123_456_789 << 2);
    let accessed = format!("atime: 0x{:08x}:{:08x}", 1_000_000_000, 1 << 2);
    expect_host(&disk, "/times/timed", &[&modified, &accessed])
}

fn owners(bench: &Bench<'_>) -> Result<()> {
    let disk = small(bench)?;
    compare(bench, &disk, "owners")?;
    let facts = ["User:     9   Group:     5", "Mode:  0755"];
    expect_host(&disk, "/owners/owned", &facts)?;
    expect_host(&disk, "/owners/link", &["User:     7   Group:     8"])
}

fn moves(bench: &Bench<'_>) -> Result<()> {
    let disk = small(bench)?;
    compare(bench, &disk, "moves")?;
    expect_host(&disk, "/moves/two", &["Type: directory"])?;
    ensure!(bench.host_read(&disk, "/moves/d")? == b"1");
    ensure!(bench.host_read(&disk, "/moves/two/e")? == b"2");
    Ok(())
}

/// A power cut could leave one of two names leading nowhere, so it is refused, as Linux' own ext2
/// refuses it; and nothing has changed.
fn no_journal(bench: &Bench<'_>) -> Result<()> {
    let disk = bench.small_disk("16M", &["-b", "1024"], |_| Ok(()))?;
    let machine = machine(bench, &program(bench)?, &disk, "")?;
    let answer = bench.exec_on(machine, &format!("{RUN} '/disk moves'; sync"))?;
    let seen = answer.stdout.replace('\r', "");
    for right in ["there -17 itself -17 none -2 new 0\n", "files -22\ntwo 2\n"] {
        ensure!(seen.contains(right), "no {right:?} in {seen}");
    }
    bench.expect_clean(&disk)
}

fn nodes(bench: &Bench<'_>) -> Result<()> {
    let disk = small(bench)?;
    compare(bench, &disk, "nodes")?;
    let number = "Device major/minor number";
    let large = ["Type: block special", &format!("{number}: 259:70000")];
    expect_host(&disk, "/nodes/large", &large)?;
    let moved = ["Type: character special", &format!("{number}: 240:07")];
    expect_host(&disk, "/nodes/moved", &moved)?;
    expect_host(&disk, "/nodes/pipe", &["Type: FIFO", "Mode:  0644"])?;
    expect_host(&disk, "/nodes/socket", &["Type: socket", "Mode:  0600"])
}

/// Pipes of names, and what the shell makes of one while the shadow that holds its inode dies.
fn pipes(bench: &Bench<'_>) -> Result<()> {
    let disk = small(bench)?;
    compare(bench, &disk, "pipes")?;
    expect_host(&disk, "/pipes/p", &["Type: FIFO", "Mode:  0600"])?;
    let shell = "'cd /disk; mkfifo q; (read a; read b; echo $a $b) < q & exec 3> q; echo one >&3; \
                 sleep 2; rm q; mkfifo q; echo two >&3; exec 3>&-; wait; ls'";
    let machine = machine(bench, &setup::busybox()?, &disk, "")?;
    let line = format!("{RUN} {shell} & sleep 1; crash vfs; sleep 0.3; ls /disk; wait; sync");
    let seen = bench.exec_on(machine, &line)?.stdout.replace('\r', "");
    ensure!(seen.contains("one two\nlost+found\npipes\nq\n"), "{seen}");
    bench.expect_clean(&disk)
}

fn holes(bench: &Bench<'_>) -> Result<()> {
    let disk = small(bench)?;
    compare(bench, &disk, "holes")?;
    expect_host(&disk, "/holes/holes", &["Size: 1048576", "Blockcount: 0"])
}

/// Over crashes of file system and driver.
fn swap(bench: &Bench<'_>) -> Result<()> {
    let strike = "sleep 0.4; crash ext2; sleep 0.3; crash virtio-blk";
    let strikes = format!("{strike}; {strike}; {strike}; crash ext2");
    let said = exchange(bench, &strikes)?;
    expect_restarts_from(&said, "ext2", 2)?;
    for domain in ["vfs", "block", "linux"] {
        expect_no_restart(&said, domain)?;
    }
    Ok(())
}

/// Over deaths of the file system's shadow, and of both.
fn swap_over_shadows(bench: &Bench<'_>) -> Result<()> {
    let strike =
        "sleep 0.3; kill-domain vfs; sleep 0.4; crash vfs; sleep 0.4; kill-domain vfs ext2";
    let strikes = format!("{strike}; {strike}");
    let said = exchange(bench, &strikes)?;
    expect_restarts_from(&said, "vfs", 2)?;
    expect_no_restart(&said, "linux")
}

/// What is printed while and after the program exchanges two names, and `strikes` are made, if each
/// exchange is made once, and as a whole.
fn exchange(bench: &Bench<'_>, strikes: &str) -> Result<String> {
    let right = there(bench, "swap")?;
    let disk = small(bench)?;
    let usual = fs::read_to_string(bench.site.project.root.join("images/default.toml"))?;
    let usual = manifests::with_limits(&usual, &["vfs", "ext2"], MANY_RESTARTS)?;
    let mut machine = bench.machine_with(&disk);
    machine.archive = Some(archive(bench, &program(bench)?, &usual, "")?);
    machine.processors = 2;
    let line = format!("{RUN} '/disk swap' & {strikes}; wait; sync; domains -q");
    let answer = bench.exec_on(machine, &line)?;
    let seen = answer.stdout.replace('\r', "");
    let right = right.trim_end();
    ensure!(
        seen.contains(right),
        "no {right:?} in {seen}\n{}",
        answer.log
    );
    let mut both = Vec::new();
    for name in ["left", "right"] {
        both.extend(bench.host_read(&disk, &format!("/swap/{name}"))?);
    }
    both.sort_unstable();
    ensure!(both == b"01", "{both:?}");
    bench.expect_clean(&disk)?;
    Ok(answer.stdout)
}

/// What somebody types, who has Debian's busybox.
fn busybox(bench: &Bench<'_>) -> Result<()> {
    let disk = small(bench)?;
    let line = "cd /disk; mknod c c 4 64; chown 12:34 c; stat -c '%F %t:%T %u:%g %a' c; cat c; echo $?; \
                mkfifo p; [ -p p ] && echo pipe; ls -l p c | cut -c 1-10; \
                echo x > f; chmod 6755 f; chown 1 f; stat -c '%a %u:%g' f; touch f g; touch -r g f; \
                [ \"$(stat -c %y f)\" = \"$(stat -c %y g)\" ] && echo same; \
                mkdir d; chmod 1777 d; chgrp 9 d; ls -ld d | cut -c 1-10; rm c p; ls";
    let here = run(bench, line, &["--disk", &disk.display().to_string()])?;
    let (seen, errors) = (
        String::from_utf8_lossy(&here.stdout),
        String::from_utf8_lossy(&here.stderr),
    );
    let right = "character special file 4:40 12:34 644\n1\npipe\ncrw-r--r--\nprw-r--r--\n\
                 755 1:0\nsame\ndrwxrwxrwt\nd\nf\ng\nlost+found\n";
    ensure!(seen == right, "{seen} in place of {right}; {errors}");
    ensure!(errors.contains("No such device or address"), "{errors}");
    expect_host(&disk, "/f", &["User:     1   Group:     0", "Mode:  0755"])?;
    expect_host(&disk, "/d", &["Group:     9", "Mode:  01777"])?;
    bench.expect_clean(&disk)
}
