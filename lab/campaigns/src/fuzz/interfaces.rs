//! `cargo xtask fuzz interfaces`: every method of every interface with hostile values, and random
//! sequences of calls.
//!
//! The domain `domains/testing/hostile` does it, on the hosted platform or in QEMU; this starts the
//! kernel, reads what that domain writes to the log, and adds up. A kernel that ends or stands
//! still is a finding, and another one goes on behind the sequence in which it did. QEMU that is
//! ended by a signal is no finding: no guest may do that to it, so it says nothing of ours, and is
//! counted apart.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::{Options, standstill};
use crate::hosted;
use crate::running::{End, Running, Said};
use machine::disk;
use machine::log;
use machine::qemu::Machine;
use trefoil_gate::build;
use trefoil_gate::project::Project;

/// The name of the target.
pub const NAME: &str = "interfaces";

/// Images that the hosted platform is given: the system under attack.
const IMAGES: [&str; 21] = [
    "domains/hostile",
    "domains/init",
    "domains/victim",
    "domains/filter-one",
    "domains/rv6",
    "domains/bootfs",
    "domains/memory-disk",
    "domains/block-shadow",
    "domains/block-tally",
    "domains/template",
    "domains/ext2",
    "domains/vfs-shadow",
    "domains/keep",
    "domains/ramfs",
    "domains/nullnet",
    "domains/net-shadow",
    "domains/packet-source",
    "domains/hash-bench",
    "boot/bin/sh",
    "boot/bin/true",
    "boot/bin/echo",
];
/// Interfaces of which there are no objects on the hosted platform.
const BARE_ONLY: [&str; 13] = [
    "Hardware",
    "Mmio",
    "Ports",
    "Interrupt",
    "DmaAllocator",
    "DmaMemory",
    "DmaWindow",
    "PciBus",
    "PciDevice",
    "MemoryWatch",
    "AddressSpaces",
    "AddressSpace",
    "Legacy",
];
/// Longest silence of a kernel that is at work: the director waits 20 seconds for what must happen,
/// 8 times longer in QEMU.
const SILENCE: [Duration; 2] = [Duration::from_secs(60), Duration::from_secs(240)];
/// The socket of QEMU's stub for debuggers, in the machine's folder.
const STUB: &str = "stub";
/// Lines of the log that are shown with a finding.
const SHOWN: usize = 40;
/// Sequences between two words of how far the director is, at most.
const STRIDE: u64 = 64;
/// Findings, and the run ends.
const MOST_FINDINGS: usize = 10;

/// The command; its result is our exit status.
///
/// # Errors
/// If the kernel cannot be built or started.
pub fn run(project: &Project, options: &Options) -> Result<i32> {
    let folder = project.out.join("fuzz").join(NAME);
    fs::create_dir_all(&folder)?;
    let model = idlc::load(&project.root).map_err(|report| anyhow::anyhow!("{report}"))?;
    let methods = model.interfaces.iter().flat_map(|interface| {
        let name = |method: &idlc::model::Method| format!("{}.{}", interface.name, method.name);
        interface.methods.iter().map(name)
    });
    let methods: Vec<String> = methods.collect();
    let method = number(options.method.as_deref(), &methods)?;
    let ground = Ground::build(project, options, folder)?;
    let mut report = Report::new(methods, ground.is_bare());
    let begin = Instant::now();
    let mut next = options.only.unwrap_or(options.first);
    let count = options.only.map_or(options.count, |_| 1);
    let end = next.saturating_add(count);
    let first = next;
    while next < end && report.findings.len() < MOST_FINDINGS {
        let past = begin.elapsed().as_secs();
        if past >= options.seconds {
            break;
        }
        let words = ground.words(options, next, end - next, options.seconds - past) + &method;
        next = one_kernel(&ground, &words, next, &mut report)?;
    }
    let tried = next.min(end) - first;
    println!(
        "{} platform, seed {}, {:.0} s",
        options.platform,
        options.seed,
        begin.elapsed().as_secs_f64()
    );
    print!("{}", report.text(tried));
    Ok(i32::from(!report.is_good(tried)))
}

/// What the director is told of the only method that is called.
fn number(name: Option<&str>, methods: &[String]) -> Result<String> {
    let Some(name) = name else {
        return Ok(String::new());
    };
    let number = methods.iter().position(|it| it == name);
    let number = number.with_context(|| format!("there is no method {name}"))?;
    Ok(format!(",method={number}"))
}

/// Has one kernel begin with sequence `from`; the first that is left.
fn one_kernel(ground: &Ground<'_>, words: &str, from: u64, report: &mut Report) -> Result<u64> {
    let mut running = ground.start(words)?;
    let mut heard = Instant::now();
    report.at = from;
    let next = loop {
        match running.listen()? {
            Said::Lines(lines) => {
                heard = Instant::now();
                if let Some(count) = report.take_all(&lines) {
                    break from + count;
                }
            }
            Said::Nothing if heard.elapsed() < SILENCE[usize::from(ground.is_bare())] => {}
            Said::Nothing => {
                report.lose("the kernel stands still", &ground.calls());
                break report.at + STRIDE;
            }
            Said::End(how) => {
                report.end(&how);
                break report.at + STRIDE;
            }
        }
    };
    running.stop();
    Ok(next)
}

/// What is known of the run.
struct Report {
    methods: Vec<String>,
    is_bare: bool,
    /// Calls of each method: begun, ended, successful.
    counts: Vec<[u64; 3]>,
    excluded: BTreeMap<String, String>,
    findings: Vec<String>,
    /// Machines that QEMU did not survive: the sequence that was told last, and the signal.
    lost: Vec<(u64, i32)>,
    /// What each kernel said of memory at its end.
    weighed: Vec<String>,
    /// The sequence that was told last.
    at: u64,
    last: VecDeque<String>,
}

impl Report {
    fn new(methods: Vec<String>, is_bare: bool) -> Self {
        Report {
            counts: vec![[0; 3]; methods.len()],
            methods,
            is_bare,
            excluded: BTreeMap::new(),
            findings: Vec::new(),
            lost: Vec::new(),
            weighed: Vec::new(),
            at: 0,
            last: VecDeque::new(),
        }
    }

    /// Takes lines of the log, in their order and to the last one.
    fn take_all(&mut self, lines: &[String]) -> Option<u64> {
        let mut told = None;
        for line in lines {
            told = self.take(line).or(told);
        }
        told
    }

    /// Takes a line of the log; how many sequences there were, if it is the last.
    fn take(&mut self, line: &str) -> Option<u64> {
        self.last.push_back(line.to_string());
        if self.last.len() > SHOWN {
            self.last.pop_front();
        }
        let text = log::behind_time(line)?.strip_prefix("hostile: ")?;
        let (word, rest) = text.split_once(' ')?;
        match word {
            "excluded" => {
                let (name, why) = rest.split_once(": ")?;
                self.excluded.insert(name.into(), why.into());
            }
            "sequence" => self.at = rest.split(',').next()?.parse().ok()?,
            "counts" => self.count(rest)?,
            "FINDING" => self.find(rest, ""),
            "weighed:" => self.weighed.push(rest.to_string()),
            "ended:" => return rest.split(' ').next()?.parse().ok(),
            _ => {}
        }
        None
    }

    fn count(&mut self, text: &str) -> Option<()> {
        let mut words = text.split_whitespace();
        let first: usize = words.next()?.parse().ok()?;
        for (offset, word) in words.enumerate() {
            let own = self.counts.get_mut(first + offset)?;
            for (sum, number) in own.iter_mut().zip(word.split('/')) {
                *sum += number.parse::<u64>().ok()?;
            }
        }
        Some(())
    }

    /// What was found comes first, then where the processors stand, then the end of the log.
    fn find(&mut self, text: &str, calls: &str) {
        print!("FINDING {text}\n{calls}");
        for line in &self.last {
            println!("    {line}");
        }
        self.findings.push(text.to_string());
    }

    fn end(&mut self, how: &End) {
        match how {
            End::Own(how) => self.lose(&format!("the kernel ended: {how}"), ""),
            End::Lost(signal) => self.lost.push((self.at, *signal)),
        }
    }

    fn lose(&mut self, how: &str, calls: &str) {
        let text = format!("in or soon after sequence {}: {how}", self.at);
        self.find(&text, calls);
    }

    /// Methods that nobody called and that are neither excluded nor missing on this platform.
    fn uncovered(&self) -> Vec<&str> {
        let counts = self.methods.iter().zip(&self.counts);
        let missing = counts.filter(|(name, [begun, ..])| *begun == 0 && self.is_expected(name));
        missing.map(|(name, _)| name.as_str()).collect()
    }

    /// Why nobody called a method.
    fn why(&self, name: &str) -> &'static str {
        let of = |name: &str| name.split('.').next().map(str::to_string);
        let counts = self.methods.iter().zip(&self.counts);
        let of_this = counts.filter(|(other, _)| of(other) == of(name));
        let tried = |[begun, ended, _]: &[u64; 3]| begun + ended > 0;
        let (mut own, mut any) = (false, false);
        for (other, counts) in of_this {
            own |= other == name && tried(counts);
            any |= tried(counts);
        }
        match (own, any) {
            (true, _) => "its arguments could not be made",
            (_, true) => "it had no turn with an object to call it on",
            _ => "no foe had an object with this interface",
        }
    }

    fn is_expected(&self, name: &str) -> bool {
        let of = name.split('.').next().unwrap_or_default();
        !self.excluded.contains_key(name) && (self.is_bare || !BARE_ONLY.contains(&of))
    }

    /// Methods that nobody called and that have had their turn, a line for each reason. After a
    /// finding nobody asks for them.
    fn missing(&self, tried: u64) -> String {
        let mut by_reason = BTreeMap::<_, Vec<_>>::new();
        if self.findings.is_empty() && tried >= self.methods.len() as u64 {
            for name in self.uncovered() {
                by_reason.entry(self.why(name)).or_default().push(name);
            }
        }
        let line = |(why, names): (&str, Vec<&str>)| {
            let names = names.join(", ");
            format!("NOT COVERED, as {why}: {names}\n")
        };
        by_reason.into_iter().map(line).collect()
    }

    /// Each method has its turn in the first sequences, so a run that is long enough must reach
    /// all.
    fn is_good(&self, tried: u64) -> bool {
        let is_whole = tried >= 10 * self.methods.len() as u64;
        let is_heard = self.counts.iter().any(|[begun, ..]| *begun > 0);
        self.findings.is_empty() && is_heard && (!is_whole || self.uncovered().is_empty())
    }

    fn text(&self, tried: u64) -> String {
        let sum = |which: usize| self.counts.iter().map(|it| it[which]).sum::<u64>();
        let covered = self.counts.iter().filter(|it| it[0] > 0).count();
        let mut text = String::new();
        for (name, why) in &self.excluded {
            text += &format!("not called on purpose: {name}, which {why}\n");
        }
        let absent = |name: &&String| !self.excluded.contains_key(*name) && !self.is_expected(name);
        let absent: Vec<_> = self
            .methods
            .iter()
            .filter(absent)
            .map(String::as_str)
            .collect();
        if !absent.is_empty() {
            text += &format!(
                "not called, as there are no devices here and nobody has such an object: {}\n",
                absent.join(", ")
            );
        }
        text += &self.missing(tried);
        for (at, signal) in &self.lost {
            text += &format!(
                "in or soon after sequence {at} QEMU was ended by signal {signal}: no finding\n"
            );
        }
        for weighed in &self.weighed {
            text += &format!("{weighed}\n");
        }
        let counts = self.methods.iter().zip(&self.counts);
        let failing = counts.filter(|(_, [begun, _, done])| *begun > 0 && *done == 0);
        let failing: Vec<_> = failing.map(|(name, _)| name.as_str()).collect();
        if !failing.is_empty() {
            text += &format!("never successful: {}\n", failing.join(", "));
        }
        text + &format!(
            "{} methods: {covered} covered, {} excluded, {} not there, {} not covered; {tried} sequences, {} calls, {} of them successful; {} findings\n",
            self.methods.len(),
            self.excluded.len(),
            absent.len(),
            self.uncovered().len(),
            sum(0),
            sum(2),
            self.findings.len()
        )
    }
}

/// Where it happens.
enum Ground<'a> {
    Hosted(&'a Project, hosted::Built, PathBuf),
    Bare(build::Built, PathBuf, u32),
}

impl<'a> Ground<'a> {
    fn build(project: &'a Project, options: &Options, folder: PathBuf) -> Result<Self> {
        Ok(match options.platform.as_str() {
            "hosted" => Ground::Hosted(project, hosted::build(project)?, folder),
            "bare" => Ground::Bare(build::build_for_tests(project)?, folder, options.smp),
            other => bail!("there is no platform {other}"),
        })
    }

    fn is_bare(&self) -> bool {
        matches!(self, Ground::Bare(..))
    }

    /// Where the processors stand, if that can be told.
    fn calls(&self) -> String {
        let Ground::Bare(built, folder, processors) = self else {
            return String::new();
        };
        let stub = folder.join(bare_name(*processors)).join(STUB);
        let calls = standstill::calls(&stub, &built.kernel, *processors as usize);
        calls.unwrap_or_else(|error| format!("    it cannot be looked at: {error:#}\n"))
    }

    /// What the director is told; no blanks, as it is a word of the kernel's command line.
    fn words(&self, options: &Options, first: u64, count: u64, seconds: u64) -> String {
        let stretch = if self.is_bare() { 8 } else { 1 };
        let strict = if options.strict { ",strict" } else { "" };
        let loud = if options.only.is_some() { ",loud" } else { "" };
        format!(
            "seed={},first={first},count={count},seconds={seconds},stretch={stretch}{loud}{strict}",
            options.seed
        )
    }

    fn start(&self, words: &str) -> Result<Running> {
        match self {
            Ground::Hosted(project, built, folder) => {
                let image = disk_image(folder, "hostile-disk.img")?;
                let mut command = hosted::launcher(project, built);
                command.arg("run").args(IMAGES).arg(&image);
                command.args(["--memory", "512", "--options", words]);
                let mut child = command
                    .stderr(Stdio::piped())
                    .spawn()
                    .context("the launcher does not start")?;
                let log = child.stderr.take().context("its log is piped")?;
                Ok(Running::hosted(child, log, &hosted::core_file(project)))
            }
            Ground::Bare(built, folder, processors) => {
                let name = bare_name(*processors);
                let mut machine = Machine::new(&built.kernel, &folder.join(&name));
                machine.archive = Some(built.archive.clone());
                machine.disk = Some(disk_image(folder, &format!("{name}.img"))?);
                machine.stub = Some(folder.join(&name).join(STUB));
                machine.processors = *processors;
                machine.memory = "512M".into();
                machine.words.extend([
                    "root=domains/hostile".into(),
                    format!("options={words}"),
                    "panic=off".into(),
                ]);
                Running::bare(&machine, "")
            }
        }
    }
}

/// The folder of a machine, and what its disk is called after.
fn bare_name(processors: u32) -> String {
    format!("bare-{}-{processors}", std::process::id())
}

/// A disk with a file system and a few files. Another campaign may make the same at this moment, or
/// read it: it gets its name when it is whole.
fn disk_image(folder: &Path, name: &str) -> Result<PathBuf> {
    let own = folder.join(format!("making-{}", std::process::id()));
    let (tree, made, file) = (own.join("tree"), own.join(name), folder.join(name));
    fs::create_dir_all(tree.join("b"))?;
    fs::write(tree.join("a"), disk::verses(40))?;
    disk::make(&tree, &made, "8M")?;
    fs::rename(&made, &file)?;
    fs::remove_dir_all(&own)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        let names = ["Block.read", "Mmio.base", "Power.off", "Net.send"];
        Report::new(names.map(String::from).to_vec(), false)
    }

    #[test]
    fn the_log_is_added_up() {
        let mut report = report();
        for line in [
            "[    0.1] hostile: excluded Power.off: ends the run",
            "[    0.2] hostile: sequence 16, 90 calls",
            "[    0.3] hostile: counts 0 5/4/3 0/0/0",
            "[    0.4] victim: hostile: counts 0 9/9/9",
            "[    0.5] hostile: counts 0 2/2/0",
        ] {
            assert_eq!(report.take(line), None, "{line}");
        }
        assert_eq!(report.counts[0], [7, 6, 3]);
        assert_eq!(report.at, 16);
        assert_eq!(report.uncovered(), ["Net.send"]);
        assert!(report.is_good(3) && !report.is_good(100));
        assert_eq!(
            report.why("Net.send"),
            "no foe had an object with this interface"
        );
        report.take("[    0.6] hostile: counts 3 0/1/0");
        assert_eq!(report.why("Net.send"), "its arguments could not be made");
        report.take("[    0.6] hostile: counts 3 1/1/0");
        report.take("[    0.6] hostile: weighed: 12 KiB missing");
        assert!(report.text(100).contains("\n12 KiB missing\n"));
        assert!(report.is_good(100));
        let end = "[    0.7] hostile: ended: 20 sequences, 7 calls, 0 findings";
        assert_eq!(report.take(end), Some(20));
    }

    #[test]
    fn what_comes_together_with_the_end_counts() {
        let mut report = report();
        let lines = [
            "[    0.1] hostile: excluded Power.off: ends the run",
            "[    0.2] hostile: FINDING in sequence 3: ext2 (9) died: Panic",
            "[    0.3] hostile: counts 0 5/4/3 0/0/0",
            "[    0.4] hostile: ended: 20 sequences, 5 calls, 1 findings",
            "[    0.5] power off, status 1",
        ];
        assert_eq!(report.take_all(&lines.map(String::from)), Some(20));
        assert_eq!((report.counts[0], report.findings.len()), ([5, 4, 3], 1));
    }

    #[test]
    fn a_run_that_tells_of_no_call_is_not_good() {
        assert!(!report().is_good(3));
    }

    #[test]
    fn findings_and_lost_kernels_fail_the_run() {
        let mut report = report();
        report.take("[    0.1] hostile: FINDING in sequence 3: ext2 (9) died: Panic");
        assert!(!report.is_good(1));
        let mut report = self::report();
        report.lose("the kernel stands still", "");
        assert!(!report.is_good(1));
    }

    #[test]
    fn what_qemu_does_not_survive_is_counted_apart() {
        let mut report = report();
        report.end(&End::Lost(11));
        assert!(!report.is_good(1), "nothing was called");
        report.take("[    0.3] hostile: counts 0 5/4/3 0/0/0");
        assert!(report.is_good(1));
        let text = report.text(1);
        assert!(text.contains("ended by signal 11: no finding\n"), "{text}");
        assert!(text.ends_with("; 0 findings\n"), "{text}");
        report.end(&End::Own("the kernel panicked".into()));
        assert!(!report.is_good(1));
    }

    #[test]
    fn what_is_not_covered_is_told_once_it_had_its_turn_and_nothing_was_found() {
        let mut report = report();
        report.take("[    0.1] hostile: excluded Power.off: ends the run");
        report.take("[    0.3] hostile: counts 0 5/4/3 0/0/0");
        assert_eq!(report.missing(3), "");
        let why = "no foe had an object with this interface";
        let expected = format!("NOT COVERED, as {why}: Net.send\n");
        assert_eq!(report.missing(4), expected);
        report.lose("the kernel stands still", "");
        assert_eq!(report.missing(4), "");
    }
}
