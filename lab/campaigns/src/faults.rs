//! `cargo xtask faults`: a campaign of faults against a driver (or the shadow in front of it),
//! under clients that check every result.
//!
//! The plan is drawn here, from the seed and the numbers of the runs; the kernel carries it out
//! (`lab/faults`), on the hosted platform or in QEMU, and gives back one line a run. A kernel that
//! ends or stands still is started again behind the run that did it.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use abi::image::Image;
use anyhow::{Context, Result, bail};
use faults::plan::{self, Instruction};
use iced_x86::{Code, Decoder, DecoderOptions};
use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, elf};

use crate::hosted;
use crate::ledger::{self, Summary};
use crate::running::{Running, Said};
use machine::disk;
use machine::qemu::Machine;
use trefoil_gate::project::Project;
use trefoil_gate::{build, tool};

/// What to do.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Options {
    /// Decides every fault, together with the number of its run
    #[arg(long, default_value_t = 1, value_name = "S")]
    pub seed: u64,
    /// How many faults
    #[arg(long, default_value_t = 1000, value_name = "N")]
    pub runs: u64,
    /// The number of the first run; with `--runs 1` to do one run again
    #[arg(long, default_value_t = 0, value_name = "NUMBER")]
    pub first: u64,
    /// What is to fail: the driver, the shadow in front of it, files in memory, who keeps them, or
    /// in QEMU alone a file system on a disk, the driver of its disk, the shadow between those two
    /// (`disk-shadow`), the one in front of the file system (`vfs`), or who keeps what that has
    /// (`vfs-keep`)
    #[arg(long, default_value = "frail-disk", value_parser = ["frail-disk", "block-shadow", "ramfs", "keep", "ext2", "virtio-blk", "nvme", "disk-shadow", "vfs", "vfs-keep"])]
    pub domain: String,
    /// Where: a Linux process or QEMU
    #[arg(long, default_value = "hosted", value_parser = ["hosted", "bare"])]
    pub platform: String,
    /// Crash and restart the driver so many times instead, and show memory and times
    #[arg(long, value_name = "N", conflicts_with_all = ["runs", "first", "domain"])]
    pub cycles: Option<u64>,
    /// Print the summary as a JSON object
    #[arg(long)]
    pub json: bool,
    /// Write the ledger to this file instead of target/trefoil/faults/ledger-*.jsonl
    #[arg(long, value_name = "FILE")]
    pub ledger: Option<PathBuf>,
    /// Stop after so many minutes, however many runs were done
    #[arg(long, default_value_t = 30, value_name = "MINUTES")]
    pub minutes: u64,
    /// Processors of the machine in QEMU
    #[arg(long, default_value_t = 2, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=8))]
    pub smp: u32,
}

/// What needs a disk.
const QEMU_ALONE: [&str; 6] = [
    "ext2",
    "virtio-blk",
    "nvme",
    "disk-shadow",
    "vfs",
    "vfs-keep",
];
/// Where the campaign finds that disk.
const IMAGE: &str = "faults/ext2.img";
/// Longest silence of a kernel that is at work.
const SILENCE: Duration = Duration::from_secs(150);
/// Kernels that may be lost in one campaign.
const MOST_LOST: usize = 20;

/// The command; its status: 0 if everything was as it must be.
///
/// # Errors
/// If the campaign cannot be carried out.
pub fn faults(project: &Project, options: &Options) -> Result<i32> {
    let folder = project.out.join("faults");
    fs::create_dir_all(&folder)?;
    let kernel = Kernel::build(project, options, &folder)?;
    if let Some(count) = options.cycles {
        return cycles(&kernel, count, options);
    }
    let name = format!(
        "ledger-{}-{}-{}.jsonl",
        options.platform, options.seed, options.runs
    );
    let path = options.ledger.clone().unwrap_or(folder.join(name));
    let ledger = File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
    let image = match options.domain.as_str() {
        "disk-shadow" => "block-shadow",
        "vfs" => "vfs-shadow",
        "vfs-keep" => "keep",
        domain => domain,
    };
    let image = project.images().join("domains").join(image);
    let text = instructions(&fs::read(&image).with_context(|| image.display().to_string())?)?;
    tool::step(format_args!(
        "{} faults in {}, seed {}, on {} instructions",
        options.runs,
        options.domain,
        options.seed,
        text.len()
    ));
    let mut campaign = Campaign {
        kernel: &kernel,
        options,
        text,
        ledger,
        summary: Summary::default(),
        start: Instant::now(),
        told: Instant::now(),
    };
    campaign.carry_out()?;
    let summary = &campaign.summary;
    let right = summary.right(options.domain != "block-shadow") as u64;
    tool::print(&match options.json {
        true => format!("{:#}\n", summary.json()),
        false => format!(
            "{}\nseed {}, {:.0} s; ledger: {}\n{right} of {} runs right\n",
            summary.text(),
            options.seed,
            campaign.start.elapsed().as_secs_f64(),
            path.display(),
            options.runs
        ),
    });
    Ok(i32::from(right != options.runs))
}

/// The instructions of a signed image that may be replaced: all in its executable segments but
/// padding.
fn instructions(file: &[u8]) -> Result<Vec<Instruction>> {
    let image = Image::parse(file).map_err(|error| anyhow::anyhow!("the image: {error:?}"))?;
    let data = image.elf();
    let header = elf::FileHeader64::<Endianness>::parse(data)?;
    let endian = header.endian()?;
    let mut all = Vec::new();
    for segment in header.program_headers(endian, data)? {
        if segment.p_type(endian) != elf::PT_LOAD || segment.p_flags(endian) & elf::PF_X == 0 {
            continue;
        }
        let code = segment.data(endian, data);
        let code = code.map_err(|()| anyhow::anyhow!("a segment is not in the file"))?;
        let decoder = Decoder::with_ip(64, code, segment.p_vaddr(endian), DecoderOptions::NONE);
        for instruction in decoder {
            let is_padding = matches!(instruction.code(), Code::INVALID | Code::Int3)
                || instruction.mnemonic() == iced_x86::Mnemonic::Nop;
            if !is_padding {
                all.push(Instruction {
                    place: u32::try_from(instruction.ip())?,
                    length: instruction.len() as u8,
                });
            }
        }
    }
    if all.is_empty() {
        bail!("the image has no instructions");
    }
    Ok(all)
}

/// The disk that `ext2` begins with: ext3 with the smallest journal.
fn image(folder: &Path) -> Result<Vec<u8>> {
    let (root, image) = (folder.join("root"), folder.join("ext2.img"));
    fs::create_dir_all(&root)?;
    disk::make_with(&root, &image, "4M", &["-j", "-J", "size=1"])?;
    Ok(fs::read(image)?)
}

/// A kernel that can carry out plans.
enum Kernel<'a> {
    Hosted(&'a Project, hosted::Built, PathBuf),
    Bare(&'a Project, build::Built, PathBuf, &'a Options, Vec<u8>),
}

impl<'a> Kernel<'a> {
    fn build(project: &'a Project, options: &'a Options, folder: &Path) -> Result<Self> {
        let folder = folder.to_path_buf();
        Ok(match options.platform.as_str() {
            "hosted" if QEMU_ALONE.contains(&options.domain.as_str()) => {
                bail!(
                    "{} fails in QEMU alone: say --platform bare",
                    options.domain
                )
            }
            "hosted" => Kernel::Hosted(project, hosted::build(project)?, folder),
            _ => {
                let built = build::build_for_tests(project)?;
                let image = image(&folder)?;
                Kernel::Bare(project, built, folder, options, image)
            }
        })
    }

    /// Starts one that carries out `plan`.
    fn start(&self, plan: &str) -> Result<Running> {
        let id = std::process::id();
        match self {
            Kernel::Hosted(project, built, folder) => {
                let file = folder.join(format!("plan-{id}"));
                fs::write(&file, plan)?;
                let mut command = hosted::launcher(project, built);
                command.arg("faults").arg(&file).stdout(Stdio::piped());
                let mut child = command.spawn().context("the launcher does not start")?;
                let out = child.stdout.take().context("its output is piped")?;
                Ok(Running::hosted(child, out, &hosted::core_file(project)))
            }
            Kernel::Bare(project, built, folder, options, image) => {
                let archive = folder.join(format!("plan-{id}.cpio"));
                fs::write(
                    &archive,
                    build::packed_with(project, plan.as_bytes(), &[(IMAGE, image)])?,
                )?;
                let mut machine = Machine::new(&built.kernel, &folder.join(format!("bare-{id}")));
                machine.archive = Some(archive);
                machine.processors = options.smp;
                let disk = folder.join(format!("disk-{id}.img"));
                match options.domain.as_str() {
                    "virtio-blk" | "disk-shadow" => machine.disk = Some(disk.clone()),
                    "nvme" => machine.nvme = Some(disk.clone()),
                    _ => {}
                }
                fs::write(disk, image)?;
                machine.words.extend(["faults".into(), "panic=off".into()]);
                Running::bare(&machine, "fault ")
            }
        }
    }
}

struct Campaign<'a> {
    kernel: &'a Kernel<'a>,
    options: &'a Options,
    text: Vec<Instruction>,
    ledger: File,
    summary: Summary,
    start: Instant,
    told: Instant,
}

impl Campaign<'_> {
    fn carry_out(&mut self) -> Result<()> {
        let end = self.options.first + self.options.runs;
        let mut next = self.options.first;
        for _ in 0..=MOST_LOST {
            if next >= end || self.is_late() {
                return Ok(());
            }
            next = self.with_one_kernel(next, end)?;
        }
        bail!("{MOST_LOST} kernels were lost; the campaign ends")
    }

    fn is_late(&self) -> bool {
        self.start.elapsed() > Duration::from_secs(60 * self.options.minutes)
    }

    /// Runs `from..end` on one kernel, as far as it comes; the first run that is left.
    fn with_one_kernel(&mut self, from: u64, end: u64) -> Result<u64> {
        let (target, has_device) = match self.options.domain.as_str() {
            "frail-disk" => ("driver", true),
            "block-shadow" => ("shadow", true),
            other => (other, false),
        };
        let faults = (from..end).map(|run| {
            let fault = plan::draw(self.options.seed, run, &self.text)?;
            Some(if has_device {
                fault
            } else {
                fault.without_device()
            })
        });
        let faults: Vec<_> = faults
            .collect::<Option<_>>()
            .context("no instruction is long enough")?;
        let lines: Vec<String> = faults.iter().map(ToString::to_string).collect();
        let mut running = self
            .kernel
            .start(&format!("{target}\n{}\n", lines.join("\n")))?;
        let mut heard = Instant::now();
        let mut next = from;
        while next < end && !self.is_late() {
            let kind = faults[(next - from) as usize].kind.name();
            match running.listen()? {
                Said::Lines(lines) => {
                    for line in lines {
                        next = self.take(&line)? + 1;
                    }
                    heard = Instant::now();
                }
                Said::End(_) if self.last_was_hang(next) => break,
                Said::End(how) => {
                    next =
                        self.take(&ledger::fatal(next, kind, "kernel_fault", &how.to_string()))?
                            + 1;
                    break;
                }
                Said::Nothing if heard.elapsed() > SILENCE => {
                    next = self.take(&ledger::fatal(next, kind, "hang", "silence"))? + 1;
                    break;
                }
                Said::Nothing => {}
            }
        }
        running.stop();
        Ok(next)
    }

    /// Whether the run before `next` ended the kernel because it did not come to an end.
    fn last_was_hang(&self, next: u64) -> bool {
        self.summary
            .last()
            .is_some_and(|last| last.outcome == "hang" && last.run + 1 == next)
    }

    /// Takes a line of the ledger; its run.
    fn take(&mut self, line: &str) -> Result<u64> {
        let entry = ledger::entry(line).with_context(|| line.to_string())?;
        writeln!(self.ledger, "{line}")?;
        let run = entry.run;
        let never = !matches!(
            entry.outcome.as_str(),
            "unnoticed" | "not_reached" | "error_returned"
        );
        if never {
            eprintln!("{line}");
        }
        self.summary.add(entry);
        if self.told.elapsed() > Duration::from_secs(5) {
            self.told = Instant::now();
            eprintln!(
                "    {} of {} runs, {} reached, {} unnoticed, {:.0} s",
                self.summary.runs(),
                self.options.runs,
                self.summary.reached(),
                self.summary.unnoticed(),
                self.start.elapsed().as_secs_f64()
            );
        }
        Ok(run)
    }
}

/// Crashes and restarts one domain `count` times.
fn cycles(kernel: &Kernel<'_>, count: u64, options: &Options) -> Result<i32> {
    tool::step(format_args!("{count} crashes and restarts of frail-disk"));
    let mut running = kernel.start(&format!("cycles {count}\n"))?;
    let start = Instant::now();
    let mut lines = Vec::new();
    let ended = loop {
        match running.listen()? {
            Said::Lines(new) => {
                for line in new {
                    eprintln!("    {line}");
                    lines.push(serde_json::from_str::<serde_json::Value>(&line)?);
                }
            }
            Said::End(how) => break how.to_string(),
            Said::Nothing if start.elapsed() > Duration::from_secs(60 * options.minutes) => {
                break "not in time".to_string();
            }
            Said::Nothing => {}
        }
        if lines.last().is_some_and(|last| last["cycles"] == count) {
            break String::new();
        }
    };
    running.stop();
    let (Some(first), Some(last)) = (lines.first(), lines.last()) else {
        bail!("nothing was done: {ended}");
    };
    let middle = &lines[lines.len() / 2];
    let text = format!(
        "{} cycles in {:.0} s, numbers up to {}\nfree memory {} -> {} -> {} bytes, kernel heap {} -> {} -> {} bytes\nrestart to first good call, us: {} -> {}\n",
        last["cycles"],
        start.elapsed().as_secs_f64(),
        last["id"],
        first["free"],
        middle["free"],
        last["free"],
        first["heap"],
        middle["heap"],
        last["heap"],
        first["restart_us"],
        last["restart_us"]
    );
    tool::print(&match options.json {
        true => format!("{:#}\n", serde_json::Value::from(lines.clone())),
        false => text,
    });
    Ok(i32::from(has_leaked(&lines) || last["cycles"] != count))
}

/// Whether memory is lost for good: the best sample of the second half is worse than the best of
/// the quarter before. One sample may fall into a moment in which something is not cleared away
/// yet. The first time that many instances wait for that, tables grow, by some pages, which stays.
fn has_leaked(lines: &[serde_json::Value]) -> bool {
    let (before, after) = lines.split_at(lines.len() / 2);
    let before = &before[before.len() / 2..];
    let all = |part: &[serde_json::Value], of: &str| -> Vec<u64> {
        part.iter().filter_map(|line| line[of].as_u64()).collect()
    };
    let most_free = |part| all(part, "free").into_iter().max();
    let least_heap = |part| all(part, "heap").into_iter().min();
    let has_less = most_free(after) < most_free(before);
    has_less || least_heap(before).is_some_and(|heap| least_heap(after) > Some(heap))
}

#[cfg(test)]
mod tests;
