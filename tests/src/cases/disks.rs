//! ext2 on images of the host: what is read, what is written, and what is refused.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use machine::disk;
use machine::qemu::{Ended, Machine, WRITES_UNJOURNALED};
use trefoil_gate::tool;

use super::{Case, case};
use crate::bench::{Bench, DEPTH, LIMIT, host_sum};

pub(super) const CASES: &[Case] = &[
    case("disk-reads-agree-with-the-host", reads),
    case(
        "disk-reads-agree-with-the-host-on-4-processors",
        reads_on_four,
    ),
    case("disk-big-files-are-written-right", big_writes),
    case("disk-every-block-size", block_sizes),
    case("disk-a-second-run-sees-the-first", second_run),
    case(
        "disk-a-second-run-sees-the-first-on-4-processors",
        second_run_on_four,
    ),
    case("disk-stays-clean-when-full", full),
    case("disk-poweroff-leaves-it-clean", poweroff),
    case("disk-read-only", read_only),
    case("disk-without-a-journal-is-only-read", no_journal),
    case("disk-with-bitmaps-that-lie-keeps-its-files", lying_blocks),
    case("disk-with-an-inode-marked-as-free-keeps-it", lying_inodes),
    case("disk-none", none),
    case("disk-that-is-no-ext2", no_ext2),
    case("disk-of-large-blocks-is-refused-by-name", large_blocks),
    case("disk-image-cut-off", cut_off),
    case("disk-unknown-features-are-named", features),
];

fn reads(bench: &Bench<'_>) -> Result<()> {
    reads_with(bench, 1)
}

fn reads_on_four(bench: &Bench<'_>) -> Result<()> {
    reads_with(bench, 4)
}

fn reads_with(bench: &Bench<'_>, processors: u32) -> Result<()> {
    let disk = bench.disk()?;
    let mut machine = bench.machine_with(&disk);
    machine.processors = processors;
    let deep: String = (0..DEPTH).map(|level| format!("/level{level}")).collect();
    let line = format!(
        "ls -l / && wc -l /text/a.txt && sha256sum /big && cat /deep{deep}/leaf && sha256sum /bin/sh"
    );
    let answer = bench.exec_on(machine, &line)?.status(0)?.silently()?;
    let root = &bench.site.root;
    for name in [
        "big",
        "bin",
        "deep",
        "empty",
        "hard",
        "link",
        "text",
        "lost+found",
    ] {
        ensure!(
            answer.stdout.contains(name),
            "`ls -l /` does not show {name}:\n{}",
            answer.stdout
        );
    }
    let length = fs::metadata(root.join("big"))?.len().to_string();
    // QEMU's disk has as many queues as there are processors.
    let queues = format!("64 requests at once, queues: {processors}");
    ensure!(answer.log.contains(&queues), "no {queues:?} in the log");
    let answer = answer
        .shows(&length)?
        .shows("5000 /text/a.txt")?
        .shows("at the bottom\n")?;
    let answer = answer.shows(&format!("{}  /big\n", host_sum(&root.join("big"))?))?;
    answer.shows(&format!("{}  /bin/sh\n", host_sum(&root.join("bin/sh"))?))?;
    bench.expect_clean(&disk)
}

fn big_writes(bench: &Bench<'_>) -> Result<()> {
    let disk = bench.disk()?;
    bench
        .exec(&disk, "cp /big /copy && cat /text/a.txt >> /copy && sync")?
        .status(0)?
        .silently()?;
    let root = &bench.site.root;
    let expected = [
        fs::read(root.join("big"))?,
        fs::read(root.join("text/a.txt"))?,
    ]
    .concat();
    ensure!(
        bench.host_read(&disk, "/copy")? == expected,
        "the host reads something else from /copy"
    );
    bench.expect_clean(&disk)?;
    bench.exec(&disk, "rm /copy && ls /")?.status(0)?;
    bench.expect_clean(&disk)
}

/// Blocks of 1, 2 and 4 KiB; with 1 KiB the file needs doubly indirect blocks and more.
fn block_sizes(bench: &Bench<'_>) -> Result<()> {
    let content = disk::noise(20 << 20, 5);
    for size in ["1024", "2048", "4096"] {
        let image = bench.small_disk("64M", &["-b", size], |root| {
            Ok(fs::write(root.join("data"), &content)?)
        })?;
        let original = bench.folder.join("original");
        fs::write(&original, &content)?;
        let answer = bench
            .exec(
                &image,
                "sha256sum /data && cp /data /copy && rm /data && mkdir /a",
            )?
            .status(0)?;
        answer
            .shows(&host_sum(&original)?)
            .with_context(|| format!("blocks of {size} bytes"))?;
        bench
            .expect_clean(&image)
            .with_context(|| format!("blocks of {size} bytes"))?;
        ensure!(
            bench.host_read(&image, "/copy")? == content,
            "blocks of {size} bytes: /copy is damaged"
        );
        fs::remove_file(image)?;
    }
    Ok(())
}

fn second_run(bench: &Bench<'_>) -> Result<()> {
    second_run_with(bench, 1)
}

fn second_run_on_four(bench: &Bench<'_>) -> Result<()> {
    second_run_with(bench, 4)
}

fn second_run_with(bench: &Bench<'_>, processors: u32) -> Result<()> {
    let disk = bench.disk()?;
    let exec = |line: &str| {
        let machine = Machine {
            processors,
            ..bench.machine_with(&disk)
        };
        bench.exec_on(machine, line)?.status(0)
    };
    exec(
        "echo hello > /new && mkdir -p /x/y && mv /new /x/y/z && echo more >> /x/y/z && rm /text/b.txt && seq 1 50000 > /numbers",
    )?;
    bench.expect_clean(&disk)?;
    exec("cat /x/y/z && wc -l < /numbers && ls /text")?.prints("hello\nmore\n50000\na.txt\n")?;
    bench.expect_clean(&disk)?;
    ensure!(
        bench.host_read(&disk, "/x/y/z")? == b"hello\nmore\n",
        "the host reads something else"
    );
    Ok(())
}

fn full(bench: &Bench<'_>) -> Result<()> {
    let image = bench.small_disk("4M", &["-b", "1024"], |root| {
        Ok(fs::write(root.join("keep"), "kept\n")?)
    })?;
    let line =
        "seq 1 2000000 > /full; echo $?; cat /keep; rm /full && echo fits > /after && cat /after";
    let answer = bench.exec(&image, line)?.status(0)?.complains("no space")?;
    let lines: Vec<_> = answer.stdout.lines().collect();
    ensure!(
        lines.len() == 3 && lines[0] != "0" && lines[1..] == ["kept", "fits"],
        "unexpected: {lines:?}"
    );
    bench.expect_clean(&image)?;
    ensure!(
        bench.host_read(&image, "/after")? == b"fits\n",
        "what was written afterwards is not there"
    );
    Ok(())
}

fn poweroff(bench: &Bench<'_>) -> Result<()> {
    let disk = bench.disk()?;
    let mut session = bench.session(&bench.machine_with(&disk))?;
    session.run("echo typed > /typed", LIMIT)?;
    session.type_line(b"poweroff")?;
    let ended = session.end(LIMIT)?;
    ensure!(
        matches!(ended, Ended::Status(0) | Ended::Off),
        "poweroff ended with {ended:?}"
    );
    bench.expect_clean(&disk)?;
    ensure!(
        bench.host_read(&disk, "/typed")? == b"typed\n",
        "what was typed is not on the disk"
    );
    let header = tool::output(
        Command::new(tool::need("dumpe2fs", "e2fsprogs")?)
            .arg("-h")
            .arg(&disk),
    )?;
    let state = header
        .lines()
        .find(|line| line.starts_with("Filesystem state:"))
        .unwrap_or_default();
    ensure!(state.ends_with(" clean"), "dumpe2fs says: {state}");
    Ok(())
}

fn read_only(bench: &Bench<'_>) -> Result<()> {
    let disk = bench.disk()?;
    let before = host_sum(&disk)?;
    let mut machine = bench.machine_with(&disk);
    machine.read_only = true;
    machine.words.push("ro".into());
    let answer = bench
        .exec_on(machine, "wc -l < /text/a.txt; echo x > /new; echo $?")?
        .complains("read-only")?;
    ensure!(
        answer.stdout.starts_with("5000\n") && !answer.stdout.ends_with("\n0\n"),
        "{:?}",
        answer.stdout
    );
    ensure!(host_sum(&disk)? == before, "the image was changed");
    Ok(())
}

/// Unless somebody says that it may be written to. Nothing of it is changed.
fn no_journal(bench: &Bench<'_>) -> Result<()> {
    let disk = bench.disk()?;
    let before = host_sum(&disk)?;
    let line = "wc -l < /text/a.txt; echo x > /new; echo $?; rm /text/b.txt; echo $?; sync";
    let mut machine = bench.machine_with(&disk);
    machine.words.retain(|word| word != WRITES_UNJOURNALED);
    let answer = bench.exec_on(machine, line)?.complains("read-only")?;
    let lines: Vec<&str> = answer.stdout.lines().collect();
    ensure!(
        matches!(lines[..], ["5000", write, remove] if write != "0" && remove != "0"),
        "{:?}",
        answer.stdout
    );
    ensure!(answer.log.contains("no journal: mounted read-only"));
    ensure!(host_sum(&disk)? == before, "the image was changed");
    let answer = bench.exec(&disk, line)?.status(0)?;
    ensure!(answer.stdout == "5000\n0\n0\n", "{:?}", answer.stdout);
    ensure!(answer.log.contains("no journal: after a power cut"));
    bench.expect_clean(&disk)
}

/// The bitmap has the blocks of a file as free.
fn lying_blocks(bench: &Bench<'_>) -> Result<()> {
    let commands = |disk: &Path| {
        let mut command = Command::new(tool::need("debugfs", "e2fsprogs")?);
        let blocks = tool::output(command.args(["-R", "blocks /keep"]).arg(disk))?;
        let blocks: Vec<_> = blocks.split_whitespace().collect();
        ensure!(blocks.len() > 39, "{} blocks", blocks.len());
        Ok(blocks
            .iter()
            .map(|block| format!("freeb {block}\n"))
            .collect())
    };
    lying(bench, commands, "free blocks")
}

/// The bitmap has the inode of a file as free.
fn lying_inodes(bench: &Bench<'_>) -> Result<()> {
    lying(bench, |_| Ok("freei /d/small\n".into()), "free inodes")
}

/// Files stay as they are on a disk that `commands` damage, however much is written to it; the log
/// says what `doubt` is about, and the host can mend the disk.
fn lying(
    bench: &Bench<'_>,
    commands: impl FnOnce(&Path) -> Result<String>,
    doubt: &str,
) -> Result<()> {
    let keep = disk::noise(40_000, 1);
    let small = disk::noise(3000, 2);
    let options = ["-b", "1024", "-j", "-J", "size=1"];
    let image = bench.small_disk("4M", &options, |root| {
        fs::create_dir(root.join("d"))?;
        fs::write(root.join("keep"), &keep)?;
        Ok(fs::write(root.join("d/small"), &small)?)
    })?;
    let script = commands(&image)?;
    disk::change(&image, &script)?;
    let sums = "sha256sum /keep /d/small";
    let work = "seq 1 20000 > /new; mkdir /m; for n in 1 2 3 4 5 6; do echo $n > /d/$n; done; sync";
    let answer = bench.exec(&image, &format!("{sums}; {work}; {sums}"))?;
    let lines: Vec<&str> = answer.stdout.lines().collect();
    ensure!(
        matches!(lines[..], [a, b, c, d] if (a, b) == (c, d)),
        "{lines:?}"
    );
    let said: Vec<&str> = answer
        .log
        .lines()
        .filter(|line| line.contains("group 0 is damaged"))
        .collect();
    ensure!(
        matches!(said[..], [said] if said.contains(doubt)),
        "{said:?}: {}",
        answer.log
    );
    ensure!(answer.stderr.contains("No space left"), "{}", answer.stderr);
    let worse = disk::complaints(&image)?.context("the damage is gone")?;
    ensure!(
        !worse.contains("claimed") && !worse.contains("deleted/unused"),
        "{worse}"
    );
    let mut check = Command::new(tool::need("e2fsck", "e2fsprogs")?);
    tool::captured(check.arg("-fy").arg(&image))?;
    bench.expect_clean(&image)?;
    ensure!(
        bench.host_read(&image, "/keep")? == keep,
        "/keep is another"
    );
    ensure!(
        bench.host_read(&image, "/d/small")? == small,
        "/d/small is another"
    );
    Ok(())
}

/// Everything that is said about the disk, wherever it is said.
fn said(bench: &Bench<'_>, machine: Machine) -> Result<String> {
    let answer = bench
        .exec_on(machine, "echo still here; ls /boot/bin | grep -c '^sh$'")?
        .shows("still here\n1\n")?;
    Ok(format!("{}{}", answer.stderr, answer.log).to_lowercase())
}

fn expect_said(said: &str, words: &[&str]) -> Result<()> {
    let found = words.iter().any(|word| said.contains(word));
    ensure!(found, "expected one of {words:?} in errors or log:\n{said}");
    Ok(())
}

fn none(bench: &Bench<'_>) -> Result<()> {
    expect_said(
        &said(bench, bench.machine())?,
        &["no free pci device", "no disk"],
    )
}

fn no_ext2(bench: &Bench<'_>) -> Result<()> {
    for (name, content) in [
        ("zeros", vec![0; 8 << 20]),
        ("noise", disk::noise(8 << 20, 9)),
        ("tiny", vec![7; 512]),
    ] {
        let image = bench.folder.join(name);
        fs::write(&image, content)?;
        expect_said(&said(bench, bench.machine_with(&image))?, &["ext2"])
            .with_context(|| name.to_string())?;
    }
    Ok(())
}

/// A device that takes no less than 4096 bytes at once.
fn large_blocks(bench: &Bench<'_>) -> Result<()> {
    let image = bench.folder.join("image");
    fs::write(&image, vec![0; 8 << 20])?;
    let mut machine = bench.machine_with(&image);
    machine.disk_block = 4096;
    expect_said(&said(bench, machine)?, &["its blocks have 4096 bytes"])
}

fn cut_off(bench: &Bench<'_>) -> Result<()> {
    let image = bench.small_disk("32M", &[], |root| {
        Ok(fs::write(root.join("data"), disk::noise(20 << 20, 5))?)
    })?;
    fs::OpenOptions::new()
        .write(true)
        .open(&image)?
        .set_len(10 << 20)?;
    expect_said(
        &said(bench, bench.machine_with(&image))?,
        &[
            "truncated",
            "cut off",
            "larger than",
            "smaller than",
            "shorter than",
        ],
    )
}

fn features(bench: &Bench<'_>) -> Result<()> {
    let options = ["-O", "extent"];
    let image = bench.small_disk("32M", &options, |root: &Path| {
        Ok(fs::write(root.join("data"), "x")?)
    })?;
    expect_said(
        &said(bench, bench.machine_with(&image))?,
        &["extents", "extent"],
    )
}
