//! A machine in QEMU: how it is put together and started. What runs then is a [`Guest`].
//!
//! Serial ports: COM1 is the terminal, COM2 gets every line of the kernel's log at once, COM3 gets
//! what the system writes to its standard error. COM2 and COM3 go to files. The system ends the
//! machine by ACPI or through the `isa-debug-exit` device, which carries a status out.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use anyhow::{Context, Result};

use trefoil_gate::tool;

pub use crate::guest::{Ended, Event, Guest};
use crate::network::Network;
use crate::{slot, stacks};

/// What the machine consists of and what it boots.
#[derive(Clone, Debug)]
pub struct Machine {
    /// The kernel.
    pub kernel: PathBuf,
    /// What it gets as its initial disk.
    pub archive: Option<PathBuf>,
    /// Words of the kernel's command line.
    pub words: Vec<String>,
    /// A raw image behind a virtio block device.
    pub disk: Option<PathBuf>,
    /// In place of `disk`: the Unix socket of a network block device.
    pub served: Option<PathBuf>,
    /// That one is behind an NVMe controller.
    pub serves_nvme: bool,
    /// The disk cannot be written.
    pub read_only: bool,
    /// Queues of requests that it has; 0: as QEMU chooses.
    pub disk_queues: u32,
    /// Bytes of its own blocks; 0: as QEMU chooses.
    pub disk_block: u32,
    /// Writes a second that it carries out, each later than asked; 0: as many as it can.
    pub disk_writes: u32,
    /// Reads likewise.
    pub disk_reads: u32,
    /// Further disks.
    pub more_disks: Vec<PathBuf>,
    /// A raw image behind an NVMe controller of its own.
    pub nvme: Option<PathBuf>,
    /// The last of the further disks, or the NVMe disk if there is one, can be pulled out
    /// ([`Guest::pull_out`]).
    pub has_slot: bool,
    /// When the first of the further disks, or the NVMe disk, fails: a file of rules for QEMU's
    /// `blkdebug`.
    pub disk_faults: Option<PathBuf>,
    /// What is behind its network device, if it has one.
    pub network: Option<Network>,
    /// Number of processors.
    pub processors: u32,
    /// Memory, as QEMU writes it: "256M".
    pub memory: String,
    /// The file that is this memory, for whoever looks into it from outside.
    pub memory_file: Option<PathBuf>,
    /// Wait for a debugger before the first instruction.
    pub debugger: bool,
    /// Where a debugger that somebody brings along may connect: the Unix socket of QEMU's stub.
    pub stub: Option<PathBuf>,
    /// In place of a socket that only [`Guest::stacks`] knows: where a person's gdb finds the stub.
    pub meeting: Option<PathBuf>,
    /// Use the host's processor directly.
    pub kvm: bool,
    /// Count instructions: the guest's clock goes one nanosecond forward with each.
    pub count_instructions: bool,
    /// While it does that and the guest is idle, the clock follows the host's. Otherwise it jumps
    /// to what the guest waits for, which it then does in vain while a device is at work.
    pub idle_takes_time: bool,
    /// The terminal is ours, with QEMU's keys (Ctrl-] x). Otherwise it is a pair of pipes.
    pub interactive: bool,
    /// The file for the kernel's log.
    pub log: PathBuf,
    /// The file for standard error.
    pub errors: PathBuf,
    /// A file in which QEMU notes each region of a device that it begins or ceases to map.
    pub mappings: Option<PathBuf>,
}

/// The word of the command line with which disks are written to that have no journal. A test makes
/// its disks itself and can spare them; a person's disk is only read, unless its owner says so.
pub const WRITES_UNJOURNALED: &str = "rw";

impl Machine {
    /// A machine with the defaults that boots `kernel`, with its log and errors in `folder`. It
    /// writes to disks without a journal, too: see [`WRITES_UNJOURNALED`].
    pub fn new(kernel: &Path, folder: &Path) -> Self {
        Machine {
            kernel: kernel.to_path_buf(),
            archive: None,
            words: words(&["debug-exit", "log=com2", WRITES_UNJOURNALED]),
            disk: None,
            served: None,
            serves_nvme: false,
            read_only: false,
            disk_queues: 0,
            disk_block: 0,
            disk_writes: 0,
            disk_reads: 0,
            more_disks: Vec::new(),
            nvme: None,
            has_slot: false,
            disk_faults: None,
            network: None,
            processors: 1,
            memory: "256M".into(),
            memory_file: None,
            debugger: false,
            stub: None,
            meeting: None,
            kvm: false,
            count_instructions: false,
            idle_takes_time: false,
            interactive: false,
            log: folder.join("kernel.log"),
            errors: folder.join("errors"),
            mappings: None,
        }
    }

    /// QEMU's arguments.
    fn arguments(&self) -> Vec<String> {
        let mut all = self.processor_and_memory();
        all.extend(self.what_it_boots());
        if self.has_slot {
            all.extend(words(&["-device", &slot::port()]));
        }
        all.extend(self.first_disk());
        all.extend(self.further_disks());
        all.extend(self.nvme_disk());
        all.extend(self.network.iter().flat_map(Network::arguments));
        all.extend(self.ports());
        if self.debugger {
            all.push("-S".into());
        }
        all.extend(self.stub.iter().flat_map(|socket| stub_of(socket)));
        if self.count_instructions {
            let sleep = if self.idle_takes_time { "on" } else { "off" };
            all.extend(words(&["-icount", &format!("shift=0,sleep={sleep}")]));
        }
        if let Some(file) = &self.mappings {
            all.extend(words(&["-trace", "pci_update_mappings_*"]));
            all.extend(words(&["-D", &file.display().to_string()]));
        }
        all
    }

    /// QEMU's arguments for somebody else's host: without the processor, which that one chooses by
    /// what it has, and without a firmware that its QEMU may lack.
    pub fn portable(&self) -> Vec<String> {
        const HERE: [&str; 3] = ["-cpu", "-accel", "-bios"];
        let mut words = self.arguments().into_iter();
        let mut kept = Vec::new();
        while let Some(word) = words.next() {
            match HERE.contains(&&*word) {
                true => drop(words.next()),
                false => kept.push(word),
            }
        }
        kept
    }

    fn processor_and_memory(&self) -> Vec<String> {
        let (accelerator, model) = match self.kvm {
            true => ("kvm", "host"),
            false => ("tcg", "max"),
        };
        let mut all = match &self.memory_file {
            None => words(&["-machine", "q35"]),
            Some(file) => {
                let (size, file) = (&self.memory, escaped(file));
                let memory =
                    format!("memory-backend-file,id=ram,size={size},mem-path={file},share=on");
                words(&["-machine", "q35,memory-backend=ram", "-object", &memory])
            }
        };
        all.extend(words(&["-cpu", model]));
        all.extend(words(&["-nodefaults", "-no-user-config"]));
        all.extend(words(&["-display", "none", "-no-reboot"]));
        let processors = self.processors.to_string();
        all.extend(words(&["-m", &self.memory, "-smp", &processors]));
        all.extend(words(&["-accel", accelerator]));
        all
    }

    fn what_it_boots(&self) -> Vec<String> {
        // The firmware leaves devices alone that it does not boot from. Otherwise it takes so much
        // memory for several disks that there is none left for our archive where QEMU puts it.
        let mut all = words(&["-boot", "strict=on"]);
        // Nor does the quick one number what is behind a port.
        if has_quick_firmware() && !self.has_slot {
            all.extend(words(&["-bios", QUICK_FIRMWARE]));
        }
        all.extend(words(&["-kernel", &self.kernel.display().to_string()]));
        all.extend(words(&["-append", &self.words.join(" ")]));
        if let Some(archive) = &self.archive {
            all.extend(words(&["-initrd", &archive.display().to_string()]));
        }
        all
    }

    fn first_disk(&self) -> Vec<String> {
        let source = match (&self.disk, &self.served) {
            (Some(disk), _) => format!("file={},format=raw", escaped(disk)),
            (None, Some(socket)) => {
                let server = "driver=raw,file.driver=nbd,file.server.type=unix,file.server.path";
                format!("{server}={}", escaped(socket))
            }
            (None, None) => return Vec::new(),
        };
        let read_only = if self.read_only { ",readonly=on" } else { "" };
        if self.serves_nvme {
            let drive = format!("{source},if=none,rerror=report,werror=report{read_only}");
            return nvme(&drive, "");
        }
        let mut settings = match self.disk_queues {
            0 => String::new(),
            queues => format!(",num-queues={queues}"),
        };
        if self.disk_block > 0 {
            let block = self.disk_block;
            settings += &format!(",logical_block_size={block},physical_block_size={block}");
        }
        let slow = self.slowness();
        disk(
            &format!("{source},if=none{read_only}{slow}"),
            "disk",
            &settings,
        )
    }

    /// What makes the first disk slow, or the NVMe disk.
    fn slowness(&self) -> String {
        let mut slow = String::new();
        for (what, limit) in [("write", self.disk_writes), ("read", self.disk_reads)] {
            if limit > 0 {
                slow += &format!(",throttling.iops-{what}={limit}");
            }
        }
        slow
    }

    fn further_disks(&self) -> Vec<String> {
        let mut all = Vec::new();
        for (number, file) in (2..).zip(&self.more_disks) {
            let source = self.failing(file, number == 2);
            let is_last = number == self.more_disks.len() + 1;
            let bus = self.bus(is_last && self.nvme.is_none());
            all.extend(disk(&source, &format!("disk{number}"), bus));
        }
        all
    }

    fn nvme_disk(&self) -> Vec<String> {
        let Some(file) = &self.nvme else {
            return Vec::new();
        };
        let drive = self.failing(file, true) + &self.slowness();
        nvme(&drive, self.bus(true))
    }

    /// Which bus a device is on, as a setting of it: the slot, if it `may_go`.
    fn bus(&self, may_go: bool) -> &'static str {
        match self.has_slot && may_go {
            true => ",bus=pullable",
            false => "",
        }
    }

    /// A raw image that reports errors to the system; with those of the rules, if it `may_fail`.
    fn failing(&self, file: &Path, may_fail: bool) -> String {
        let file = escaped(file);
        let source = match self.disk_faults.as_ref().filter(|_| may_fail) {
            None => format!("file={file}"),
            Some(rules) => format!(
                "file.driver=blkdebug,file.config={},file.image.driver=file,file.image.filename={file}",
                escaped(rules)
            ),
        };
        format!("{source},format=raw,if=none,rerror=report,werror=report")
    }

    /// The serial ports, and the port that carries a status out.
    fn ports(&self) -> Vec<String> {
        let mut all = match self.interactive {
            // Ctrl-A, QEMU's own choice, is the start of the line to whoever edits one.
            true => words(&["-serial", "mon:stdio", "-echr", ESCAPE]),
            false => {
                let mut all = words(&["-chardev", "stdio,id=terminal,signal=off"]);
                all.extend(words(&["-serial", "chardev:terminal"]));
                if !self.has_slot {
                    all.extend(words(&["-monitor", "none"]));
                }
                all
            }
        };
        for file in [&self.log, &self.errors] {
            all.extend(words(&["-serial", &format!("file:{}", escaped(file))]));
        }
        all.extend(words(&[
            "-device",
            "isa-debug-exit,iobase=0xf4,iosize=0x04",
        ]));
        all
    }

    /// The command that runs the machine. It is killed when we end, whatever the reason.
    fn command(&self) -> Result<Command> {
        let qemu = tool::need("qemu-system-x86_64", "qemu-system-x86")?;
        let mut words = Vec::new();
        if let Some(setpriv) = tool::find("setpriv") {
            words.extend([setpriv.into(), "--pdeathsig".into(), "KILL".into()]);
        }
        if let Some(process) = self.network.as_ref().and_then(Network::namespace) {
            let nsenter = tool::need("nsenter", "util-linux")?;
            let of_process = format!("--net=/proc/{process}/ns/net");
            words.extend([nsenter.into(), of_process.into()]);
        }
        words.push(OsString::from(qemu));
        let mut command = Command::new(words.remove(0));
        command.args(words);
        command.args(self.arguments());
        Ok(command)
    }

    /// Starts the machine.
    ///
    /// # Errors
    /// If QEMU cannot be started or a file cannot be made.
    pub fn start(&self) -> Result<Guest> {
        for file in [&self.log, &self.errors] {
            fs::create_dir_all(file.parent().unwrap_or(Path::new(".")))?;
            File::create(file).with_context(|| format!("cannot write {}", file.display()))?;
        }
        // Who has a stub of their own would find it taken.
        let is_free = self.stub.is_none();
        let stub = is_free.then(|| self.meeting.clone().unwrap_or_else(stacks::socket));
        let mut command = self.command()?;
        command.args(stub.iter().flat_map(|socket| stub_of(socket)));
        let slot = self.has_slot.then(stacks::socket);
        if let Some(monitor) = &slot {
            let monitor = format!("unix:{},server=on,wait=off", escaped(monitor));
            command.args(["-monitor", &monitor]);
        }
        if !self.interactive {
            command.stdin(Stdio::piped()).stdout(Stdio::piped());
        }
        let child = command.spawn().context("cannot start QEMU")?;
        let mut guest = Guest::of(child, &self.kernel, &self.log, &self.errors);
        guest.stub = stub.map(|socket| (socket, self.kernel.clone()));
        guest.is_debugged = self.debugger;
        guest.slot = slot;
        Ok(guest)
    }
}

/// The code of Ctrl-], behind which QEMU listens itself.
const ESCAPE: &str = "29";

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| word.to_string()).collect()
}

/// A stub for a debugger behind the Unix socket `socket`.
fn stub_of(socket: &Path) -> Vec<String> {
    let socket = format!("socket,path={},server=on,wait=off,id=stub", escaped(socket));
    words(&["-chardev", &socket, "-gdb", "chardev:stub"])
}

/// A virtio block device called `name` with these settings, and what is behind it.
fn disk(drive: &str, name: &str, settings: &str) -> Vec<String> {
    let drive = format!("{drive},id={name}");
    let device = format!("virtio-blk-pci,drive={name},disable-legacy=on{settings}");
    words(&["-drive", &drive, "-device", &device])
}

/// An NVMe controller with one namespace and these settings, and what is behind it.
fn nvme(drive: &str, settings: &str) -> Vec<String> {
    let drive = format!("{drive},id=nvme");
    let device = format!("nvme,drive=nvme,serial=trefoil{settings}");
    words(&["-drive", &drive, "-device", &device])
}

/// A firmware for kernels that QEMU loads itself. The usual one looks for other things to boot,
/// which takes longer than our kernel does.
const QUICK_FIRMWARE: &str = "qboot.rom";

/// Whether QEMU has [`QUICK_FIRMWARE`]; not all packages of it do.
fn has_quick_firmware() -> bool {
    static FOUND: LazyLock<bool> = LazyLock::new(|| {
        let Some(qemu) = tool::find("qemu-system-x86_64") else {
            return false;
        };
        let folders = Command::new(qemu).args(["-L", "help"]).output();
        let folders = folders.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        let folders = folders.unwrap_or_default();
        let mut folders = folders.lines().map(Path::new);
        folders.any(|folder| folder.join(QUICK_FIRMWARE).is_file())
    });
    *FOUND
}

/// A file name in one of QEMU's comma-separated options.
pub(crate) fn escaped(file: &Path) -> String {
    file.display().to_string().replace(',', ",,")
}

/// The word of the kernel's command line that makes the system run `line` and end.
pub fn exec_word(line: &str) -> String {
    let mut word = String::from("exec=");
    for byte in line.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'/' => {
                word.push(byte.into())
            }
            _ => word += &format!("%{byte:02X}"),
        }
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_is_put_together() {
        let mut machine = Machine::new(Path::new("/o/trefoil"), Path::new("/o/r,1"));
        machine.disk = Some("/d/a,b.img".into());
        machine.read_only = true;
        machine.disk_queues = 2;
        machine.disk_writes = 300;
        machine.disk_reads = 20;
        let text = machine.arguments().join(" ");
        assert!(text.contains("-drive file=/d/a,,b.img,format=raw,if=none,readonly=on,throttling.iops-write=300,throttling.iops-read=20,id=disk"));
        assert!(text.contains("drive=disk,disable-legacy=on,num-queues=2"));
        assert!(text.contains("-serial chardev:terminal -monitor none -serial file:/o/r,,1/kernel.log -serial file:/o/r,,1/errors"));
        assert!(text.contains("-append debug-exit log=com2") && !text.contains("-initrd"));
        machine.interactive = true;
        assert!(machine.arguments().join(" ").contains("-serial mon:stdio"));
    }
}
