//! The system at its work, until the power goes.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::cuts::survey::WORK;
use crate::storms::strikes::{self, At};
use machine::disk;
use machine::nbd::{Server, Tape};
use machine::qemu::exec_word;
use machine::qemu::{Event, Guest, Machine};
use machine::session::Session;
use trefoil_gate::build::Built;
use workload::Random;

/// How long a system may take for its work.
const LIMIT: Duration = Duration::from_secs(300);

/// A work that was or will be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// Decides all operations.
    pub seed: u64,
    /// How many operations.
    pub operations: usize,
    /// Bytes in a block of the file system.
    pub block_size: u32,
    /// Domains that it needs crash meanwhile.
    pub crashes: bool,
}

/// Crashes until they are made all over again, and milliseconds between them at most.
const CRASHES: usize = 6;
const PAUSE: u64 = 400;

impl Job {
    /// The image that the work starts on: ext3 with the smallest journal, so that it goes around
    /// often.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn image(&self, folder: &Path) -> Result<PathBuf> {
        let (root, image) = (folder.join("root"), folder.join("image"));
        std::fs::create_dir_all(root.join(WORK))?;
        let journal = format!("size={}", self.block_size >> 10);
        let block_size = self.block_size.to_string();
        let options = ["-b", &block_size, "-j", "-J", &journal];
        disk::make_with(&root, &image, "14M", &options)?;
        Ok(image)
    }

    /// The line that does the work, with this option.
    fn line(&self, option: &str) -> String {
        let Job {
            seed, operations, ..
        } = self;
        let crashes = match self.crashes {
            true => {
                let random = &mut Random::new(*seed, 1 << 41);
                let job = strikes::without_end(CRASHES, PAUSE, At::All, random);
                // A short work may be over before the first of these, so it begins with a crash.
                format!("{job} crash ext2 > /dev/null 2>&1; ")
            }
            false => String::new(),
        };
        format!("{crashes}cd /{WORK} && /boot/testing/workload {option} {seed} {operations}")
    }
}

/// A machine with its log in `folder`.
fn system(built: &Built, folder: &Path) -> Machine {
    let mut machine = Machine::new(&built.kernel, folder);
    machine.archive = Some(built.archive.clone());
    machine.words.push("panic=off".into());
    machine
}

/// A machine that runs the shell line `line`, with its log in `folder`.
pub fn machine(built: &Built, folder: &Path, line: &str) -> Machine {
    let mut machine = system(built, folder);
    machine.words.push(exec_word(line));
    machine
}

/// What a system says while it works.
struct Listener {
    guest: Guest,
    text: String,
    /// It has said that the work is done.
    ended: bool,
}

impl Listener {
    fn new(guest: Guest) -> Self {
        Listener {
            guest,
            text: String::new(),
            ended: false,
        }
    }

    /// Operations that it has said to be acknowledged, once for each; `None` at its end.
    fn next(&mut self, deadline: Instant) -> Result<Option<usize>> {
        loop {
            if let Some((line, rest)) = self.text.split_once('\n') {
                let number = line.trim_end().strip_prefix("acknowledged ");
                let number = number.and_then(|number| number.parse().ok());
                self.ended |= line.starts_with("ended ");
                self.text = rest.to_string();
                if number.is_some() {
                    return Ok(number);
                }
                continue;
            }
            match self.guest.receive(deadline) {
                Event::Bytes(bytes) => self.text += &String::from_utf8_lossy(&bytes),
                Event::End => return Ok(None),
                Event::Silence => bail!(
                    "the work does not end; log:\n{}\nstacks:\n{}",
                    self.guest.log(),
                    self.guest.stacks()
                ),
            }
        }
    }
}

/// What was recorded of a work that was done to its end.
pub struct Recorded {
    /// Everything that happened to the disk.
    pub tape: Tape,
    /// After so many events so many operations had been acknowledged.
    pub acknowledged: Vec<(usize, usize)>,
}

/// Has the system do the work on a disk that records everything. It waits after each
/// acknowledgement until we have seen it, so that it is known to the event what was acknowledged
/// when. For that the line is typed: with `exec` programs have no input.
///
/// # Errors
/// If the work is not done to its end.
pub fn record(built: &Built, folder: &Path, job: &Job) -> Result<Recorded> {
    let base = std::fs::read(job.image(folder)?)?;
    // A socket's path must be short.
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let socket = std::env::temp_dir().join(format!("trefoil-nbd-{name}"));
    let server = Server::start(base, &socket)?;
    let mut machine = system(built, folder);
    machine.served = Some(server.socket.clone());
    let mut session = Session::start(&machine, false)?;
    session.prompt(LIMIT)?;
    session.type_line(format!("{}; poweroff", job.line("-w")).as_bytes())?;
    let mut listener = Listener::new(session.guest);
    let deadline = Instant::now() + LIMIT;
    let mut acknowledged = vec![(0, 0)];
    while let Some(number) = listener.next(deadline)? {
        acknowledged.push((server.position(), number));
        listener.guest.send(b"\n")?;
    }
    let log = listener.guest.log();
    if !listener.ended || !log.contains("power off, status 0") {
        bail!("the work was not done: {}\n{log}", listener.text);
    }
    if job.crashes && !log.contains(": restart ") {
        bail!("nothing has crashed under the work:\n{log}");
    }
    let tape = server.tape();
    Ok(Recorded { tape, acknowledged })
}

/// Has the system do the work on the image, and kills its machine so long after so many
/// acknowledgements. How many operations were acknowledged.
///
/// # Errors
/// If the machine cannot be started, or says nothing for too long.
pub fn kill(
    built: &Built,
    folder: &Path,
    job: &Job,
    image: &Path,
    (acknowledgements, pause): (u64, Duration),
) -> Result<usize> {
    let mut machine = machine(built, folder, &job.line(""));
    machine.disk = Some(image.to_path_buf());
    let mut listener = Listener::new(machine.start()?);
    let deadline = Instant::now() + LIMIT;
    let mut last = 0;
    for _ in 0..acknowledgements {
        match listener.next(deadline)? {
            Some(number) => last = number,
            None => break,
        }
    }
    std::thread::sleep(pause);
    listener.guest.kill();
    while let Some(number) = listener.next(deadline)? {
        last = number;
    }
    Ok(last)
}
