//! `cargo xtask fuzz queues`: the gate of block queues. The driver of a disk and the submitter of
//! its block queue are ended at random moments, while all that is read is checked.
//!
//! A machine is booted for each input, every other one with a disk that writes much later than it
//! is asked, so that deaths find writes under way. `domains/testing/queue-director` ends the two,
//! sees that work goes on between, and keeps the ledger of what must be on the disk;
//! `domains/testing/queue-writer` submits and checks. At the end the image is compared on the host
//! with the sum that the submitter made of the ledger's numbers. A wrong sector, an answer that is
//! an error, or comes twice or not at all, and a machine that does not come to its end are
//! findings.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::Options;
use machine::qemu::{Machine, exec_word};
use machine::session::Session;
use queuework::{REGION, SECTOR, SUM, sum};
use trefoil_gate::build;
use trefoil_gate::project::Project;

/// The name of the target.
pub const NAME: &str = "queues";

/// Processors of the machines, in turns.
const PROCESSORS: [u32; 3] = [1, 2, 4];
/// Writes a second of a slow disk. Five milliseconds each, so a batch is under way for long.
const SLOW: u32 = 200;
/// The longest that one machine may take: as a rule ten deaths take a second.
const LIMIT: Duration = Duration::from_secs(1800);
/// Findings, and the run ends.
const MOST_FINDINGS: usize = 5;
/// Waits for the director's last line.
const LINE: &str = "until dmesg | grep -q 'gate: '; do sleep 1; done";

/// Drivers that can be tried: the domain, and the devices that it claims.
const DRIVERS: [(&str, &str); 2] = [("virtio-blk", "1af4:1042,1001"), ("nvme", "class:010802")];

/// The names of the drivers that can be tried.
pub fn drivers() -> Vec<&'static str> {
    DRIVERS.iter().map(|(name, _)| *name).collect()
}

/// A system with a disk and no file system on it.
const MANIFEST: &str = r#"
[boot]
personality = "rv6"
shell = "/boot/bin/sh"
console = "console"

[domain.steward]
limits = { reserve_pages = 256 }

[domain.console]
grants = {
    ports = "kernel.ports(0x3f8,8)",
    interrupt = "kernel.interrupt(4)",
    errors = "kernel.ports(0x3e8,8)",
}
limits = { reserve_pages = 256, weight = 4096 }

[domain.bootfs]
grants = { archive = "kernel.archive" }
limits = { reserve_pages = 256 }

[domain.pci]
grants = { hardware = "kernel.hardware" }
options = "window=0xc0000000,0x10000000"
limits = { reserve_pages = 256 }

[domain.DRIVER]
grants = { device = "pci.claim(DEVICES)" }
limits = { restarts = 100000, reserve_pages = 1024, weight = 4096 }

[domain.block]
image = "block-shadow"
grants = { driver = "DRIVER.respawn" }
limits = { reserve_pages = 256 }

DOMAINS
[domain.rv6]
pass = ["exec"]
limits = { threads = 100, reserve_pages = 1024 }
grants = {
    loader = "kernel.loader",
    console = "console.respawn",
    errors = "console.errors",
    boot = "bootfs.respawn",
    monitor = "kernel.monitor",
    services = "init.services",
}

[services]
monitor = "kernel.monitor"
power = "kernel.power"
SERVICES
[program.dmesg]
services = ["monitor"]

[program.poweroff]
services = ["power"]
"#;

/// The two. What the director is told stands for `OPTIONS`.
const GATE: &str = r#"[domain.queue-director]
grants = { monitor = "kernel.monitor", control = "kernel.control", objects = "kernel.objects" }
options = "OPTIONS"

[domain.queue-writer]
grants = { device = "block", ledger = "queue-director", objects = "kernel.objects", events = "kernel.events" }
limits = { restarts = 100000 }
"#;

/// A system with a disk behind a driver and its shadow, and these domains and services besides.
pub fn manifest_for(driver: &str, domains: &str, services: &str) -> String {
    let known = DRIVERS.iter().find(|(name, _)| *name == driver);
    let text = MANIFEST.replace("DRIVER", driver);
    let text = text.replace("DEVICES", known.map_or("", |(_, devices)| devices));
    text.replace("DOMAINS", domains)
        .replace("SERVICES", services)
}

/// Puts `disk` into `machine`, for this driver.
pub fn attach(machine: &mut Machine, driver: &str, disk: PathBuf) {
    match driver {
        "nvme" => machine.nvme = Some(disk),
        _ => machine.disk = Some(disk),
    }
}

/// The command; its result is our exit status.
///
/// # Errors
/// If the system cannot be built or started.
pub fn run(project: &Project, options: &Options) -> Result<i32> {
    // Two drivers may be tried at the same time.
    let folder = project.out.join("fuzz").join(NAME).join(&options.driver);
    fs::create_dir_all(&folder)?;
    let begin = Instant::now();
    let first = options.only.unwrap_or(options.first);
    let count = options.only.map_or(options.count, |_| 1);
    let (mut tried, mut ended, mut findings) = (0, 0, Vec::new());
    while tried < count
        && begin.elapsed().as_secs() < options.seconds
        && findings.len() < MOST_FINDINGS
    {
        let index = first + tried;
        match one(project, &folder, options, index) {
            Ok(more) => ended += more,
            Err(why) => {
                let log = folder.join(format!("finding-{index}.log"));
                // There is none if the machine did not start.
                let _ = fs::copy(folder.join("kernel.log"), &log);
                let finding = format!("input {index}: {why:#}; its log: {}", log.display());
                eprintln!("{finding}");
                findings.push(finding);
            }
        }
        tried += 1;
        eprintln!(
            "{tried} machines, {ended} deaths, {} findings",
            findings.len()
        );
    }
    for finding in &findings {
        println!("{finding}");
    }
    println!(
        "seed {}, {:.0} s: {tried} machines, {ended} deaths beside a block queue, {} findings",
        options.seed,
        begin.elapsed().as_secs_f64(),
        findings.len()
    );
    Ok(i32::from(tried == 0 || !findings.is_empty()))
}

/// Boots one machine; how many domains were ended.
fn one(project: &Project, folder: &Path, options: &Options, index: u64) -> Result<u64> {
    let seed = 1 + (options.seed.wrapping_mul(0x9e37_79b9) ^ index) % 0xffff_ffff;
    let words = format!(
        "kills={} seed={seed} driver={} writer=queue-writer",
        options.kills, options.driver
    );
    let manifest = folder.join("manifest.toml");
    let gate = GATE.replace("OPTIONS", &words);
    fs::write(&manifest, manifest_for(&options.driver, &gate, ""))?;
    let built = build::build(project, Some(&manifest))?;
    let disk = folder.join("disk.img");
    fs::write(&disk, vec![0; 1 << 20])?;
    let mut machine = Machine::new(&built.kernel, folder);
    machine.archive = Some(built.archive);
    attach(&mut machine, &options.driver, disk.clone());
    machine.processors = PROCESSORS[(index % PROCESSORS.len() as u64) as usize];
    machine.disk_writes = if index.is_multiple_of(2) { SLOW } else { 0 };
    machine.words.extend([exec_word(LINE), "panic=off".into()]);
    let mut session = Session::start(&machine, false)?;
    session.end(LIMIT)?;
    let log = String::from_utf8_lossy(&fs::read(folder.join("kernel.log"))?).into_owned();
    verdict(&log, &fs::read(&disk)?)
}

/// What log and image of a machine say: how many domains were ended, if all was right.
fn verdict(log: &str, image: &[u8]) -> Result<u64> {
    let wrong: Vec<&str> = log.lines().filter(|line| line.contains("WRONG")).collect();
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    let last = log.lines().find_map(|line| line.split_once("gate: ended "));
    let (_, last) = last.context("the director does not say that it is done")?;
    let number = |word: &str| {
        let before = last.split_once(word).map_or("", |(before, _)| before);
        let number = before.rsplit(' ').next().unwrap_or_default().parse::<u64>();
        number.with_context(|| format!("no number before {word:?} in {last:?}"))
    };
    let region = image.get(..REGION as usize * SECTOR);
    let found = sum(SUM, region.context("the image is too short")?);
    let told = format!("the sum of the region is {found:016x}");
    ensure!(
        log.contains(&told),
        "the image on the host has the sum {found:016x}"
    );
    eprintln!("gate: ended {last}");
    Ok(number(" drivers")? + number(" submitters")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAST: &str =
        "queue-director: gate: ended 4 drivers and 3 submitters, 4 lives, 900 answers right";

    fn log(image: &[u8]) -> String {
        let sum = sum(SUM, &image[..REGION as usize * SECTOR]);
        format!("queue-writer: at the end the sum of the region is {sum:016x}\n{LAST}\n")
    }

    #[test]
    fn deaths_are_counted_where_all_is_right() {
        let image = vec![7; 1 << 20];
        assert_eq!(verdict(&log(&image), &image).ok(), Some(7));
    }

    #[test]
    fn what_is_wrong_is_a_finding() {
        let mut image = vec![7; 1 << 20];
        let log = log(&image);
        assert!(verdict(&format!("{log}x: WRONG: torn\n"), &image).is_err());
        assert!(verdict(LAST, &image).is_err(), "no sum");
        assert!(verdict("the sum of the region is 0", &image).is_err());
        image[100] = 8;
        assert!(verdict(&log, &image).is_err(), "another image");
    }
}
