//! `cargo xtask run`: boots the system and puts its terminal here. Which system, [`system`] says.
//!
//! On a terminal, QEMU takes it over: Ctrl-] x leaves, all else goes to the system. Without one,
//! the lines of standard input are typed at the system's prompts, and it is powered off at their
//! end. With `--exec LINE` the system runs one shell line, and we end with its status.

mod dumps;
mod statics;
mod system;
mod typed;

use std::fs::{self, File};
use std::io::{self, IsTerminal, Read, Seek, SeekFrom, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use machine::debian;
use machine::disk;
use machine::network::{self, Forward, Network};
use machine::nvme;
use machine::preflight;
use machine::qemu::{Ended, Event, Guest, Machine, WRITES_UNJOURNALED, exec_word};
use machine::session::{PROMPT, ROOT_PROMPT};
use machine::stacks;
use system::System;
use trefoil_gate::build;
use trefoil_gate::project::Project;
use trefoil_gate::{setup, tool};

/// The exit status when the system did not end in time.
pub const TIMED_OUT: i32 = 124;
/// The exit status when the system ended without one, or the kernel stopped itself.
pub const NO_STATUS: i32 = 125;

pub(crate) const DEFAULT_TIMEOUT: u64 = 600;
const A_DAY: u64 = 24 * 3600;
/// The manifest for Debian's programs.
const LINUX_MANIFEST: &str = "images/linux.toml";

/// How to boot.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Options {
    /// Run one shell line, print what it prints, power off, and end with its status
    #[arg(long, value_name = "LINE")]
    pub exec: Option<String>,
    /// Use this raw disk image instead of the default one: the root, with Debian's programs; with
    /// --rv6 any ext2 file system
    #[arg(long, value_name = "FILE", conflicts_with = "no_disk")]
    pub disk: Option<PathBuf>,
    /// One more disk, for `mount` (up to three times), of --rv6
    #[arg(long, value_name = "FILE")]
    pub disk2: Vec<PathBuf>,
    /// Boot without a disk, which --rv6 can
    #[arg(long)]
    pub no_disk: bool,
    /// Boot from this raw disk image, behind an NVMe controller in place of a virtio disk
    #[arg(long, value_name = "FILE", conflicts_with_all = ["disk", "disk2", "no_disk", "read_only", "manifest", "statics"])]
    pub nvme: Option<PathBuf>,
    /// Do not let the system write to the disk
    #[arg(long)]
    pub read_only: bool,
    /// Let the system write also to disks without a journal; otherwise it only reads them
    #[arg(long)]
    pub rw: bool,
    /// Number of processors, 1 to 8
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=8))]
    pub smp: u32,
    /// Memory, such as 512M or 1.5G; 1G unless said, with --rv6 or a manifest 256M
    #[arg(long, value_name = "SIZE", value_parser = preflight::memory)]
    pub memory: Option<String>,
    /// Stop before the first instruction and wait for `cargo xtask gdb` in another terminal
    #[arg(long)]
    pub gdb: bool,
    /// Let the host's processor run the system directly
    #[arg(long)]
    pub kvm: bool,
    /// Boot with this manifest
    #[arg(long, value_name = "FILE")]
    pub manifest: Option<PathBuf>,
    /// Run static Linux programs in ring 3: busybox's shell, on the files of the boot archive and,
    /// with --disk, those of a disk below /disk
    #[arg(long = "static", conflicts_with_all = ["manifest", "disk2"])]
    pub statics: bool,
    /// Run Debian's programs, as without any flag, and nothing else where that cannot be: the root
    /// is a disk with its packages (`cargo xtask debian` makes such ones), the shell its bash
    #[arg(long, conflicts_with_all = ["manifest", "disk2", "no_disk", "statics", "program"])]
    pub linux: bool,
    /// Run Trefoil's own shell and programs
    #[arg(long, conflicts_with_all = ["manifest", "statics", "linux", "program"])]
    pub rv6: bool,
    /// With Debian's programs: at the end, list which of them asked for which system call that is
    /// not there
    #[arg(long, conflicts_with_all = ["manifest", "statics", "rv6", "disk2", "no_disk"])]
    pub missing: bool,
    /// With --static: this static program in place of the host's busybox. With --manifest: put this
    /// static program into the archive, as `busybox`
    #[arg(long, value_name = "FILE")]
    pub program: Option<PathBuf>,
    /// Boot without a network device
    #[arg(long, conflicts_with_all = ["forward", "tap", "address"])]
    pub no_net: bool,
    /// Let this port of the host's loopback address lead to the system's port GUEST (TCP)
    #[arg(long, value_name = "HOST:GUEST", conflicts_with = "tap")]
    pub forward: Vec<Forward>,
    /// Put the network device behind this tap interface, in place of QEMU's user network
    #[arg(long, value_name = "IF", value_parser = network::interface)]
    pub tap: Option<String>,
    /// The system's address, as 10.0.0.2/24 or 10.0.0.2/24,ROUTER; DHCP tells it unless said
    #[arg(long, value_name = "ADDRESS")]
    pub address: Option<String>,
    /// Show the kernel's log on standard error
    #[arg(long)]
    pub log: bool,
    /// End the system after so many seconds, with status 124 (without a terminal: 600)
    #[arg(long, value_name = "SECONDS")]
    pub timeout: Option<u64>,
}

impl Options {
    /// What is behind the network device.
    fn network(&self) -> Option<Network> {
        let user = || Network::User {
            is_open: true,
            forwards: self.forward.clone(),
        };
        let wanted = !self.no_net && !self.statics;
        let tap = |name| Network::Tap {
            name,
            namespace: None,
        };
        wanted.then(|| self.tap.clone().map_or_else(user, tap))
    }
}

/// The command; its result is our exit status.
///
/// # Errors
/// If the system cannot be built or booted.
pub fn run(project: &Project, options: &Options) -> Result<i32> {
    run_with(project, options, |_| Ok(()))
}

/// As [`run`], on a machine that `change` may change before it is started.
///
/// # Errors
/// As [`run`], and those of `change`.
pub(crate) fn run_with(
    project: &Project,
    options: &Options,
    change: impl FnOnce(&mut Machine) -> Result<()>,
) -> Result<i32> {
    setup::machine()?;
    if options.kvm {
        preflight::expect_kvm()?;
    }
    let claimed = claim_disks(options)?;
    let (system, made) = system::choose(options, || debian::default(project))?;
    let chosen = manifest(project, options, system)?;
    let built = build::build(project, chosen.as_deref())?;
    let mut machine = Machine::new(&built.kernel, &project.out);
    machine.archive = Some(match (&options.program, &options.manifest) {
        (program, _) if system == System::Static => {
            let of_statics = chosen.as_deref().context("they have a manifest")?;
            statics::archive(project, of_statics, program.as_deref())?
        }
        (Some(program), Some(own)) => statics::archive(project, own, Some(program))?,
        (Some(_), None) => bail!("--program goes with --static or --manifest"),
        (None, _) => built.archive,
    });
    let default;
    (machine.disk, default) = chosen_disk(project, options, system, made)?;
    machine.more_disks.clone_from(&options.disk2);
    machine.nvme.clone_from(&options.nvme);
    machine.network = options.network();
    let address = options.address.iter();
    machine
        .words
        .extend(address.map(|it| format!("address={it}")));
    let memory = || {
        if system == System::Debian {
            "1G"
        } else {
            "256M"
        }
        .into()
    };
    (machine.processors, machine.memory) =
        (options.smp, options.memory.clone().unwrap_or_else(memory));
    (machine.debugger, machine.kvm, machine.read_only) =
        (options.gdb, options.kvm, options.read_only);
    if options.read_only {
        machine.words.push("ro".into());
    }
    if !options.rw {
        machine.words.retain(|word| word != WRITES_UNJOURNALED);
    }
    if options.kvm && !has_virtualisation(&fs::read_to_string("/proc/cpuinfo").unwrap_or_default())
    {
        eprintln!(
            "warning: this processor shows neither vmx nor svm; KVM may be very slow or fail"
        );
    }
    let place;
    (machine.meeting, place) = debugger_meets(project, options.gdb)?.unzip();
    let apart = match &place {
        Some(_) => None,
        None => Some(logs_apart(project, &mut machine)?),
    };
    change(&mut machine)?;
    let log = machine.log.clone();
    if options.missing {
        machine.words.push("missing".into());
    }
    let watch = dumps::watch(project, chosen.as_deref(), options.gdb, &mut machine)?;
    // Nobody knows how long a person thinks.
    let usual = if options.gdb { A_DAY } else { DEFAULT_TIMEOUT };
    let limit = Duration::from_secs(options.timeout.unwrap_or(usual));
    let on_terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
    let ended = match &options.exec {
        Some(line) => exec(machine, line, limit, options.log),
        None if on_terminal => interactive(machine, options),
        None => {
            let prompt = match system {
                System::Debian => ROOT_PROMPT,
                _ => PROMPT,
            };
            typed::type_lines(machine, prompt, limit, options.log)
        }
    };
    dumps::told(watch);
    if options.missing {
        tell_missing(&log);
    }
    drop((claimed, default, place));
    if let Some(folder) = apart.filter(|_| ended.is_ok()) {
        let _ = fs::remove_dir_all(folder);
    }
    match ended {
        Err(error) if options.kvm => bail!("{error:#}; {}", preflight::KVM_FAILED),
        ended => ended,
    }
}

/// Says which calls programs have asked for that are not there, as the kernel's log has them.
fn tell_missing(log: &Path) {
    let text = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines = text
        .lines()
        .filter_map(|line| line.split_once("] linux: missing: "));
    let missing: Vec<_> = lines.map(|(_, rest)| rest).collect();
    match missing.is_empty() {
        true => eprintln!("no system call was missing"),
        false => eprintln!("system calls that are not there:"),
    }
    for line in missing {
        eprintln!("  {line}");
    }
}

/// The manifest of the system, with another driver where the disk is an NVMe one; `None`: the
/// default one.
fn manifest(project: &Project, options: &Options, system: System) -> Result<Option<PathBuf>> {
    let (name, file) = match system {
        System::Own => return Ok(options.manifest.clone()),
        System::Static => return statics::manifest(project, options.disk.is_some()).map(Some),
        System::Debian => (LINUX_MANIFEST, "nvme-linux.toml"),
        System::Rv6 => ("images/default.toml", "nvme.toml"),
    };
    if options.nvme.is_none() {
        let own = system == System::Debian;
        return Ok(own.then(|| project.root.join(name)));
    }
    let text = fs::read_to_string(project.root.join(name))?;
    let file = project.out.join(file);
    build::write_whole(&file, nvme::manifest(&text)?.as_bytes())?;
    Ok(Some(file))
}

/// Gives the machine a folder of its own for its logs, since another one writes to the usual place:
/// how a machine has ended is told by its log.
fn logs_apart(project: &Project, machine: &mut Machine) -> Result<PathBuf> {
    let folder = project.out.join(format!("run-{}", std::process::id()));
    fs::create_dir_all(&folder).context("cannot make a folder for the log")?;
    machine.log = folder.join("kernel.log");
    machine.errors = folder.join("errors");
    Ok(folder)
}

/// Where `cargo xtask gdb` finds the machine, and the claim to that place. It waits there if
/// `is_wanted`; else whoever comes at any time is served, unless another machine has the place.
fn debugger_meets(project: &Project, is_wanted: bool) -> Result<Option<(PathBuf, File)>> {
    let meeting = stacks::meeting(&project.out);
    // Of two that start at the same time, neither has a socket yet.
    let place = File::create(project.out.join("gdb.lock")).context("cannot claim gdb's place")?;
    let is_free = place.try_lock().is_ok() && !stacks::is_taken(&meeting);
    if is_wanted {
        if !is_free {
            bail!("another machine waits at {}", meeting.display());
        }
        tool::need("gdb", "gdb")?;
        eprintln!("waiting for `cargo xtask gdb`, to be typed in another terminal");
    }
    Ok(is_free.then_some((meeting, place)))
}

/// `cargo xtask gdb`: gdb, in this terminal, on the machine that `cargo xtask run` has started in
/// another.
///
/// # Errors
/// If there is no such machine, or no gdb; otherwise gdb runs in our place.
pub fn gdb(project: &Project, arguments: &[String]) -> Result<i32> {
    let gdb = tool::need("gdb", "gdb")?;
    let meeting = stacks::meeting(&project.out);
    if !stacks::is_taken(&meeting) {
        bail!("no machine runs: `cargo xtask run`, or `run --gdb` for one that waits for you");
    }
    let mut command = stacks::debugger(&gdb, &meeting, &project.kernel());
    // In our place, so that Ctrl-C stops the machine and not us.
    Err(command.args(arguments).exec().into())
}

/// `cargo xtask dump FILE`: gdb, in this terminal, on a dump.
///
/// # Errors
/// If there is no gdb, or no file; otherwise gdb runs in our place.
pub fn dump(project: &Project, file: &Path, arguments: &[String]) -> Result<i32> {
    let gdb = tool::need("gdb", "gdb")?;
    File::open(file).with_context(|| format!("cannot read {}", file.display()))?;
    let mut command = stacks::reader(&gdb, file, &project.kernel());
    Err(command.args(arguments).exec().into())
}

/// The disks that were named: ours as long as the result lives, and fit to be mounted.
fn claim_disks(options: &Options) -> Result<Vec<File>> {
    let first = options.disk.iter().chain(&options.nvme);
    let first = first.map(|file| (file, options.read_only));
    let more = options.disk2.iter().map(|file| (file, false));
    let mut claimed = Vec::new();
    for (file, read_only) in first.chain(more) {
        claimed.push(preflight::claim(file, read_only)?);
    }
    let first = options.disk.as_ref().or(options.nvme.as_ref());
    if let (Some(file), Some(disk)) = (first, claimed.first()) {
        preflight::expect_mountable(file, disk, options.read_only)?;
    }
    let named = options.disk.iter().chain(&options.nvme);
    for file in named.chain(&options.disk2) {
        // Of a disk that is no file system somebody else will tell.
        let only_reads = !options.rw && !options.read_only;
        if only_reads && matches!(disk::has_journal(file), Ok(false)) {
            eprintln!(
                "note: {0} has no journal and is only read; `tune2fs -j {0}` adds one, `--rw` writes to it without",
                file.display()
            );
        }
    }
    Ok(claimed)
}

/// The first disk. The default one is claimed here, before it is brought up to date; `made` is that
/// of Debian's programs.
fn chosen_disk(
    project: &Project,
    options: &Options,
    system: System,
    made: Option<PathBuf>,
) -> Result<(Option<PathBuf>, Option<File>)> {
    if let Some(file) = &options.disk {
        return Ok((Some(file.clone()), None));
    }
    if options.no_disk || system == System::Static || options.nvme.is_some() {
        return Ok((None, None));
    }
    if let Some(file) = made {
        let claimed = preflight::claim(&file, options.read_only)?;
        return Ok((Some(file), Some(claimed)));
    }
    let present = disk::default_file(project);
    let claimed = match present.exists() {
        true => Some(preflight::claim(&present, options.read_only)?),
        false => None,
    };
    let file = disk::default(project)?;
    let claimed = match claimed {
        None => preflight::claim(&file, options.read_only)?,
        Some(claimed) => claimed,
    };
    Ok((Some(file), Some(claimed)))
}

fn has_virtualisation(cpuinfo: &str) -> bool {
    cpuinfo
        .split_whitespace()
        .any(|word| matches!(word, "vmx" | "svm"))
}

/// Bytes of command line that the kernel takes. A much longer one does not even reach it whole.
const LONGEST_COMMAND_LINE: usize = 2000;

fn exec(mut machine: Machine, line: &str, limit: Duration, show_log: bool) -> Result<i32> {
    machine.words.push(exec_word(line));
    machine.words.push("panic=off".into());
    let length = machine.words.join(" ").len();
    if length > LONGEST_COMMAND_LINE {
        bail!(
            "the line is too long: with its special characters encoded it takes {length} bytes of the kernel's \
             command line, which holds {LONGEST_COMMAND_LINE}; put it into a script on the disk"
        );
    }
    attend(&machine, limit, show_log)
}

/// Starts a machine that nobody types at, and copies what it prints until it ends; its status.
///
/// # Errors
/// If it cannot be started.
pub(crate) fn attend(machine: &Machine, limit: Duration, show_log: bool) -> Result<i32> {
    let mut guest = machine.start()?;
    guest.close_input();
    let mut followers = followers(&guest, show_log);
    let deadline = Instant::now() + limit;
    let mut out = io::stdout();
    loop {
        match guest.receive(deadline.min(Instant::now() + Duration::from_millis(20))) {
            Event::Bytes(bytes) => out.write_all(&bytes).and_then(|()| out.flush())?,
            Event::End => break,
            Event::Silence if Instant::now() >= deadline => break,
            Event::Silence => (),
        }
        followers.copy(&guest);
    }
    let ended = guest.wait(Some(
        deadline.max(Instant::now() + Duration::from_millis(500)),
    ))?;
    followers.copy(&guest);
    report(ended, &guest, limit)
}

fn followers(guest: &Guest, show_log: bool) -> Followers {
    Followers {
        errors: File::open(&guest.errors).ok(),
        show_log,
    }
}

/// The exit status for how the machine ended, with words on standard error if it is no proper end.
fn report(ended: Option<Ended>, guest: &Guest, limit: Duration) -> Result<i32> {
    let log = guest.log.display();
    match ended {
        Some(Ended::Status(status)) => Ok(status),
        Some(Ended::Off) => {
            eprintln!("the system ended without a status; its log is in {log}");
            Ok(NO_STATUS)
        }
        Some(Ended::KernelPanic) => {
            eprintln!(
                "the kernel stopped itself; its log is in {log}:\n{}",
                tail(&guest.log(), 20)
            );
            Ok(NO_STATUS)
        }
        Some(Ended::Failed(code)) => bail!("QEMU failed (exit code {code})"),
        Some(Ended::Killed(signal)) => bail!("QEMU was ended by signal {signal}"),
        None => {
            eprintln!(
                "no end after {} s: the system was stopped; the end of its log ({log}):",
                limit.as_secs()
            );
            eprintln!("{}", tail(&guest.log(), 10));
            let stacks = guest.stacks();
            if !stacks.is_empty() {
                eprint!("where it stood:\n{stacks}");
            }
            Ok(TIMED_OUT)
        }
    }
}

fn tail(text: &str, count: usize) -> String {
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

fn interactive(mut machine: Machine, options: &Options) -> Result<i32> {
    machine.interactive = true;
    machine.words.extend(terminal_word());
    eprintln!(
        "Ctrl-] x leaves at once, the command `poweroff` after writing everything to the disk. The kernel's log is in {}",
        machine.log.display()
    );
    let terminal =
        tool::output(Command::new("stty").args(["-F", "/dev/tty", "-g"])).unwrap_or_default();
    let mut guest = machine.start()?;
    let deadline = options
        .timeout
        .map(|limit| Instant::now() + Duration::from_secs(limit));
    let mut followers = followers(&guest, options.log);
    let ended = loop {
        let next = Instant::now() + Duration::from_millis(50);
        if let Some(ended) =
            guest.wait(Some(deadline.map_or(next, |deadline| deadline.min(next))))?
        {
            break Some(ended);
        }
        followers.copy(&guest);
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            break None;
        }
    };
    if ended.is_none() {
        guest.kill();
        let _ = Command::new("stty")
            .args(["-F", "/dev/tty", terminal.trim()])
            .status();
    }
    if ended == Some(Ended::Off) {
        return Ok(0);
    }
    report(
        ended,
        &guest,
        Duration::from_secs(options.timeout.unwrap_or_default()),
    )
}

/// The word of the kernel's command line that tells how large this terminal is.
fn terminal_word() -> Option<String> {
    let size = tool::output(Command::new("stty").args(["-F", "/dev/tty", "size"])).ok()?;
    let (lines, columns) = size.trim().split_once(' ')?;
    let is_number = |text: &str| text.parse::<u16>().is_ok_and(|number| number > 0);
    (is_number(lines) && is_number(columns)).then(|| format!("terminal={columns}x{lines}"))
}

/// Copies to our standard error what QEMU complains of and, if wanted, what the kernel logs.
struct Followers {
    errors: Option<File>,
    show_log: bool,
}

impl Followers {
    fn copy(&mut self, guest: &Guest) {
        let mut bytes = Vec::new();
        if let Some(file) = &mut self.errors {
            let position = file.stream_position().unwrap_or_default();
            if file.read_to_end(&mut bytes).is_err() {
                let _ = file.seek(SeekFrom::Start(position));
            }
        }
        if self.show_log {
            bytes.extend(guest.new_log().into_bytes());
        }
        // Nothing can be done for a reader that has gone away.
        let _ = io::stderr().write_all(&bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_machines_that_start_one_gets_gdbs_place() {
        let out = std::env::temp_dir().join(format!("trefoil-run-{}", std::process::id()));
        fs::create_dir_all(&out).expect("there is room");
        let project = Project {
            root: out.clone(),
            target: out.clone(),
            out: out.clone(),
        };
        let first = debugger_meets(&project, false).expect("it can be claimed");
        assert!(first.is_some());
        let second = debugger_meets(&project, false).expect("it can be asked for");
        assert!(second.is_none());
        assert!(debugger_meets(&project, true).is_err());
        drop(first);
        let third = debugger_meets(&project, false).expect("it can be claimed");
        assert!(third.is_some());
        fs::remove_dir_all(out).expect("it is ours");
    }

    #[test]
    fn a_line_survives_the_command_line() {
        assert_eq!(exec_word("ls -l /"), "exec=ls%20-l%20/");
        assert_eq!(
            exec_word("echo 'a%b' \"é\""),
            "exec=echo%20%27a%25b%27%20%22%C3%A9%22"
        );
    }

    #[test]
    fn virtualisation_is_seen_in_the_flags() {
        assert!(has_virtualisation("flags : fpu vmx sse"));
        assert!(!has_virtualisation("model name : svmx"));
    }
}
