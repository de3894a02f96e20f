//! What gdb knows of the system by the script in `lab/gdb`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use lab::hosted;
use machine::session::Session;
use machine::stacks;
use trefoil_gate::build;
use trefoil_gate::tool;

use super::guide::labelled;
use super::{Case, case};
use crate::bench::{Bench, LIMIT};

pub(super) const CASES: &[Case] = &[
    case("gdb-a-standstill-shows-every-stack", standstill),
    case("gdb-a-breakpoint-holds-in-every-instance", breakpoint),
    case("gdb-comes-late-and-finds-other-symbols", late),
    case("gdb-knows-domains-in-a-linux-process", in_a_process),
    case("gdb-opens-the-dump-of-a-dead-domain", dump),
    case("gdb-opens-the-dump-that-a-manifest-asks-for", asked_for),
];

/// Whether gdb is there. It is no part of what the system needs, so without it these tests say
/// loudly that they have tested nothing.
fn has_gdb(test: &str) -> bool {
    let has = tool::find("gdb").is_some();
    if !has {
        eprintln!("NOT TESTED: {test}: there is no gdb (`cargo xtask setup` installs it)");
    }
    has
}

/// The lines behind the one that begins with `head`, up to the next thread.
fn stack<'a>(text: &'a str, head: &str) -> Result<Vec<&'a str>> {
    let mut lines = text.lines().map(str::trim);
    lines
        .find(|line| line.contains(head))
        .with_context(|| format!("no {head:?} in\n{text}"))?;
    Ok(lines.take_while(|line| line.starts_with('#')).collect())
}

/// Whether each of `wanted` is in a line of its own, in that order.
fn in_order(lines: &[&str], wanted: &[&str]) -> Result<()> {
    let mut rest = lines.iter();
    for want in wanted {
        ensure!(
            rest.any(|line| line.contains(want)),
            "no {want:?} where it should be in\n{}",
            lines.join("\n")
        );
    }
    Ok(())
}

fn standstill(bench: &Bench<'_>) -> Result<()> {
    if !has_gdb("gdb-a-standstill-shows-every-stack") {
        return Ok(());
    }
    let mut machine = bench.machine_with(&bench.disk()?);
    machine.processors = 2;
    let mut session = Session::start(&machine, false)?;
    session.prompt(LIMIT)?;
    // A thread that runs all the time: somewhere it is met on a processor.
    session.run("while true; do :; done &", LIMIT)?;
    let late = session.run("sleep 1000", Duration::from_secs(2));
    let text = late
        .err()
        .context("a program slept for too short")?
        .to_string();
    ensure!(
        text.contains("processor 0: ") && text.contains("processor 1: "),
        "{text}"
    );
    let runs = "(Program.run) <- rv6 14 (kernel.thread)";
    let mut processors = text.lines().filter(|line| line.contains("processor "));
    ensure!(
        processors.any(|line| line.contains(runs)),
        "no program runs in\n{text}"
    );
    // From the program's own line through the personality's, by two proxies, to the thread's first.
    let lines = stack(&text, " sleep: blocked")?;
    in_order(
        &lines,
        &[
            "framework::task::sched::leave_processor at kernel/framework/src/task/sched.rs:",
            "rv6 14: rv6::process::Process::sleep at domains/personalities/rv6/src/process.rs:",
            "proxies::",
            "sleep::main at programs/sleep/src/lib.rs:",
            "proxies::",
            "rv6 14: domain_rt::thread::run at runtime/src/thread.rs:",
            "isolation::call::thread::run at kernel/isolation/src/call/thread.rs:",
            "framework::arch::x86_64::switch::begin",
        ],
    )?;
    let chain = "(Process.sleep) <- sleep 17 (Program.run) <- rv6 14 (kernel.thread)";
    ensure!(text.contains(chain), "no {chain:?} in\n{text}");
    // Each thread that the kernel starts has one, and the driver's waits for its device.
    in_order(
        &stack(&text, " completions: blocked")?,
        &[
            "proxies::",
            "virtio-blk 7: virtio_blk::start::{closure#0} at domains/drivers/virtio-blk/src/lib.rs:",
        ],
    )
}

/// gdb at work on a machine, with what it prints in a file.
struct Gdb {
    child: Child,
    printed: PathBuf,
}

impl Gdb {
    /// gdb that carries out `commands` on the machine behind `socket`.
    fn start(bench: &Bench<'_>, socket: &Path, commands: &str) -> Result<Self> {
        let (file, printed) = (bench.folder.join("commands"), bench.folder.join("printed"));
        fs::write(&file, commands)?;
        let gdb = tool::need("gdb", "gdb")?;
        let out = fs::File::create(&printed)?;
        let mut command = stacks::debugger(&gdb, socket, &bench.site.built.kernel);
        command.arg("-batch").arg("-x").arg(&file);
        command.stdin(Stdio::null());
        command.stdout(out.try_clone()?).stderr(out);
        let child = command.spawn().context("gdb does not start")?;
        Ok(Gdb { child, printed })
    }

    /// What it printed until it ended.
    fn printed(mut self) -> Result<String> {
        let end = Instant::now() + LIMIT;
        while self.child.try_wait()?.is_none() {
            if Instant::now() > end {
                bail!("gdb does not end:\n{}", self.so_far());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(self.so_far())
    }

    fn so_far(&self) -> String {
        fs::read_to_string(&self.printed).unwrap_or_default()
    }
}

impl Drop for Gdb {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A socket for the stub of a test's own machine.
fn socket(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("trefoil-{name}-{}", std::process::id()))
}

const BREAKPOINT: &str = "\
break ext2_domain::service::{impl#1}::create
commands
silent
echo MET\\n
backtrace
info domains
continue
end
info breakpoints
continue
";

fn breakpoint(bench: &Bench<'_>) -> Result<()> {
    if !has_gdb("gdb-a-breakpoint-holds-in-every-instance") {
        return Ok(());
    }
    let mut machine = bench.machine_with(&bench.disk()?);
    let socket = socket("break");
    machine.stub = Some(socket.clone());
    machine.debugger = true;
    let mut session = Session::start(&machine, false)?;
    let wait = Instant::now() + LIMIT;
    while !socket.exists() && Instant::now() < wait {
        std::thread::sleep(Duration::from_millis(10));
    }
    let gdb = Gdb::start(bench, &socket, BREAKPOINT)?;
    session.prompt(LIMIT)?;
    // What is not on the disk yet would be made again by the next instance, and be met once more.
    session.run("mkdir /one; sync", LIMIT)?;
    session.run("crash ext2", LIMIT)?;
    let seen = session.run("mkdir /two; ls -d /one /two", LIMIT)?;
    ensure!(seen == "/one\n/two\n", "{seen:?}");
    session.type_line(b"poweroff")?;
    session.end(LIMIT)?;
    let text = gdb.printed()?;
    let _ = fs::remove_file(&socket);
    let mut parts = text.split("MET\n");
    let before = parts.next().unwrap_or_default();
    ensure!(
        before.contains("<PENDING>"),
        "it was there at once:\n{text}"
    );
    // The shell makes files of its own.
    let parts: Vec<&str> = parts.filter(|part| part.contains(" in mkdir ")).collect();
    ensure!(parts.len() == 2, "met {} times:\n{text}", parts.len());
    let mut numbers = Vec::new();
    for part in &parts {
        let lines: Vec<&str> = part.lines().collect();
        let program = "in mkdir ";
        in_order(
            &lines,
            &[
                "ext2_domain::service::",
                "proxies::",
                "in vfs ",
                "proxies::",
                "in rv6 ",
                "proxies::",
                program,
            ],
        )?;
        // The whole stack, to the thread's first function.
        in_order(
            &lines,
            &[
                program,
                "guarded_trampoline",
                "isolation::call::thread::run",
            ],
        )?;
        let row = lines
            .iter()
            .find(|line| line.contains(" ext2 ") && line.ends_with("/ext2"));
        let row = row.with_context(|| format!("no ext2 with symbols in\n{part}"))?;
        ensure!(row.contains(" running "), "{row}");
        numbers.push(row.split(' ').next().unwrap_or_default().to_string());
    }
    ensure!(
        numbers[0] != numbers[1],
        "the same instance twice: {numbers:?}"
    );
    Ok(())
}

fn late(bench: &Bench<'_>) -> Result<()> {
    if !has_gdb("gdb-comes-late-and-finds-other-symbols") {
        return Ok(());
    }
    // ext2 as another build could have left it: one byte of its code is another. Of the others
    // there are no symbols at all.
    let symbols = bench.folder.join("symbols");
    fs::create_dir_all(&symbols)?;
    let mut other = fs::read(build::products(&bench.site.project).join("ext2"))?;
    let byte = other.get_mut(0x8000).context("ext2 is longer")?;
    *byte ^= 1;
    fs::write(symbols.join("ext2"), other)?;
    let mut machine = bench.machine_with(&bench.disk()?);
    let socket = socket("late");
    machine.stub = Some(socket.clone());
    let mut session = Session::start(&machine, false)?;
    session.prompt(LIMIT)?;
    session.type_line(b"sleep 1000")?;
    session.wait_for(0, "sleep 1000\r\n", LIMIT)?;
    std::thread::sleep(Duration::from_secs(1));
    let commands = format!(
        "info domains\ntrefoil symbols {}\necho OTHER\\n\ninfo domains\ntrefoil threads\n",
        symbols.display()
    );
    let text = Gdb::start(bench, &socket, &commands)?.printed()?;
    let _ = fs::remove_file(&socket);
    let (first, then) = text.split_once("OTHER\n").with_context(|| text.clone())?;
    for name in ["init", "ext2", "rv6", "sleep"] {
        let has = first
            .lines()
            .any(|line| line.ends_with(&format!("/{name}")));
        ensure!(has, "no symbols of {name} in\n{text}");
    }
    ensure!(
        then.contains("none: ext2 is of another build (code differs at 0x"),
        "{then}"
    );
    ensure!(then.contains("none: no file fits it"), "{then}");
    // The call records lead out of what has no symbols.
    in_order(
        &stack(then, " sleep: blocked")?,
        &[
            "rv6 14: ??",
            "proxies::",
            "sleep 16: ??",
            "proxies::",
            "rv6 14: ??",
            "isolation::call::thread::run",
        ],
    )
}

const IN_A_PROCESS: &str = "\
break victim::start
run
backtrace
info domains
echo AGAIN\\n
continue
backtrace
info domains
kill
";

fn in_a_process(bench: &Bench<'_>) -> Result<()> {
    if !has_gdb("gdb-knows-domains-in-a-linux-process") {
        return Ok(());
    }
    let project = &bench.site.project;
    let built = hosted::build(project)?;
    let file = bench.folder.join("commands");
    fs::write(&file, IN_A_PROCESS)?;
    let first = ["-batch".into(), "-x".into(), file.display().to_string()];
    let words = ["run", "domains/prober", "domains/victim"].map(String::from);
    let mut command = hosted::debugged(project, &built, &first, &words)?;
    let output = tool::captured(command.stdin(Stdio::null()))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(text.contains("(victim::start) pending"), "{text}\n{errors}");
    let (one, two) = text
        .split_once("AGAIN\n")
        .with_context(|| format!("{text}\n{errors}"))?;
    let mut numbers = Vec::new();
    for part in [one, two] {
        let lines: Vec<&str> = part.lines().collect();
        in_order(
            &lines,
            &[
                "victim::start ",
                "isolation::load::loader::",
                "proxies::",
                "prober::",
            ],
        )?;
        let row = lines.iter().find(|line| line.ends_with("/victim"));
        let row = row.with_context(|| format!("no victim with symbols in\n{part}\n{errors}"))?;
        ensure!(row.contains(" starting "), "{row}");
        numbers.push(row.split(' ').next().unwrap_or_default().to_string());
    }
    ensure!(
        numbers[0] != numbers[1],
        "the same instance twice: {numbers:?}"
    );
    Ok(())
}

fn dump(bench: &Bench<'_>) -> Result<()> {
    if !has_gdb("gdb-opens-the-dump-of-a-dead-domain") {
        return Ok(());
    }
    let file = bench.folder.join("dump");
    let mut machine = bench.machine_with(&bench.disk()?);
    let socket = socket("dump");
    machine.stub = Some(socket.clone());
    let mut session = Session::start(&machine, false)?;
    session.prompt(LIMIT)?;
    let commands = format!(
        "trefoil dump-at-death ext2 {}\necho READY\\n\ncontinue\n",
        file.display()
    );
    let gdb = Gdb::start(bench, &socket, &commands)?;
    let wait = Instant::now() + LIMIT;
    while !gdb.so_far().contains("READY") && Instant::now() < wait {
        std::thread::sleep(Duration::from_millis(20));
    }
    session.run("crash ext2", LIMIT)?;
    let seen = session.run("mkdir /two; ls -d /two", LIMIT)?;
    ensure!(seen == "/two\n", "{seen:?}");
    session.type_line(b"poweroff")?;
    session.end(LIMIT)?;
    let told = gdb.printed()?;
    let _ = fs::remove_file(&socket);
    ensure!(told.contains("trefoil: ") && file.exists(), "{told}");
    let program = tool::need("gdb", "gdb")?;
    let mut command = stacks::reader(&program, &file, &bench.site.built.kernel);
    command.args(["-batch", "-ex", "backtrace"]);
    command.args(["-ex", "trefoil calls", "-ex", "trefoil threads"]);
    let output = tool::captured(command.stdin(Stdio::null()))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines: Vec<&str> = text.lines().collect();
    // Who died, in the call that crashed it, and who called.
    in_order(
        &lines,
        &[
            "in ext2 ",
            "in vfs ",
            "in rv6 ",
            "isolation::call::thread::run",
        ],
    )?;
    let row = lines
        .iter()
        .find(|line| line.contains(" ext2 ") && line.ends_with("/ext2"));
    ensure!(row.is_some(), "no ext2 with symbols in\n{text}");
    in_order(
        &stack(&text, " completions: blocked")?,
        &["virtio-blk 7: virtio_blk::start::{closure#0} at domains/drivers/virtio-blk/src/lib.rs:"],
    )
}

/// Runs what the guide says: of the domain with the line in its section there is a dump, and of
/// another that dies there is none.
fn asked_for(bench: &Bench<'_>) -> Result<()> {
    if !has_gdb("gdb-opens-the-dump-that-a-manifest-asks-for") {
        return Ok(());
    }
    let project = &bench.site.project;
    let guide = fs::read_to_string(project.root.join("docs/guide/debugging.md"))?;
    let manifest = fs::read_to_string(project.root.join("images/default.toml"))?;
    let section = "[domain.ramfs]\n";
    ensure!(manifest.contains(section), "there is no {section}");
    let asking = format!("{section}{}", labelled(&guide, "toml dump"));
    let file = bench.folder.join("dumps.toml");
    fs::write(&file, manifest.replace(section, &asking))?;
    let line = labelled(&guide, "sh dump");
    let line = line.split('\'').nth(1).context("no line")?;
    let mut command = bench.tool("run")?;
    command
        .args(["--no-disk", "--smp", "2", "--manifest"])
        .arg(&file);
    let output = command.args(["--exec", line]).output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{:?} {errors}", output.status);
    let dumped: Vec<&str> = errors
        .lines()
        .filter(|line| line.starts_with("dump: "))
        .collect();
    let dump = project.out.join("dumps/ramfs.dump");
    ensure!(
        dumped.len() == 1 && dumped[0].contains(&dump.display().to_string()),
        "{errors}"
    );
    let program = tool::need("gdb", "gdb")?;
    let mut command = stacks::reader(&program, &dump, &bench.site.built.kernel);
    command.args(["-batch", "-ex", "backtrace"]);
    let output = tool::captured(command.stdin(Stdio::null()))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines: Vec<&str> = text.lines().collect();
    let shown = labelled(&guide, "text dump-opened");
    in_order(&lines, &shown.lines().collect::<Vec<_>>())
}
