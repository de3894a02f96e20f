//! Dumps that the manifest asks for: of a domain with `dump = "host"`, what it had when it died.
//!
//! gdb watches the machine from its first instruction, with the script in `lab/gdb`. Each time that
//! such a domain dies the machine stands still, before any thread has left it, while registers,
//! stacks, its heap, images and the kernel's tables go into a file. Nothing in the system takes
//! part: memory of a dead domain goes to nobody but the host, which has all of the machine's
//! anyway.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::qemu::Machine;
use crate::stacks;
use trefoil_gate::tool;

/// How long gdb may take to end behind its machine: it may be in the middle of a dump.
const PATIENCE: Duration = Duration::from_secs(30);
const INTERVAL: Duration = Duration::from_millis(10);
/// What gdb prints when its machine is gone.
const ENDS: [&str; 2] = ["Remote connection closed", "exited"];

/// Watches a machine, in a thread of its own.
pub struct Watch {
    socket: PathBuf,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<String>>>,
}

impl Watch {
    /// Has `machine`, which is started afterwards, wait for gdb, which dumps the domains with these
    /// names into `folder` as they die: each the last of its name, in `NAME.dump`.
    ///
    /// # Errors
    /// If there is no gdb, or the folder cannot be made.
    pub fn start(machine: &mut Machine, names: &[String], folder: &Path) -> Result<Watch> {
        let gdb = tool::need("gdb", "gdb")?;
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot make the folder {}", folder.display()))?;
        let socket = stacks::socket();
        (machine.stub, machine.meeting) = (Some(socket.clone()), None);
        machine.debugger = true;
        let mut command = stacks::debugger(&gdb, &socket, &machine.kernel);
        command.arg("-batch").stdin(Stdio::null());
        for name in names {
            let old = folder.join(format!("{name}.dump"));
            // One of an earlier run would be taken for this one's.
            let _ = fs::remove_file(&old);
            let line = format!("trefoil dump-at-death {name} \"{}\"", old.display());
            command.args(["-ex", &line]);
        }
        command.args(["-ex", "trefoil only-deaths", "-ex", "continue"]);
        let printed = socket.with_extension("printed");
        let out = File::create(&printed).context("cannot keep what gdb prints")?;
        command.stdout(out.try_clone()?).stderr(out);
        let is_over = Arc::new(AtomicBool::new(false));
        let (over, stub) = (is_over.clone(), socket.clone());
        let follow = move || {
            while !stub.exists() {
                if over.load(Ordering::Acquire) {
                    return Ok(String::new());
                }
                thread::sleep(INTERVAL);
            }
            let mut child = command.spawn().context("gdb does not start")?;
            wait(&mut child, &over)?;
            let text = fs::read_to_string(&printed).unwrap_or_default();
            let _ = fs::remove_file(&printed);
            // At once: a machine that was left by its debugger may stand still.
            if let Err(error) = told(&text) {
                eprintln!("warning: {error:#}");
            }
            Ok(text)
        };
        Ok(Watch {
            socket,
            is_over,
            thread: Some(thread::spawn(follow)),
        })
    }

    /// What was dumped, a line for each dump, when the machine has ended.
    ///
    /// # Errors
    /// If gdb did not watch to the end. What it printed was said already.
    pub fn end(mut self) -> Result<Vec<String>> {
        self.is_over.store(true, Ordering::Release);
        let thread = self.thread.take().context("it ends once")?;
        // gdb's own words come once.
        let Ok(text) = thread.join() else {
            bail!("whoever watches over gdb has panicked");
        };
        told(&text?).context("there may be dumps missing")
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        // The machine may have removed it, or never made it.
        let _ = fs::remove_file(&self.socket);
    }
}

/// Waits until gdb has ended.
fn wait(child: &mut Child, is_over: &AtomicBool) -> Result<()> {
    let mut end = None;
    while child.try_wait()?.is_none() {
        if is_over.load(Ordering::Acquire) {
            let end = *end.get_or_insert_with(|| Instant::now() + PATIENCE);
            if Instant::now() > end {
                child.kill().and_then(|()| child.wait())?;
                bail!("gdb did not end with its machine");
            }
        }
        thread::sleep(INTERVAL);
    }
    Ok(())
}

/// What gdb says of dumps in what it printed.
fn told(text: &str) -> Result<Vec<String>> {
    let lines = text.lines().filter_map(|line| line.split_once("trefoil: "));
    let lines = lines.map(|(_, line)| tool::plain(line).into_owned());
    let lines = lines.collect();
    match text.is_empty() || ENDS.iter().any(|end| text.contains(end)) {
        true => Ok(lines),
        false => bail!("gdb did not watch for dumps to the end:\n{}", text.trim()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_gdb_says_of_dumps_is_told() {
        let text = "Reading\ntrefoil: 9 is in /d/x.dump, 7 bytes\nRemote connection closed\n";
        assert_eq!(
            told(text).expect("it ended"),
            ["9 is in /d/x.dump, 7 bytes"]
        );
        assert!(told("").expect("no machine").is_empty());
        let error = told("Python scripting is not supported\n").expect_err("it did not");
        assert!(error.to_string().contains("Python"), "{error}");
    }

    #[test]
    fn a_machine_that_never_starts_is_no_reason_to_wait() {
        if tool::find("gdb").is_none() {
            return;
        }
        let folder = std::env::temp_dir().join(format!("trefoil-dumps-{}", std::process::id()));
        let mut machine = Machine::new(Path::new("/nonexistent/kernel"), &folder);
        let watch = Watch::start(&mut machine, &["x".into()], &folder).expect("there is gdb");
        assert!(machine.debugger && machine.stub.is_some());
        assert!(watch.end().expect("nothing to do").is_empty());
        fs::remove_dir_all(folder).expect("it is ours");
    }
}
