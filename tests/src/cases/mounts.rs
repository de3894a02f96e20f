//! Several file systems at once: a second disk, files in memory, the system's own files.

use std::fs;

use anyhow::{Context, Result, ensure};
use machine::disk;
use machine::qemu::Machine;

use super::{Case, case};
use crate::bench::{Bench, LIMIT, host_sum};

pub(super) const CASES: &[Case] = &[
    case("mount-a-second-disk", second_disk),
    case("mount-crosses-nothing", crosses_nothing),
    case("mount-survives-the-crash-of-its-domains", crashes),
    case("mount-says-what-is-wrong-with-a-disk", bad_disks),
    case("mount-says-that-a-disk-is-only-read", only_read),
    case("mount-of-a-disk-that-lies-harms-nothing-else", lying_disk),
    case("mount-names-are-stable-and-disks-come-back", stable_names),
    case("proc-tells-of-the-system", proc),
    case("devices-are-files-of-a-directory", devices),
    case("mount-random-numbers", random),
];

/// A machine with the standard disk and a small one, whose image is the second result.
pub(super) fn two_disks(
    bench: &Bench<'_>,
    options: &[&str],
) -> Result<(Machine, std::path::PathBuf)> {
    let second = bench.small_disk("32M", options, |root| {
        fs::create_dir(root.join("sub"))?;
        fs::write(root.join("data"), disk::noise(3 << 20, 11))?;
        Ok(fs::write(root.join("sub/hello"), "second disk\n")?)
    })?;
    let mut machine = bench.machine_with(&bench.disk()?);
    machine.more_disks = vec![second.clone()];
    Ok((machine, second))
}

fn second_disk(bench: &Bench<'_>) -> Result<()> {
    let (machine, second) = two_disks(bench, &["-j", "-J", "size=4"])?;
    let original = bench.folder.join("original");
    fs::write(&original, disk::noise(3 << 20, 11))?;
    let mut session = bench.session(&machine)?;
    let mut run = |line: &str| session.run(line, LIMIT);
    let disks = run("lsblk")?;
    ensure!(
        disks.contains("vda   128M   0  /") && disks.contains("vdb    32M   0"),
        "{disks}"
    );
    run("mkdir /mnt && mount vdb /mnt")?;
    let sum = run("sha256sum < /mnt/data")?;
    ensure!(sum.contains(&host_sum(&original)?), "{sum}");
    let listed = run("mount")?;
    ensure!(listed.contains("vdb on /mnt type ext3 (rw)"), "{listed}");
    run("cp /text/a.txt /mnt/sub/a && cp /mnt/sub/hello /hello && rm /mnt/data")?;
    let away = run("umount /mnt; ls /mnt; mount vdb /mnt -r; cat /mnt/sub/hello; echo x > /mnt/x")?;
    ensure!(
        away.contains("second disk") && away.contains("Read-only file system"),
        "{away}"
    );
    run("umount vdb")?;
    session.type_line(b"poweroff")?;
    session.end(LIMIT)?;
    bench.expect_clean(&second)?;
    let copied = bench.host_read(&second, "/sub/a")?;
    ensure!(
        copied == fs::read(bench.site.root.join("text/a.txt"))?,
        "/sub/a is damaged"
    );
    ensure!(
        bench.host_read(machine.disk.as_ref().context("a disk")?, "/hello")? == b"second disk\n"
    );
    Ok(())
}

/// Names, links and directories above stop at a mount point, and what is in use stays.
fn crosses_nothing(bench: &Bench<'_>) -> Result<()> {
    let (machine, _) = two_disks(bench, &[])?;
    let mut session = bench.session(&machine)?;
    let mut expect = |line: &str, text: &str| -> Result<()> {
        let said = session.run(line, LIMIT)?;
        ensure!(
            said.contains(text),
            "{line}: expected {text:?}, got\n{said}"
        );
        Ok(())
    };
    expect("mkdir -p /a/mnt && mount vdb /a/mnt/. && ls /a/mnt", "data")?;
    expect("mv /a/mnt /b", "Device or resource busy")?;
    expect("rmdir /a/mnt", "Device or resource busy")?;
    expect("rm -r /a/mnt/sub/../../mnt/sub && ls /a/mnt/..", "mnt")?;
    expect("cd /a/mnt && pwd", "/a/mnt")?;
    expect("umount /a/mnt", "Device or resource busy")?;
    expect("cd .. && pwd", "/a")?;
    expect(
        "sleep 100 < /a/mnt/data & umount /a/mnt",
        "Device or resource busy",
    )?;
    expect("mount vdb /text", "Device or resource busy")?;
    expect("mount vdc /text", "no free PCI device")?;
    expect("mount disk /text", "No such file or directory")?;
    expect("mount vdb /a/none", "Device or resource busy")?;
    expect(
        "kill $!; wait $!; umount /a/mnt && ls -a /a/mnt && echo empty",
        "empty",
    )?;
    expect(
        "mount vdb /text/a.txt",
        "mount: /text/a.txt: Not a directory",
    )?;
    expect(
        "mount vdb /nowhere",
        "mount: /nowhere: No such file or directory",
    )?;
    expect("mount vdb /none", "No such file or directory")?;
    expect("mount vda /a/mnt", "Device or resource busy")?;
    expect("umount /a", "not mounted")?;
    expect("mv /a /b && mount vdb /b/mnt && ls /b/mnt", "data")
}

fn crashes(bench: &Bench<'_>) -> Result<()> {
    let (machine, second) = two_disks(bench, &[])?;
    let mut session = bench.session(&machine)?;
    let mut run = |line: &str| session.run(line, LIMIT);
    run("mkdir /mnt && mount vdb /mnt")?;
    for (number, domain) in ["ext2-vdb", "virtio-blk-vdb", "ext2", "ext2-vdb"]
        .iter()
        .enumerate()
    {
        let said = run(&format!(
            "crash {domain}; cp /text/a.txt /mnt/{number} && cmp /mnt/{number} /text/a.txt && echo same"
        ))?;
        ensure!(said.ends_with("same\n"), "{domain}: {said}");
    }
    // A death of the block shadow takes the file system along, and may be seen; but nothing else.
    run("kill-domain block-vdb; sleep 1")?;
    let said = run("cat /text/b.txt | wc -l; cat /mnt/3 | wc -l; umount /mnt && echo ended")?;
    ensure!(said == "7\n5000\nended\n", "{said}");
    session.type_line(b"poweroff")?;
    session.end(LIMIT)?;
    bench.expect_clean(&second)
}

/// A disk that can only be read is mounted, and whoever has not asked for that is told.
fn only_read(bench: &Bench<'_>) -> Result<()> {
    let options = ["-j", "-J", "size=4", "-O", "huge_file"];
    let (machine, _) = two_disks(bench, &options)?;
    let line = "mkdir /mnt && mount vdb /mnt; echo status $?; cat /mnt/sub/hello; umount /mnt; \
                mount -r vdb /mnt; mount | grep vdb; dmesg | grep 'only'";
    let answer = bench.exec_on(machine, line)?;
    ensure!(
        answer.stderr == "mount: vdb: it can only be read, and is mounted so; dmesg says why\n",
        "{}",
        answer.stderr
    );
    let answer = answer.shows("status 0\nsecond disk\nvdb on /mnt type ext")?;
    answer.shows("huge_file").map(drop)
}

/// What is wrong is said, nothing of it is left, and everything else goes on.
fn bad_disks(bench: &Bench<'_>) -> Result<()> {
    let good = bench.small_disk("8M", &[], |root| Ok(fs::write(root.join("x"), "x\n")?))?;
    let whole = fs::read(&good)?;
    let mut crafted = whole.clone();
    // Inodes per group, which must not be 0 nor more than a bitmap can tell.
    crafted[1024 + 40..1024 + 44].fill(0xff);
    let mut extents = whole.clone();
    extents[1024 + 96] |= 0x40;
    for (content, expected) in [
        (disk::noise(1 << 20, 3), "not an ext2 file system"),
        (vec![0; 512], "cannot mount"),
        (crafted, "cannot mount"),
        (extents, "extent"),
        (whole[..3 << 20].to_vec(), "cannot mount"),
    ] {
        let image = bench.folder.join("bad.img");
        fs::write(&image, content)?;
        let mut machine = bench.machine_with(&bench.disk()?);
        machine.more_disks = vec![image, good.clone()];
        let answer = bench.exec_on(
            machine,
            "mkdir /m; mount vdb /m; mount vdc /m && cat /m/x; grep -c 'vdb$' /proc/domains; cat /text/b.txt | wc -l",
        )?;
        let answer = answer.status(0)?.complains(expected)?;
        ensure!(
            answer.stdout == "x\n0\n7\n",
            "{expected}: {}",
            answer.stdout
        );
    }
    Ok(())
}

/// What is wrong is met only in use: it fails what meets it, and nothing else.
fn lying_disk(bench: &Bench<'_>) -> Result<()> {
    let image = bench.small_disk("8M", &[], |root| {
        for dir in ["trash", "zero", "good"] {
            fs::create_dir(root.join(dir))?;
        }
        fs::write(root.join("good/x"), "x\n")?;
        fs::write(root.join("far"), disk::noise(5000, 4))?;
        Ok(fs::write(root.join("huge"), disk::noise(60_000, 5))?)
    })?;
    disk::change(
        &image,
        "sif /trash block[0] 1\nsif /zero block[0] 0\nsif /far block[0] 99999999\nsif /huge block[IND] 2\n\
         ln /good /good/again\n",
    )?;
    let mut machine = bench.machine_with(&bench.disk()?);
    machine.more_disks = vec![image];
    let mut session = bench.session(&machine)?;
    let mut run = |line: &str| session.run(line, LIMIT);
    run("mkdir /m && mount vdb /m")?;
    for line in [
        "ls /m/trash",
        "ls /m/zero",
        "cat /m/far > /dev/null",
        "cat /m/huge > /dev/null",
    ] {
        let said = run(&format!("{line} || echo failed"))?;
        ensure!(
            said.ends_with("failed\n") && said.lines().count() > 1,
            "{line}: {said}"
        );
    }
    let said =
        run("cat /m/good/x /m/good/again/x; rm -r /m/trash; rm /m/far; rmdir /m/good/again")?;
    ensure!(said.starts_with("x\nx\n"), "{said}");
    let said = run(
        "cat /text/b.txt | wc -l; cp /text/b.txt /b && cmp /b /text/b.txt && umount /m && echo ended",
    )?;
    ensure!(said == "7\nended\n", "{said}");
    let said = run("dmesg | grep -c 'ext2-vdb.*crash'; ls /m")?;
    ensure!(said == "0\n", "{said}");
    session.type_line(b"poweroff")?;
    session.end(LIMIT).map(|_| ())
}

/// The third disk is `vdc` also when it is asked for first; mounting again and again leaves nothing
/// behind.
fn stable_names(bench: &Bench<'_>) -> Result<()> {
    let (mut machine, second) = two_disks(bench, &[])?;
    let third = bench.folder.join("third.img");
    fs::copy(&second, &third)?;
    machine.more_disks.push(third.clone());
    let mut session = bench.session(&machine)?;
    let mut run = |line: &str| session.run(line, LIMIT);
    run("mkdir /m; mount vdc /m && echo third > /m/mark; umount /m")?;
    run("mount vdb /m && echo second > /m/mark; umount /m")?;
    let free = "sleep 1; cat /proc/meminfo | grep MemFree";
    run("lsblk")?;
    let before = run(free)?;
    for _ in 0..16 {
        run("mount vdb /m; umount vdb")?;
    }
    run("lsblk")?;
    let after = run(free)?;
    let kilobytes = |text: &str| -> Result<i64> {
        let word = text.split_whitespace().nth(1);
        Ok(word.with_context(|| text.to_string())?.parse()?)
    };
    let lost = kilobytes(&before)? - kilobytes(&after)?;
    // The kernel's tables grow in steps; a single file system is larger than this in all.
    ensure!(lost < 4096, "16 mounts cost {lost} kB");
    session.type_line(b"poweroff")?;
    session.end(LIMIT)?;
    for (image, text) in [(&second, "second\n"), (&third, "third\n")] {
        bench.expect_clean(image)?;
        ensure!(bench.host_read(image, "/mark")? == text.as_bytes());
    }
    Ok(())
}

/// `/dev` can be gone to and listed, and its files are the same by whatever path.
fn devices(bench: &Bench<'_>) -> Result<()> {
    let line = "ls /dev; cd /dev; echo lost > null; head -c 3 zero | wc -c; cat ../dev/null; \
                find /dev | sort; rm null; touch new; ls";
    let answer = bench
        .exec(&bench.disk()?, line)?
        .complains("null: Read-only file system")?
        .complains("new: Read-only file system")?;
    answer
        .prints(
            "null\nrandom\nurandom\nzero\n3\n/dev\n/dev/null\n/dev/random\n/dev/urandom\n/dev/zero\nnull\nrandom\nurandom\nzero\n",
        )
        .map(drop)
}

/// Random numbers come as many as are asked for, and others each time. Without a source of them
/// reading is an error, and no zeros.
fn random(bench: &Bench<'_>) -> Result<()> {
    let line = "head -c 200000 /dev/random > /tmp/a; head -c 200000 /dev/urandom > /tmp/b; \
                cat /tmp/a /tmp/b | wc -c; cmp /tmp/a /tmp/b > /dev/null; echo $?; \
                head -c 9999 /dev/zero > /tmp/z; head -c 9999 /tmp/a | cmp - /tmp/z > /dev/null; echo $?; \
                echo seed > /dev/random && head -c 3 /dev/random | wc -c; stat /dev/random > /dev/null";
    let answer = bench.exec(&bench.disk()?, line)?;
    answer.prints("400000\n1\n1\n3\n")?.status(0)?;
    let root = &bench.site.project.root;
    let manifest = std::fs::read_to_string(root.join("images/default.toml"))?;
    let without = manifest.replace("    random = \"kernel.random\",\n", "");
    ensure!(without != manifest, "rv6 is not granted random numbers");
    let machine = bench.machine_by(&without)?;
    let line = "head -c 3 /dev/random | wc -c; cat /dev/urandom; echo $?";
    let answer = bench.exec_on(machine, line)?;
    answer.complains("urandom")?.prints("0\n1\n").map(drop)
}

fn proc(bench: &Bench<'_>) -> Result<()> {
    let line = "ls /proc; cat /proc/mounts /proc/version; wc -l < /proc/meminfo; cut -d ' ' -f 11 /proc/domains | head -3; \
                grep -c exec= /proc/cmdline; grep cat /proc/processes | wc -l; echo x > /proc/version; rm /proc/version; touch /proc/x";
    let answer = bench
        .exec(&bench.disk()?, line)?
        .complains("Read-only file system")?;
    answer.shows(
        "cmdline\ndomains\nmeminfo\nmounts\nprocesses\ntimes\nuptime\nversion\nvda / ext2 rw 0 0\nbootfs /boot bootfs ro 0 0\nramfs /tmp ramfs rw 0 0\ndev /dev dev ro 0 0\nproc /proc proc ro 0 0\nTrefoil",
    )?
    .shows("\n3\ninit\nsteward\nconsole\n1\n")
    .map(drop)
}
