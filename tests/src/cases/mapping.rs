//! A Linux program in ring 3 maps and reads files of the disk, beside the same on the host, while
//! what is below crashes, fails, or cuts the files.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use lab::storms::mapped;
use machine::disk;
use machine::manifests;
use machine::nbd::Server;
use machine::qemu::{Event, Guest, Machine};
use trefoil_gate::build;

use super::recovery::{MANY_RESTARTS, expect_no_restart, expect_restarts, expect_restarts_from};
use super::{Case, case};
use crate::bench::{Answer, Bench, LIMIT};

pub(super) const CASES: &[Case] = &[
    case("mapping-while-driver-and-file-system-crash", crashes),
    case("mapping-of-small-blocks-beyond-the-budget", small_blocks),
    case("mapping-of-a-file-that-is-cut-and-written", cut),
    case("mapping-of-a-page-that-cannot-be-read", unreadable),
    case("mapping-that-is-refused", refused),
    case("mapping-and-parts-that-are-synced-as-on-linux", parts),
    case("mapping-of-pages-that-are-asked-for-on-a-slow-disk", ahead),
    case("mapping-of-pages-that-come-at-the-same-time", together),
    case("mapping-of-pages-that-come-when-the-shadow-dies", awaited),
    case("mapping-on-a-slow-disk-while-all-below-dies", dying),
    case("mapping-that-is-written-to-as-on-linux", shared),
    case("mapping-that-is-written-to-while-it-crashes", churned),
    case("mapping-that-is-written-to-while-its-shadow-dies", rested),
    case("mapping-that-is-stored-survives-a-power-cut", power_cut),
    case("mapping-of-a-hole-until-the-disk-is-full", filled),
    case("mapping-moves-the-time-of-what-was-just-written", stamps),
    case(
        "mapping-moves-the-time-while-its-shadow-dies",
        stamps_over_shadows,
    ),
];

/// The program, made by the host's compiler.
fn program(bench: &Bench<'_>) -> Result<PathBuf> {
    mapped::program(&bench.site.project, &bench.folder)
}

/// What the program says on the host about the files in a folder.
fn there(program: &Path, root: &Path, what: &str) -> Result<String> {
    let line = format!("{} {what}", root.display());
    let output = Command::new(program).args(["-c", &line]).output()?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(output.status.success() && !said.is_empty(), "{output:?}");
    Ok(said)
}

/// A machine with the disk whose personality has the program in place of its shell.
pub(super) fn machine(
    bench: &Bench<'_>,
    program: &Path,
    disk: &Path,
    pages: &str,
) -> Result<Machine> {
    let usual = fs::read_to_string(bench.site.project.root.join("images/default.toml"))?;
    let mut machine = bench.machine_with(disk);
    machine.archive = Some(archive(bench, program, &usual, pages)?);
    Ok(machine)
}

/// What boots by the manifest `usual`, with the personality besides, and a line for its file
/// system's shadow.
pub(super) fn archive(
    bench: &Bench<'_>,
    program: &Path,
    usual: &str,
    pages: &str,
) -> Result<PathBuf> {
    let shadow = "[domain.vfs]\n";
    let usual = usual.replace(shadow, &format!("{shadow}{pages}"));
    let manifest = manifests::with_guest(&usual)?;
    let program = fs::read(program)?;
    let archive = bench.folder.join("archive.cpio");
    let project = &bench.site.project;
    let packed = build::packed_with(project, manifest.as_bytes(), &[("busybox", &program)])?;
    fs::write(&archive, packed)?;
    Ok(archive)
}

/// What has the program run.
pub(super) const RUN: &str = "/boot/testing/guest linux";

/// What the program has said, which is what it says on the host.
fn expect(answer: &Answer, right: &str) -> Result<()> {
    let seen = answer.stdout.replace('\r', "");
    for line in right.lines() {
        ensure!(
            seen.contains(line),
            "no {line:?} in {seen}\n{}\n{}",
            answer.stderr,
            answer.log
        );
    }
    Ok(())
}

/// It goes on, with what the host says, over crashes of driver and file system; neither the shadows
/// nor the personality are started again.
fn crashes(bench: &Bench<'_>) -> Result<()> {
    let program = program(bench)?;
    let right = there(&program, &bench.site.root, "sums")?;
    let disk = bench.disk()?;
    let mut machine = machine(bench, &program, &disk, "")?;
    machine.processors = 2;
    let line = format!(
        "{RUN} '/disk sums' & sleep 0.7; crash ext2; sleep 0.6; crash virtio-blk; sleep 0.6; \
         crash ext2; crash virtio-blk; wait; domains -q"
    );
    let answer = bench.exec_on(machine, &line)?;
    expect(&answer, &right)?;
    expect_restarts(&answer.stdout, "ext2", 2)?;
    expect_restarts(&answer.stdout, "virtio-blk", 2)?;
    for domain in ["vfs", "block", "linux"] {
        expect_no_restart(&answer.stdout, domain)?;
    }
    bench.expect_clean(&disk)
}

/// Where a block of a file is on a disk: the size of blocks, and which one.
pub(super) fn block_of(disk: &Path, file: &str, offset: u64) -> Result<(u64, u64)> {
    // The size of a block is 1,024 shifted by what stands in the superblock.
    let block_size = 1024_u64 << fs::read(disk)?[1024 + 24];
    let bmap = format!("bmap {file} {}", offset / block_size);
    let mut debugfs = Command::new("debugfs");
    let block = debugfs.args(["-R", &bmap]).arg(disk).output()?;
    let block = String::from_utf8_lossy(&block.stdout).trim().parse()?;
    Ok((block_size, block))
}

/// Puts something behind the end of `/text/a.txt` in its last block, where it means nothing.
fn spoil_the_end(disk: &Path, content: &str) -> Result<()> {
    let (block_size, block) = block_of(disk, "/text/a.txt", content.len() as u64)?;
    let within = content.len() as u64 % block_size;
    let mut image = fs::read(disk)?;
    let start = (block * block_size + within) as usize;
    let end = ((block + 1) * block_size) as usize;
    ensure!(block > 0 && within > 0 && image[start..end].iter().all(|byte| *byte == 0));
    image[start..end].fill(b'!');
    Ok(fs::write(disk, image)?)
}

/// With blocks of which a page has four, something behind the end of a file in its last block, and
/// a budget of a tenth of the file.
fn small_blocks(bench: &Bench<'_>) -> Result<()> {
    let program = program(bench)?;
    let root = bench.folder.join("root");
    let fill = |root: &Path| -> Result<()> {
        fs::create_dir_all(root.join("text"))?;
        fs::write(root.join("text/a.txt"), disk::verses(2001))?;
        fs::write(root.join("big"), disk::noise(10 << 20, 5))?;
        Ok(())
    };
    fill(&root)?;
    let right = there(&program, &root, "sums")?;
    let disk = bench.small_disk("24M", &["-b", "1024"], fill)?;
    spoil_the_end(&disk, &disk::verses(2001))?;
    let machine = machine(bench, &program, &disk, "options = \"pages=1M\"\n")?;
    let line = format!("{RUN} '/disk sums' & sleep 0.7; crash ext2; wait");
    expect(&bench.exec_on(machine, &line)?, &right)
}

/// A file becomes shorter under a program that has it mapped, and other bytes come to be in it: the
/// program sees them, zeros behind the end, and SIGBUS where there is no page any more.
fn cut(bench: &Bench<'_>) -> Result<()> {
    let program = program(bench)?;
    let disk = bench.disk()?;
    let machine = machine(bench, &program, &disk, "")?;
    let line = format!(
        "seq 10000 13000 > /t; {RUN} '/disk cut' & sleep 3; \
         crash ext2; echo short > /t; wait; {RUN} '/disk cut'"
    );
    let answer = bench.exec_on(machine, &line)?;
    expect(&answer, "before: 1 3\nafter: s 0 -7\nbefore: s \n")?;
    bench.expect_clean(&disk)
}

/// The device fails for one page of a mapped file: SIGBUS there, and nowhere else.
fn unreadable(bench: &Bench<'_>) -> Result<()> {
    let program = program(bench)?;
    let disk = bench.disk()?;
    let (block_size, block) = block_of(&disk, "/big", 100 * 4096)?;
    let rules = bench.folder.join("rules");
    let sector = block * block_size / 512;
    let rule = format!(
        "[inject-error]\nevent = \"none\"\niotype = \"read\"\nerrno = \"5\"\nonce = \"off\"\nsector = \"{sector}\"\n"
    );
    fs::write(&rules, rule)?;
    let mut machine = machine(bench, &program, &disk, "")?;
    let usual = fs::read_to_string(bench.site.project.root.join("images/default.toml"))?;
    let usual = machine::nvme::manifest(&usual)?;
    machine.archive = Some(archive(bench, &program, &usual, "")?);
    (machine.disk, machine.nvme) = (None, Some(disk));
    machine.disk_faults = Some(rules);
    let answer = bench.exec_on(machine, &format!("{RUN} '/disk some'; echo more"))?;
    let pages: String = (97..103)
        .map(|page| {
            format!(
                "page {page}: {}\n",
                if page == 100 { "none" } else { "there" }
            )
        })
        .collect();
    expect(&answer, &(pages + "read: -1, behind it 1\nmore\n"))
}

/// A file as the host has it after the program has run there.
fn same_file(bench: &Bench<'_>, disk: &Path, root: &Path, name: &str) -> Result<()> {
    let seen = bench.host_read(disk, &format!("/{name}"))?;
    ensure!(seen == fs::read(root.join(name))?, "/{name} is another");
    bench.expect_clean(disk)
}

/// What is written through a mapping is the file's: for who reads it, has it mapped, too, or looks
/// at the disk afterwards. With blocks of which a page has four, and a small budget.
fn shared(bench: &Bench<'_>) -> Result<()> {
    let program = program(bench)?;
    let root = bench.folder.join("host");
    fs::create_dir_all(&root)?;
    let right = there(&program, &root, "share")?;
    let disk = bench.small_disk("12M", &["-b", "1024"], |_| Ok(()))?;
    let machine = machine(bench, &program, &disk, "options = \"pages=1M\"\n")?;
    let answer = bench.exec_on(machine, &format!("{RUN} '/disk share'; sync"))?;
    expect(&answer, &right)?;
    same_file(bench, &disk, &root, "shared")
}

/// Crashes of file system and driver lose nothing of it, and nobody else is started again.
fn churned(bench: &Bench<'_>) -> Result<()> {
    let program = program(bench)?;
    let root = bench.folder.join("host");
    fs::create_dir_all(&root)?;
    let fill = |root: &Path| Ok(fs::write(root.join("big"), disk::noise(4 << 20, 5))?);
    fill(&root)?;
    let right = there(&program, &root, "churn")?;
    let disk = bench.small_disk("24M", &["-b", "1024"], fill)?;
    let mut machine = machine(bench, &program, &disk, "options = \"pages=2M\"\n")?;
    machine.processors = 2;
    let strike = "crash ext2; sleep 0.4; crash virtio-blk; sleep 0.3";
    let line = format!(
        "{RUN} '/disk churn' & sleep 0.8; {strike}; {strike}; crash ext2; crash virtio-blk; wait; sync; domains -q"
    );
    let answer = bench.exec_on(machine, &line)?;
    expect(&answer, &right)?;
    expect_restarts_from(&answer.stdout, "ext2", 2)?;
    for domain in ["vfs", "block", "linux"] {
        expect_no_restart(&answer.stdout, domain)?;
    }
    same_file(bench, &disk, &root, "churned")
}

/// It goes on over deaths of the shadow, alone and with the file system, of which it hears nothing
/// before others have read the files and had everything stored.
fn rested(bench: &Bench<'_>) -> Result<()> {
    let program = program(bench)?;
    let root = bench.folder.join("host");
    fs::create_dir_all(&root)?;
    let right = there(&program, &root, "rest")?;
    let disk = bench.small_disk("12M", &["-b", "1024"], |_| Ok(()))?;
    let machine = machine(bench, &program, &disk, "")?;
    let back = "cat /rested /unwritten | wc -c; sync";
    let line = format!(
        "{RUN} '/disk rest' & sleep 1; crash vfs; {back}; kill-domain vfs ext2; {back}; wait; sync; domains -q"
    );
    let answer = bench.exec_on(machine, &line)?;
    expect(&answer, &right)?;
    expect_restarts(&answer.stdout, "vfs", 2)?;
    expect_no_restart(&answer.stdout, "linux")?;
    same_file(bench, &disk, &root, "rested")?;
    same_file(bench, &disk, &root, "unwritten")
}

/// A store moves the times of a file, also to a page that a write has made dirty just before.
fn stamps(bench: &Bench<'_>) -> Result<()> {
    let said = stamped(bench, "")?;
    for domain in ["vfs", "ext2", "linux"] {
        expect_no_restart(&said, domain)?;
    }
    Ok(())
}

/// So it does over deaths of the shadow, alone and with the file system.
fn stamps_over_shadows(bench: &Bench<'_>) -> Result<()> {
    let strike =
        "sleep 0.4; crash vfs; sleep 0.4; kill-domain vfs; sleep 0.4; kill-domain vfs ext2";
    let said = stamped(bench, &format!("{strike}; {strike};"))?;
    expect_restarts_from(&said, "vfs", 4)?;
    expect_no_restart(&said, "linux")
}

/// What is printed while and after the program stores to files that it has written, and `strikes`
/// are made.
fn stamped(bench: &Bench<'_>, strikes: &str) -> Result<String> {
    let disk = bench.small_disk("16M", &["-j", "-J", "size=4", "-I", "256"], |_| Ok(()))?;
    let usual = fs::read_to_string(bench.site.project.root.join("images/default.toml"))?;
    let usual = manifests::with_limits(&usual, &["vfs", "ext2"], MANY_RESTARTS)?;
    let mut machine = bench.machine_with(&disk);
    machine.archive = Some(archive(bench, &program(bench)?, &usual, "")?);
    machine.processors = 2;
    let line = format!("{RUN} '/disk stamps' & {strikes} wait; sync; domains -q");
    let answer = bench.exec_on(machine, &line)?;
    expect(
        &answer,
        "moved by stores: 60, synced 20, set 15, at last 60\n",
    )?;
    bench.expect_clean(&disk)?;
    Ok(answer.stdout)
}

/// What `msync` has acknowledged is on the disk when the power is cut, in each page.
fn power_cut(bench: &Bench<'_>) -> Result<()> {
    const ROUNDS: u64 = 25;
    let program = program(bench)?;
    let disk = bench.small_disk("24M", &["-j", "-J", "size=4"], |_| Ok(()))?;
    let machine = machine(bench, &program, &disk, "")?;
    // Nothing is typed: both personalities read the keys.
    let mut guest = bench.begin(machine, &format!("{RUN} '/disk sync'"))?;
    let (deadline, mut said) = (Instant::now() + LIMIT, String::new());
    let told = |said: &str| -> u64 {
        let lines = said.lines().filter(|line| line.starts_with("acknowledged"));
        let numbers = lines.filter_map(|line| line.split(' ').nth(1)?.trim().parse().ok());
        numbers.max().unwrap_or(0)
    };
    while said.matches("acknowledged").count() as u64 <= ROUNDS {
        match guest.receive(deadline) {
            Event::Bytes(bytes) => said += &String::from_utf8_lossy(&bytes),
            _ => bail!("it says no more: {said}\n{}", guest.log()),
        }
    }
    guest.kill();
    while let Event::Bytes(bytes) = guest.receive(deadline) {
        said += &String::from_utf8_lossy(&bytes);
    }
    // A line that was cut in its middle counts less than it says, never more.
    let complete = said.rfind('\n').map_or("", |end| &said[..end]);
    let least = told(complete);
    ensure!(least >= ROUNDS, "{said}");
    let mended = Command::new("e2fsck").arg("-fy").arg(&disk).output()?;
    ensure!(matches!(mended.status.code(), Some(0 | 1)), "{mended:?}");
    let file = bench.host_read(&disk, "/synced")?;
    ensure!(file.len() == 40 * 4096, "{} bytes", file.len());
    for page in file.chunks(4096) {
        let round = page.first_chunk().map_or(0, |it| u64::from_le_bytes(*it));
        ensure!(round >= least, "round {round}, and {least} acknowledged");
    }
    bench.expect_clean(&disk)
}

/// Who stores to a page that has no place on a full disk gets SIGBUS then, and all before that is
/// stored; what has its place already can be changed.
fn filled(bench: &Bench<'_>) -> Result<()> {
    let program = program(bench)?;
    let disk = bench.small_disk("8M", &["-b", "1024"], |_| Ok(()))?;
    let machine = machine(bench, &program, &disk, "options = \"pages=1M\"\n")?;
    let answer = bench.exec_on(machine, &format!("{RUN} '/disk fill'; sync; echo synced"))?;
    expect(
        &answer,
        "full: -7, early 0, late 0\nwrong: 0, stored: 0 0\nroom again: 0\nsynced\n",
    )?;
    bench.expect_clean(&disk)
}

/// What cannot be mapped, or is not there, is refused as on the host.
fn refused(bench: &Bench<'_>) -> Result<()> {
    let program = program(bench)?;
    let right = there(&program, &bench.site.root, "bad")?;
    let machine = machine(bench, &program, &bench.disk()?, "")?;
    let answer = bench.exec_on(machine, &format!("{RUN} '/disk bad'"))?;
    expect(&answer, &right)
}

/// What brings parts of a file to the disk says what it says on the host.
fn parts(bench: &Bench<'_>) -> Result<()> {
    let program = program(bench)?;
    let root = bench.folder.join("host");
    fs::create_dir_all(&root)?;
    let right = there(&program, &root, "parts")?;
    let disk = bench.small_disk("12M", &["-b", "1024", "-j"], |_| Ok(()))?;
    let machine = machine(bench, &program, &disk, "")?;
    let answer = bench.exec_on(machine, &format!("{RUN} '/disk parts'; sync"))?;
    expect(&answer, &right)?;
    same_file(bench, &disk, &root, "parts")
}

/// Each call that asks for pages returns at once while the disk reads twice a second, and the pages
/// are there later.
fn ahead(bench: &Bench<'_>) -> Result<()> {
    let program = program(bench)?;
    let content = disk::noise(2 << 20, 31);
    let disk = bench.small_disk("12M", &["-b", "4096"], |root| {
        Ok(fs::write(root.join("big"), &content)?)
    })?;
    let mut machine = machine(bench, &program, &disk, "")?;
    machine.disk_reads = 2;
    let answer = bench.exec_within(2 * LIMIT, machine, &format!("{RUN} '/disk ahead'"))?;
    expect(&answer, "asked: 0, there: 4, soon: 1 1\n")
}

/// A disk that is served from here, with a large file, and where pages of that are on it.
pub(super) struct Kept {
    pub(super) content: Vec<u8>,
    pub(super) server: Server,
    pub(super) disk: PathBuf,
}

impl Kept {
    /// It keeps reads of the first block of `pages` back.
    pub(super) fn new(bench: &Bench<'_>, name: &str, pages: &[u64]) -> Result<Self> {
        let content = disk::noise(2 << 20, 32);
        let disk = bench.small_disk("12M", &["-b", "4096"], |root| {
            Ok(fs::write(root.join("big"), &content)?)
        })?;
        let socket = std::env::temp_dir().join(format!("trefoil-{name}-{}", std::process::id()));
        let server = Server::start(fs::read(&disk)?, &socket)?;
        let kept = Kept {
            content,
            server,
            disk,
        };
        for page in pages {
            kept.server.keep_back(kept.bytes_of(*page)?);
        }
        Ok(kept)
    }

    /// Where a page of the file is on the disk.
    fn bytes_of(&self, page: u64) -> Result<Range<usize>> {
        let (block_size, block) = block_of(&self.disk, "/big", page * 4096)?;
        let start = (block * block_size) as usize;
        Ok(start..start + 4096)
    }

    /// What the program says of a page.
    fn said_of(&self, page: usize) -> String {
        format!("page {page}: {}\n", self.content[page * 4096])
    }

    /// Waits until it keeps so many reads back.
    pub(super) fn wait_for(&self, reads: usize, deadline: Instant) -> Result<()> {
        while self.server.kept_back() != reads {
            let seen = self.server.kept_back();
            ensure!(Instant::now() < deadline, "{seen} reads are under way");
            thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }
}

/// What a machine prints until it has printed `text`, or to its end.
pub(super) fn said_until(guest: &mut Guest, text: &str, deadline: Instant) -> Result<String> {
    let mut said = String::new();
    while text.is_empty() || !said.contains(text) {
        match guest.receive(deadline) {
            Event::Bytes(bytes) => said += &String::from_utf8_lossy(&bytes).replace('\r', ""),
            Event::End if text.is_empty() => break,
            _ => bail!("no {text:?} in {said}\n{}", guest.log()),
        }
    }
    Ok(said)
}

/// Programs meet faults in several pages of a file, and the disk keeps the reads back until it is
/// told: all are under way at once, and who reads and writes what is there of the file, or has
/// other pages brought, is not held up. One of the pages cannot be read then: each of those who
/// wait for it gets SIGBUS once.
fn together(bench: &Bench<'_>) -> Result<()> {
    let program = program(bench)?;
    let kept = Kept::new(bench, "together", &[100, 200, 400])?;
    let mut machine = machine(bench, &program, &kept.disk, "")?;
    (machine.disk, machine.served) = (None, Some(kept.server.socket.clone()));
    let mut guest = bench.begin(machine, &format!("{RUN} '/disk together'; sync"))?;
    let deadline = Instant::now() + LIMIT;
    let said = said_until(&mut guest, "beside: 45\n", deadline)?;
    ensure!(!said.contains("page "), "{said}");
    kept.wait_for(3, deadline)?;
    kept.server.spoil(kept.bytes_of(400)?);
    kept.server.let_go();
    let said = said_until(&mut guest, "", deadline)?;
    let byte = |page: usize| kept.content[page * 4096];
    for right in [kept.said_of(100), kept.said_of(200)] {
        ensure!(said.contains(&right), "no {right:?} in {said}");
    }
    ensure!(said.matches("page 400: -7\n").count() == 2, "{said}");
    let then = format!("then: {} -7 {}\n", byte(100), byte(401));
    ensure!(said.contains(&then), "no {then:?} in {said}");
    let mut right = kept.content.clone();
    right[2 * 4096 + 50..][..100].fill(19);
    right[350 * 4096 + 7..][..6].copy_from_slice(b"middle");
    fs::write(&kept.disk, kept.server.content())?;
    ensure!(
        bench.host_read(&kept.disk, "/big")? == right,
        "/big is another"
    );
    bench.expect_clean(&kept.disk)
}

/// The shadow dies while programs wait for pages that it has begun to load, and the disk keeps the
/// reads back until it has: the programs ask the next one.
fn awaited(bench: &Bench<'_>) -> Result<()> {
    let program = program(bench)?;
    let kept = Kept::new(bench, "awaited", &[100, 200])?;
    let mut machine = machine(bench, &program, &kept.disk, "")?;
    (machine.disk, machine.served) = (None, Some(kept.server.socket.clone()));
    let line = format!(
        "{RUN} '/disk waits' & until [ -e /began ]; do sleep 0.1; done; kill-domain vfs; wait; domains -q"
    );
    let mut guest = bench.begin(machine, &line)?;
    let deadline = Instant::now() + LIMIT;
    kept.wait_for(2, deadline)?;
    let is_dead = |line: &str| line.contains("init: vfs: ") && line.ends_with("ended: killed");
    while !guest.log().lines().any(is_dead) {
        ensure!(Instant::now() < deadline, "it lives:\n{}", guest.log());
        thread::sleep(Duration::from_millis(10));
    }
    kept.server.let_go();
    let said = said_until(&mut guest, "", deadline)?;
    let then = format!("then: {}\n", kept.content[101 * 4096]);
    for right in [kept.said_of(100), kept.said_of(200), then] {
        ensure!(said.contains(&right), "no {right:?} in {said}");
    }
    expect_restarts(&said, "vfs", 1)?;
    expect_no_restart(&said, "linux")
}

/// A program meets faults on a slow disk, so that mostly a load is under way when the shadow, the
/// file system and the driver die, alone and two at once.
fn dying(bench: &Bench<'_>) -> Result<()> {
    let program = program(bench)?;
    let root = bench.folder.join("host");
    let fill = |root: &Path| -> Result<()> {
        fs::create_dir_all(root.join("text"))?;
        fs::write(root.join("text/a.txt"), disk::verses(2002))?;
        Ok(fs::write(root.join("big"), disk::noise(2 << 20, 33))?)
    };
    fill(&root)?;
    let right = there(&program, &root, "sums")?;
    let disk = bench.small_disk("12M", &["-b", "4096"], fill)?;
    let mut machine = machine(bench, &program, &disk, "")?;
    (machine.processors, machine.disk_reads) = (2, 8);
    let line = format!(
        "{RUN} '/disk sums' & sleep 0.8; kill-domain vfs; sleep 0.8; kill-domain ext2; sleep 0.6; \
         kill-domain virtio-blk; sleep 0.6; kill-domain vfs ext2; sleep 0.8; kill-domain ext2 virtio-blk; \
         wait; domains -q"
    );
    let answer = bench.exec_within(2 * LIMIT, machine, &line)?;
    expect(&answer, &right)?;
    expect_restarts_from(&answer.stdout, "vfs", 1)?;
    expect_restarts_from(&answer.stdout, "ext2", 2)?;
    expect_restarts_from(&answer.stdout, "virtio-blk", 1)?;
    expect_no_restart(&answer.stdout, "linux")?;
    bench.expect_clean(&disk)
}
