//! The shadow in front of a file system dies itself: its next instance finds pages that are not on
//! the disk, numbers of inodes, and files that have no name any more but are open.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use machine::disk;
use machine::manifests;
use machine::qemu::Machine;

use super::recovery::{MANY_RESTARTS, cell, expect_restarts};
use super::{Case, case};
use crate::bench::Bench;

pub(super) const CASES: &[Case] = &[
    case("service-crashes-under-writes", writes),
    case("service-crashes-under-changes-of-names", names),
    case(
        "service-and-file-system-die-under-changes-of-names",
        names_with_both,
    ),
    case(
        "service-crashes-in-a-write-behind-a-change-of-names",
        append,
    ),
    case("service-crashes-under-cp-on-4-processors", copies),
    case("service-updated-50-times-under-cp", updates),
    case("service-finds-numbers-and-open-files", numbers),
    case("service-and-its-keeper-die-in-turn", keeper),
    case("service-and-file-system-die-at-once", both),
    case("service-of-a-mounted-disk-dies", mounted),
    case("service-crashes-under-more-changes-than-lanes", crowd),
];

/// A machine with `disk` where files of more than 4,000 bytes are written in pages, of which 4 MiB
/// are kept, and these domains may crash as often as they like.
fn machine(bench: &Bench<'_>, disk: &Path, domains: &[&str]) -> Result<Machine> {
    let usual = fs::read_to_string(bench.site.project.root.join("images/default.toml"))?;
    let shadow = "[domain.vfs]\n";
    ensure!(usual.contains(shadow), "no shadow in the manifest");
    let options = format!("{shadow}options = \"small=4000 pages=4M\"\n");
    let manifest = manifests::with_limits(&usual, domains, MANY_RESTARTS)?;
    let mut machine = bench.machine_by(&manifest.replace(shadow, &options))?;
    machine.disk = Some(disk.to_path_buf());
    Ok(machine)
}

/// A copy is under way, with dirty pages, while the shadow dies; parts of it are written over; what
/// was written and synced by nobody is there.
fn writes(bench: &Bench<'_>) -> Result<()> {
    let big = disk::noise(5 << 20, 11);
    let disk = bench.small_disk("24M", &["-b", "1024"], |root| {
        Ok(fs::write(root.join("big"), &big)?)
    })?;
    let mut machine = machine(bench, &disk, &["vfs"])?;
    machine.processors = 2;
    let line = "dd if=/big of=/copy bs=64k status=none & sleep 0.2; crash vfs; sleep 0.2; kill-domain vfs; sleep 0.2; crash vfs; \
         wait; cmp /big /copy && echo same; dd if=/big of=/copy bs=1000 count=30 skip=7 seek=100 conv=notrunc status=none; \
         crash vfs; cmp /big /copy | wc -l; sync; domains -q";
    let answer = bench.exec_on(machine, line)?.status(0)?.silently()?;
    ensure!(
        answer.stdout.starts_with("same\n1\n"),
        "{}\n{}",
        answer.stdout,
        answer.log
    );
    expect_restarts(&answer.stdout, "ext2", 0)?;
    let restarts = cell(&answer.stdout, "vfs", "RESTARTS").context("no vfs")?;
    ensure!(restarts == "4", "{restarts} crashes");
    let mut right = big.clone();
    right[100_000..130_000].copy_from_slice(&big[7000..37_000]);
    ensure!(
        bench.host_read(&disk, "/copy")? == right,
        "/copy is another"
    );
    bench.expect_clean(&disk)
}

/// A file that is open loses its name; others are made again by another instance of the file
/// system, under other numbers, before the shadow dies. The second time nothing is left over.
fn numbers(bench: &Bench<'_>) -> Result<()> {
    let big = disk::noise(1 << 20, 12);
    let disk = bench.small_disk("16M", &["-b", "1024"], |root| {
        Ok(fs::write(root.join("big"), &big)?)
    })?;
    let machine = machine(bench, &disk, &["vfs", "ext2"])?;
    let line = "cp /big /f; { rm /f; crash vfs; dd bs=4096 count=9 status=none; crash ext2; ls / > /dev/null; crash vfs; \
         ls -a / | grep -c trefoil; cat; } < /f > /g; head -c 36864 /g | cmp - /g; \
         { dd bs=4096 count=9 status=none; rm /f2; crash vfs; cat; } < /big | cmp - /big && echo same; \
         for i in $(seq 8); do mkdir /a$i /a$i/b; echo $i > /a$i/b/c; rm -r /a$i; mkdir /d$i; mv /d$i /e$i; echo $i > /e$i/x; done; \
         crash ext2; ls /e3 > /dev/null; cd /e5; crash vfs; pwd; cat x; echo more >> x; cat x; cat ../e8/x; \
         { crash ext2; ls / > /dev/null; rm /e7/x; crash vfs; cat; } < /e7/x; cd /; rm -r /e1; crash vfs; ls /; ls -a / | wc -l";
    let answer = bench.exec_on(machine, line)?;
    ensure!(
        answer.stdout.contains("same\n/e5\n5\n5\nmore\n8\n7\n"),
        "{}\n{}\n{}",
        answer.stdout,
        answer.stderr,
        answer.log
    );
    ensure!(
        bench.host_read(&disk, "/e5/x")? == b"5\nmore\n",
        "/e5/x is another"
    );
    bench.expect_clean(&disk)
}

/// Of 250 threads of a program each renames a file and adds to it, so that more changes are under
/// way than a personality has lanes, while the shadow dies again and again: each is made once.
fn crowd(bench: &Bench<'_>) -> Result<()> {
    let disk = bench.small_disk("16M", &["-b", "1024", "-j"], |_| Ok(()))?;
    let usual = fs::read_to_string(bench.site.project.root.join("images/default.toml"))?;
    const RV6: &str = "[domain.rv6]\n";
    ensure!(usual.contains(RV6), "the manifest has no {RV6:?}");
    // A program may have 64 threads, if nobody says more.
    let manifest = usual.replace(RV6, &format!("{RV6}options = \"threads 256\"\n"));
    let manifest = manifests::with_limits(&manifest, &["vfs"], MANY_RESTARTS)?;
    let services = "\n[program.filebench]\nservices = [\"monitor\", \"control\"]\n";
    let mut machine = bench.machine_by(&(manifest + services))?;
    machine.disk = Some(disk.clone());
    machine.processors = 2;
    let line = "mkdir /w; cd /w; /boot/testing/filebench -e 250 -d vfs && echo once; ls /w | wc -l; \
                domains -q";
    let answer = bench.exec_on(machine, line)?;
    ensure!(
        answer.stdout.starts_with("once\n250\n"),
        "{}\n{}",
        answer.stderr,
        answer.stdout
    );
    let restarts: u32 = cell(&answer.stdout, "vfs", "RESTARTS")
        .and_then(|text| text.parse().ok())
        .context("no vfs")?;
    ensure!(restarts >= 5, "{restarts} crashes");
    bench.expect_clean(&disk)
}

/// The keeper's death alone costs nothing, before that of the shadow and after it.
fn keeper(bench: &Bench<'_>) -> Result<()> {
    let big = disk::noise(3 << 20, 13);
    let disk = bench.small_disk("28M", &["-b", "1024"], |root| {
        Ok(fs::write(root.join("big"), &big)?)
    })?;
    let mut machine = machine(bench, &disk, &["vfs", "keep"])?;
    machine.processors = 2;
    let line = "for i in 1 2 3 4 5 6; do cat /big; done > /copy & \
         for i in 1 2 3 4; do kill-domain keep; sleep 0.4; kill-domain vfs; sleep 0.1; done; wait; \
         crash keep; sleep 0.4; crash vfs; for i in 1 2 3 4 5 6; do cat /big; done | cmp - /copy && echo same; domains -q";
    let answer = bench.exec_on(machine, line)?.status(0)?;
    ensure!(
        answer.stdout.starts_with("same\n"),
        "{}\n{}\n{}",
        answer.stdout,
        answer.stderr,
        answer.log
    );
    expect_restarts(&answer.stdout, "ext2", 0)?;
    ensure!(
        !answer.log.contains("another file system"),
        "{}",
        answer.log
    );
    ensure!(bench.host_read(&disk, "/copy")? == big.repeat(6));
    bench.expect_clean(&disk)
}

/// What was acknowledged is there, synced or not, and everything works.
fn both(bench: &Bench<'_>) -> Result<()> {
    let disk = bench.disk()?;
    let machine = machine(bench, &disk, &["vfs", "ext2"])?;
    let line = "head -c 300000 /big > /synced; sync; head -c 200000 /big > /other; seq 300 > /small; \
         mkdir /d && mv /small /d/s && ln /d/s /d/t && chmod 600 /d/t; kill-domain vfs ext2; \
         head -c 300000 /big | cmp - /synced && echo synced; \
         head -c 200000 /big | cmp - /other && seq 300 | cmp - /d/s && ls /d && echo there; cp /synced /new; kill-domain ext2 vfs; sleep 1; \
         cp /synced /new && cmp /synced /new && echo works; domains -q";
    let answer = bench.exec_on(machine, line)?;
    ensure!(
        answer.stdout.starts_with("synced\ns\nt\nthere\nworks\n"),
        "{}\n{}\n{}",
        answer.stdout,
        answer.stderr,
        answer.log
    );
    ensure!(
        !answer.log.contains("another file system") && !answer.log.contains("are lost"),
        "{}",
        answer.log
    );
    bench.expect_clean(&disk)
}

/// Each disk has a keeper of its own, which goes with the mount.
fn mounted(bench: &Bench<'_>) -> Result<()> {
    let big = disk::noise(600_000, 14);
    let disk = bench.small_disk("8M", &["-b", "1024"], |root| {
        Ok(fs::write(root.join("big"), &big)?)
    })?;
    let mut machine = machine(bench, &bench.disk()?, &[])?;
    machine.more_disks = vec![disk.clone()];
    let line = "mkdir /m && mount vdb /m && cp /m/big /m/copy; crash vfs-vdb; cmp /m/big /m/copy && echo same; \
         crash vfs-vdb; umount /m; mount vdb /m && cmp /m/big /m/copy && echo again; crash vfs-vdb; cmp /m/big /m/copy && echo same; \
         crash vfs; umount /m && echo done";
    let answer = bench.exec_on(machine, line)?.status(0)?.silently()?;
    let answer = answer.prints("same\nagain\nsame\ndone\n")?;
    ensure!(
        !answer.log.contains("another file system"),
        "{}",
        answer.log
    );
    ensure!(bench.host_read(&disk, "/copy")? == big);
    bench.expect_clean(&disk)
}

/// Each change of a name is made once, and so is each write at the end of a file, whatever the
/// shadow dies in.
fn names(bench: &Bench<'_>) -> Result<()> {
    const DEATHS: &str = "kill-domain vfs 2> /dev/null; crash vfs > /dev/null 2>&1;";
    let answer = changes(bench, &["vfs"], DEATHS)?;
    expect_restarts(&answer, "ext2", 0)
}

/// The same where the file system dies at that moment, too: what it had not committed is done
/// again.
fn names_with_both(bench: &Bench<'_>) -> Result<()> {
    const DEATHS: &str = "kill-domain vfs ext2 2> /dev/null; sleep 0.1; kill-domain ext2 vfs 2> /dev/null; sleep 0.1;";
    let answer = changes(bench, &["vfs", "ext2"], DEATHS)?;
    let restarts = cell(&answer, "ext2", "RESTARTS").context("no ext2")?;
    ensure!(restarts.parse::<u32>()? >= 5, "only {restarts} crashes");
    Ok(())
}

/// Changes of names while domains die without a pause; what is printed in the end. Every fifth
/// change waits until they have died once more, so that a quick worker has as many deaths.
fn changes(bench: &Bench<'_>, domains: &[&str], deaths: &str) -> Result<String> {
    let disk = bench.small_disk("24M", &["-b", "1024"], |root| {
        Ok(fs::create_dir(root.join("d"))?)
    })?;
    let machine = machine(bench, &disk, domains)?;
    let line = format!(
        "{{ cd /d; for i in $(seq 25); do \
         if [ $((i % 5)) = 0 ]; then until [ -e /tmp/died ]; do sleep 0.01; done; rm /tmp/died; fi; \
         mkdir a$i && mv a$i b$i && echo $i >> log && ln log c$i && rmdir b$i && rm c$i \
         && ln -s log s$i && mv s$i s && seq 1000 >> long || echo FAILED $i; done; echo > /tmp/done; }} & \
         until [ -e /tmp/done ]; do {deaths} echo > /tmp/died; sleep 0.02; done; wait; cd /d; ls; wc -l long; domains -q"
    );
    let answer = bench.exec_on(machine, &line)?.status(0)?.silently()?;
    ensure!(
        answer.stdout.starts_with("log\nlong\ns\n25000 long\n"),
        "{}\n{}",
        answer.stdout,
        answer.log
    );
    ensure!(
        !answer.log.contains("another file system") && !answer.log.contains("are lost"),
        "{}",
        answer.log
    );
    let restarts = cell(&answer.stdout, "vfs", "RESTARTS").context("no vfs")?;
    ensure!(restarts.parse::<u32>()? >= 5, "only {restarts} crashes");
    let lines = |upto: u32| -> String { (1..=upto).map(|line| format!("{line}\n")).collect() };
    ensure!(
        bench.host_read(&disk, "/d/log")? == lines(25).as_bytes(),
        "/d/log is another"
    );
    ensure!(
        bench.host_read(&disk, "/d/long")? == lines(1000).repeat(25).as_bytes(),
        "/d/long is another"
    );
    bench.expect_clean(&disk)?;
    Ok(answer.stdout)
}

/// The shadow dies in a write at the end of a file, which waits for a slow disk, when the last
/// change in its log is one of names that came through the same lane: what came of that is not
/// what came of the write.
fn append(bench: &Bench<'_>) -> Result<()> {
    let (old, other) = (disk::noise(5000, 14), disk::noise(60_000, 15));
    let disk = bench.small_disk("4M", &["-b", "1024"], |root| {
        fs::write(root.join("f"), &old)?;
        fs::write(root.join("other"), &other)?;
        Ok(fs::write(root.join("a"), "")?)
    })?;
    let mut machine = machine(bench, &disk, &["vfs"])?;
    machine.disk_reads = 2;
    let line = "x=$(seq 1000 3000); cd /; mv a b; ls -l f > /dev/null; cat other > /dev/null; \
         { mv b a; echo $x >> f || echo FAILED; } & sleep 0.2; kill-domain vfs; wait; wc -c < f; ls a; domains -q";
    let answer = bench.exec_on(machine, line)?.status(0)?.silently()?;
    ensure!(
        answer.stdout.starts_with("15005\na\n"),
        "{}\n{}",
        answer.stdout,
        answer.log
    );
    let restarts = cell(&answer.stdout, "vfs", "RESTARTS").context("no vfs")?;
    ensure!(restarts == "1", "{restarts} crashes");
    let numbers: Vec<_> = (1000..=3000).map(|number| number.to_string()).collect();
    let right = [old, (numbers.join(" ") + "\n").into_bytes()].concat();
    ensure!(bench.host_read(&disk, "/f")? == right, "/f is another");
    bench.expect_clean(&disk)
}

/// Each file of a tree is copied while the shadow dies once.
fn copies(bench: &Bench<'_>) -> Result<()> {
    let disk = bench.disk()?;
    let mut machine = machine(bench, &disk, &["vfs"])?;
    machine.processors = 4;
    let line = "mkdir /copy; cd /boot/bin; for f in *; do cp $f /copy/$f & kill-domain vfs 2> /dev/null; wait; done; \
         for f in *; do cmp $f /copy/$f || echo DIFFERENT $f; done; ls > /a; ls /copy > /b; cmp /a /b && echo compared; \
         rm -r /copy & crash vfs; wait; ls /copy 2> /dev/null; domains -q";
    let answer = bench.exec_on(machine, line)?.status(0)?.silently()?;
    ensure!(
        answer.stdout.starts_with("compared\n") && answer.stdout.contains("NAME"),
        "{}\n{}",
        answer.stdout,
        answer.log
    );
    let restarts = cell(&answer.stdout, "vfs", "RESTARTS").context("no vfs")?;
    ensure!(restarts.parse::<u32>()? >= 20, "only {restarts} crashes");
    expect_restarts(&answer.stdout, "ext2", 0)?;
    bench.expect_clean(&disk)
}

/// The shadow is replaced by another image again and again, and copies go on.
fn updates(bench: &Bench<'_>) -> Result<()> {
    let disk = bench.disk()?;
    let mut machine = machine(bench, &disk, &[])?;
    machine.processors = 2;
    let line = "{ until [ -e /tmp/done ]; do rm -rf /copy && cp -r /boot/bin /copy && echo x >> /rounds || echo FAILED; done; } & \
         cp /boot/updates/vfs-shadow-2 /tmp/image; for i in $(seq 50); do update vfs /tmp/image > /dev/null || echo REFUSED; done; \
         echo > /tmp/done; wait; cd /boot/bin; for f in *; do cmp $f /copy/$f || echo DIFFERENT $f; done; echo compared; domains -q";
    let answer = bench.exec_on(machine, line)?.status(0)?.silently()?;
    ensure!(
        answer.stdout.starts_with("compared\n"),
        "{}\n{}",
        answer.stdout,
        answer.log
    );
    let count = |title| cell(&answer.stdout, "vfs", title);
    ensure!(
        (count("UPDATES"), count("CRASHES")) == (Some("50"), Some("0")),
        "{}",
        answer.stdout
    );
    bench.expect_clean(&disk)
}
