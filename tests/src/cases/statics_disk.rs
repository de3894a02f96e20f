//! Static Linux programs change the files of a disk: the host's busybox here, beside the same on
//! the host, and what is on the disk in the end, beside what the host has; also while what is below
//! crashes, and where the disk is full or must not be written to.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use machine::disk;
use trefoil_gate::setup;

use super::mapping::{RUN, machine};
use super::recovery::{expect_no_restart, expect_restarts, expect_restarts_from};
use super::statics::run;
use super::{Case, case};
use crate::bench::Bench;

pub(super) const CASES: &[Case] = &[
    case("static-changes-a-disk-as-on-linux", changes),
    case("static-is-refused-changes-as-on-linux", refused),
    case("static-changes-a-disk-while-it-crashes", crashes),
    case(
        "static-changes-a-disk-while-its-shadow-crashes",
        shadow_crashes,
    ),
    case(
        "static-changes-a-disk-while-its-shadow-is-replaced",
        shadow_updates,
    ),
    case("static-goes-on-with-open-files-over-shadows", open_files),
    case(
        "static-and-the-shell-append-while-the-shadow-dies",
        two_clients,
    ),
    case("static-and-the-shell-hold-what-has-no-name", both_hold),
    case(
        "static-removes-what-is-not-stored-while-all-crashes",
        parted,
    ),
    case("static-is-told-that-a-disk-is-full", full),
    case(
        "static-is-told-that-a-disk-is-full-of-small-files",
        full_of_small,
    ),
];

/// Lines of one machine: there is not more room on the kernel's command line.
const AT_ONCE: usize = 3;

/// What changes files, one shell after the other.
const CHANGES: &[&str] = &[
    "cp big copy; cmp big copy && echo same; echo one > new; echo two >> new; cat new; wc -c < copy",
    "dd if=big of=part bs=1000 count=70 skip=9 2>/dev/null; dd if=text/a.txt of=part bs=100 seek=33 count=5 conv=notrunc 2>/dev/null; md5sum part",
    "mkdir -p d/e/f; mv new d/e/moved; ls d d/e; cp -r text d/tree; ls d/tree | wc -l; rm -r text; ls | grep -v lost | sort",
    "seq 5000 > lines; sed -i 's/^4/four/; 100,200d' lines; md5sum lines; wc -l < lines; sort -r lines -o lines; head -n 1 lines",
    "ln -s d/e/moved link; cat link; readlink link; ln d/e/moved hard; stat -c '%h %s %F' hard link; rm link; cat hard",
    "chmod 640 hard; stat -c '%a' hard; touch -d '2001-02-03 04:05:06' hard; TZ=UTC stat -c '%Y' hard; (umask 077; echo x > own); stat -c '%a' own",
    "exec 5<>rw; echo abcdef >&5; exec 5>&-; exec 6<>rw; head -c 2 <&6 >/dev/null; echo XY >&6; exec 6>&-; cat rw; truncate -s 5000 rw; wc -c < rw; truncate -s 3 rw; od -c rw",
    "mkdir many; cd many; for i in $(seq 300); do echo $i > file-with-a-longer-name-$i; done; ls | wc -l; cat * | md5sum; cd ..; rm -r many; ls -d many 2>&1",
    "(echo a; sleep 0.1; echo b) > both & wait; cat both; (for i in 1 2 3 4 5 6 7 8; do (echo $i >> each) & done; wait); sort each | md5sum; rm each; dd if=rw of=synced conv=fsync 2>/dev/null; sync synced; sync",
    "rm big; cp copy copied; rm copy; { cat; rm copied; cat; } < copied | md5sum; rmdir d/e/f; rmdir d/e 2>/dev/null || echo full; ls -A d/e",
];

/// What the host has on the disk, in a folder of its own.
fn host_folder(bench: &Bench<'_>) -> Result<PathBuf> {
    let root = bench.folder.join("host");
    let mut copy = Command::new("cp");
    let made = copy.arg("-r").arg(&bench.site.root).arg(&root).status()?;
    ensure!(made.success(), "the files cannot be copied");
    Ok(root)
}

/// Runs a line on the host, in a folder; what it says.
fn there(root: &Path, line: &str) -> Result<(String, Option<i32>)> {
    let mut host = Command::new(setup::busybox()?);
    host.args(["sh", "-c", &format!("umask 022; {line}")]);
    host.current_dir(root).env_clear().env("PATH", "/nowhere");
    let output = host.output().context("busybox cannot be started")?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok((said, output.status.code()))
}

/// The same lines here, in `/disk`, and on the host: some in each machine.
fn compare(bench: &Bench<'_>, disk: &Path, root: &Path, lines: &[&str]) -> Result<()> {
    for some in lines.chunks(AT_ONCE) {
        let mut right = String::new();
        for line in some {
            right += &there(root, line)?.0;
        }
        let all: Vec<String> = some.iter().map(|line| format!("({line})")).collect();
        let line = format!("cd /disk; {}", all.join("; "));
        let here = run(bench, &line, &["--disk", &disk.display().to_string()])?;
        let seen = String::from_utf8_lossy(&here.stdout).into_owned();
        let errors = String::from_utf8_lossy(&here.stderr).into_owned();
        for (seen, right) in seen.lines().zip(right.lines()) {
            ensure!(seen == right, "{seen:?} in place of {right:?}; {errors}");
        }
        ensure!(seen == right, "{seen} in place of {right}; {errors}");
    }
    same_files(bench, disk, root, "")?;
    bench.expect_clean(disk)
}

/// That a disk has the files that the host has, and what is in them.
fn same_files(bench: &Bench<'_>, disk: &Path, root: &Path, below: &str) -> Result<()> {
    for entry in fs::read_dir(root.join(below))? {
        let entry = entry?;
        let name = entry.file_name();
        let path = format!("{below}/{}", name.to_string_lossy());
        let path = path.trim_start_matches('/');
        let kind = entry.file_type()?;
        if kind.is_dir() {
            same_files(bench, disk, root, path)?;
        } else if kind.is_file() {
            let seen = bench.host_read(disk, &format!("/{path}"))?;
            ensure!(seen == fs::read(entry.path())?, "/{path} is another");
        }
    }
    Ok(())
}

fn changes(bench: &Bench<'_>) -> Result<()> {
    let (disk, root) = (bench.disk()?, host_folder(bench)?);
    compare(bench, &disk, &root, CHANGES)
}

/// What cannot be done is refused for the same reason. What is not on the disk stays as it is.
fn refused(bench: &Bench<'_>) -> Result<()> {
    let lines = &[
        "mkdir text 2>&1; rmdir text 2>&1; echo x > text 2>&1; rm text 2>&1; cat nothing 2>&1; cd big 2>&1",
        "set -C; echo x > big; echo $?; set +C; mv text big 2>&1; mv big/x y 2>&1; ln big text/a.txt 2>&1; ln text hard 2>&1",
        "mkdir new/deep 2>&1; mv text text/deep 2>&1; rmdir big 2>&1; ln -s loop loop; cat loop 2>&1; echo x > loop; echo $?",
        "x=$(seq -s x 100); echo y > $x 2>&1; echo x >&7; echo $?; dd of=big seek=99999999999 bs=9999999999 count=0 2>/dev/null; echo $?",
        "truncate -s -1 big 2>/dev/null || echo kept; cat < . 2>&1; : > big; wc -c < big",
    ];
    let (disk, root) = (bench.disk()?, host_folder(bench)?);
    compare(bench, &disk, &root, lines)?;
    let line = "cp /disk/text/a.txt /copy; rm /manifest.toml; mkdir /new; mv /disk/text/a.txt /moved; cat /disk/text/a.txt | wc -l; \
                mkdir /disk; mkdir -p /disk; rmdir /disk; rm -r /disk/..; touch /manifest.toml; echo $?";
    let here = run(bench, line, &["--disk", &disk.display().to_string()])?;
    let errors = String::from_utf8_lossy(&here.stderr);
    ensure!(
        errors.matches("Read-only file system").count() >= 4 && errors.contains("File exists"),
        "{errors}"
    );
    same_files(bench, &disk, &root, "")?;
    let more = ["--disk", &disk.display().to_string(), "--read-only"];
    let here = run(
        bench,
        "cd /disk; rm big; echo x > big; mkdir x; touch y; cat text/b.txt",
        &more,
    )?;
    let errors = String::from_utf8_lossy(&here.stderr);
    ensure!(
        errors.matches("Read-only file system").count() == 4 && !here.stdout.is_empty(),
        "{errors}"
    );
    same_files(bench, &disk, &root, "")
}

/// What changes much, one thing after the other.
const MUCH: &str = "dd if=big of=one bs=1M count=12 2>/dev/null && cp one two && cmp one two && dd if=big of=one bs=7000 seek=3 count=40 conv=notrunc 2>/dev/null && \
                mv two three && mkdir d && cp three d/four && sed -i s/e/E/g text/a.txt && rm three && sync && md5sum one d/four text/a.txt";

/// What changes names, and writes at ends of files, so that it would be seen if one were done twice
/// or not at all.
const NAMES: &str = "mkdir n && cd n && for i in $(seq 150); do echo $i > f$i && ln f$i g$i && mv f$i h$i && echo more >> g$i && rm h$i && echo $i >> all || exit 1; done; \
                ls | wc -l; cat g* all | md5sum; cd ..";

/// What makes small files, and removes them before they are stored, or has others take their place,
/// so that an inode is another file's soon. What stays of all that differs from file to file.
const PARTED: &str = "mkdir p && cd p && for i in $(seq 100); do echo $i > a$i && echo old $i > b$i && mv a$i b$i && \
                echo gone $i > c$i && rm c$i && echo new $i > d$i && ln d$i e$i && rm d$i && echo more >> e$i || exit 1; done; \
                ls | wc -l; cat * | md5sum; cd ..";

/// Has a line run in `/disk` while `strikes` are made; what was said, if it was what the host says.
fn struck(bench: &Bench<'_>, line: &str, strikes: &str) -> Result<String> {
    // Of the line before.
    let _ = fs::remove_dir_all(bench.folder.join("host"));
    let (disk, root) = (bench.disk()?, host_folder(bench)?);
    let (right, status) = there(&root, line)?;
    ensure!(status == Some(0), "the host fails: {right}");
    let mut machine = machine(bench, &setup::busybox()?, &disk, "")?;
    machine.processors = 2;
    let line = format!("{RUN} 'cd /disk; {line}' & {strikes}; wait; domains -q");
    let answer = bench.exec_on(machine, &line)?;
    let seen = answer.stdout.replace('\r', "");
    ensure!(
        seen.contains(&right),
        "no {right:?} in {seen}\n{}\n{}",
        answer.stderr,
        answer.log
    );
    same_files(bench, &disk, &root, "")?;
    bench.expect_clean(&disk)?;
    Ok(answer.stdout)
}

/// Over crashes of file system and driver, of which the program notices nothing.
fn crashes(bench: &Bench<'_>) -> Result<()> {
    // It may not be called between two strikes, so it is ended in place of having it crash then.
    let end = "until kill-domain ext2 2> /dev/null; do sleep 0.02; done";
    let strike = format!("sleep 0.3; {end}; sleep 0.2; crash virtio-blk");
    let strikes = format!("{strike}; {strike}; {end}; {strike}; crash virtio-blk");
    let seen = struck(bench, MUCH, &strikes)?;
    expect_restarts_from(&seen, "ext2", 3)?;
    for domain in ["vfs", "block", "linux"] {
        expect_no_restart(&seen, domain)?;
    }
    Ok(())
}

/// Over crashes of the shadow in front of the file system.
fn shadow_crashes(bench: &Bench<'_>) -> Result<()> {
    let strike = "sleep 0.3; crash vfs; sleep 0.3; kill-domain vfs";
    let strikes = format!("{strike}; {strike}; sleep 0.3; crash ext2");
    for line in [MUCH, NAMES] {
        let seen = struck(bench, line, &strikes)?;
        expect_restarts(&seen, "vfs", 4)?;
        for domain in ["block", "linux"] {
            expect_no_restart(&seen, domain)?;
        }
    }
    Ok(())
}

/// Over crashes of shadow and file system, each by itself and both at once, while files go that
/// have something that is not stored: nothing of one is seen in another.
fn parted(bench: &Bench<'_>) -> Result<()> {
    let strike =
        "sleep 0.3; crash ext2; sleep 0.3; kill-domain vfs; sleep 0.3; kill-domain vfs ext2";
    let seen = struck(bench, PARTED, &format!("{strike}; {strike}"))?;
    expect_restarts_from(&seen, "ext2", 3)?;
    expect_restarts_from(&seen, "vfs", 3)?;
    for domain in ["block", "linux"] {
        expect_no_restart(&seen, domain)?;
    }
    Ok(())
}

/// Over another image of the shadow, again and again. An update is refused until `linux` has found
/// the instance before; where the work is over that is the affair of who looks at the disk.
fn shadow_updates(bench: &Bench<'_>) -> Result<()> {
    let strikes = format!(
        "cp /boot/updates/vfs-shadow-2 /tmp/image; for i in $(seq 12); do \
         {RUN} '[ -e /disk/big ]' > /dev/null; update vfs /tmp/image > /dev/null || echo REFUSED; sleep 0.1; done"
    );
    for line in [MUCH, NAMES] {
        let seen = struck(bench, line, &strikes)?;
        ensure!(!seen.contains("REFUSED"), "{seen}");
        expect_no_restart(&seen, "linux")?;
    }
    Ok(())
}

/// Files that are open, also without a name, are the same files for the next shadow, and what is
/// written at their end is there once.
fn open_files(bench: &Bench<'_>) -> Result<()> {
    let line = "exec 5<>kept; exec 6>>log; exec 7<big; rm big; \
                for i in $(seq 60); do echo line $i >&6; echo $i >&5; head -c 1000 <&7 >> part; sleep 0.05; done; \
                exec 5>&- 6>&-; md5sum kept log part; cat <&7 | md5sum; exec 7<&-";
    let strike = "sleep 0.5; crash vfs";
    let seen = struck(
        bench,
        line,
        &format!("{strike}; {strike}; {strike}; {strike}"),
    )?;
    expect_restarts(&seen, "vfs", 4)?;
    expect_no_restart(&seen, "linux")
}

/// A program and the shell, by `rv6`, write at the ends of two files, each waiting for a slow disk
/// when the other begins. The shadow dies when one has been written.
fn two_clients(bench: &Bench<'_>) -> Result<()> {
    let (old, other) = (disk::noise(5000, 16), disk::noise(60_000, 17));
    let disk = bench.small_disk("4M", &["-b", "1024"], |root| {
        fs::write(root.join("other"), &other)?;
        fs::write(root.join("shells"), &old)?;
        Ok(fs::write(root.join("programs"), &old)?)
    })?;
    let options = "options = \"small=4000\"\n";
    let mut machine = machine(bench, &setup::busybox()?, &disk, options)?;
    machine.disk_reads = 1;
    let line = format!(
        "x=$(seq 1000 3000); cat /other > /dev/null; echo $x >> /shells & \
         {RUN} 'x=$(seq 1001 3001); echo $x >> /disk/programs' & sleep 1.3; kill-domain vfs; wait; \
         wc -c < /shells; wc -c < /programs; domains -q"
    );
    let answer = bench.exec_on(machine, &line)?;
    ensure!(
        answer.stdout.contains("\n15005\n15005\n"),
        "{}\n{}\n{}",
        answer.stdout,
        answer.stderr,
        answer.log
    );
    expect_restarts(&answer.stdout, "vfs", 1)?;
    for (name, first) in [("shells", 1000), ("programs", 1001)] {
        let numbers: Vec<_> = (first..=first + 2000)
            .map(|of: u32| of.to_string())
            .collect();
        let right = [&old[..], (numbers.join(" ") + "\n").as_bytes()].concat();
        ensure!(
            bench.host_read(&disk, &format!("/{name}"))? == right,
            "/{name} is another"
        );
    }
    bench.expect_clean(&disk)
}

/// A program and the shell, by `rv6`, have a file open that has no name any more when the shadow
/// dies. The shell comes back first and closes it; the program finds it still.
fn both_hold(bench: &Bench<'_>) -> Result<()> {
    let disk = bench.small_disk("4M", &["-b", "1024"], |root| {
        Ok(fs::write(root.join("held"), "is here\n")?)
    })?;
    let machine = machine(bench, &setup::busybox()?, &disk, "")?;
    let line = format!(
        "{RUN} 'cd /disk; exec 5<held; : > open; until [ -e closed ]; do sleep 0.1; done; cat <&5' & \
         until [ -e /open ]; do sleep 0.1; done; \
         {{ rm /held; kill-domain vfs; ls / > /dev/null; }} < /held; echo > /closed; wait; \
         ls -a / | grep -c trefoil; domains -q"
    );
    let answer = bench.exec_on(machine, &line)?;
    ensure!(
        answer.stdout.replace('\r', "").contains("is here\n") && answer.stdout.contains("\n0\n"),
        "{}\n{}\n{}",
        answer.stdout,
        answer.stderr,
        answer.log
    );
    expect_restarts(&answer.stdout, "vfs", 1)?;
    bench.expect_clean(&disk)
}

/// Who writes to a disk that becomes full is told, keeps what he was told that he has, and goes on
/// when there is room.
fn full(bench: &Bench<'_>) -> Result<()> {
    let content = disk::noise(3 << 20, 5);
    let disk = bench.small_disk("12M", &["-b", "1024"], |root| {
        Ok(fs::write(root.join("big"), &content)?)
    })?;
    let line = "cd /disk; cp big kept; cat big big big big big > full; echo $?; sync; cmp big kept && echo same; \
                rm full; cp big again && cmp big again && echo again; sync; echo $?";
    let here = run(bench, line, &["--disk", &disk.display().to_string()])?;
    let (seen, errors) = (
        String::from_utf8_lossy(&here.stdout),
        String::from_utf8_lossy(&here.stderr),
    );
    ensure!(
        seen == "1\nsame\nagain\n0\n" && errors.contains("No space left on device"),
        "{seen}; {errors}"
    );
    for path in ["/kept", "/again", "/big"] {
        ensure!(
            bench.host_read(&disk, path)? == content,
            "{path} is another"
        );
    }
    bench.expect_clean(&disk)
}

/// The same where each file is small: those that could be written are there, and when some were
/// removed, others can be.
fn full_of_small(bench: &Bench<'_>) -> Result<()> {
    let disk = bench.small_disk("512K", &["-b", "1024", "-N", "600"], |_| Ok(()))?;
    let line = "cd /disk; x=$(seq 1000 1200); i=0; while echo $i $x > s$i; do i=$((i + 1)); done 2>/dev/null; rm s$i; i=$((i - 1)); rm s$i; sync; \
                w() { j=0; while [ $j -lt $i ]; do echo $j $x; j=$((j + 1)); done; }; n() { j=0; while [ $j -lt $i ]; do echo s$j; j=$((j + 1)); done; }; \
                w | md5sum > sum; cat $(n) | md5sum | cmp - sum && [ $i -gt 200 ] && echo many; rm s1*; \
                for j in $(seq 60); do echo again $j $x > t$j || echo FULL; done; sync; \
                for j in $(seq 60); do echo again $j $x; done | md5sum > sum; cat $(for j in $(seq 60); do echo t$j; done) | md5sum | cmp - sum && echo done";
    let here = run(bench, line, &["--disk", &disk.display().to_string()])?;
    let (seen, errors) = (
        String::from_utf8_lossy(&here.stdout),
        String::from_utf8_lossy(&here.stderr),
    );
    ensure!(seen == "many\ndone\n", "{seen}; {errors}");
    bench.expect_clean(&disk)
}
