//! What a test works with: disks made by the host, machines, and their answers.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use machine::disk;
use machine::image;
use machine::qemu::exec_word;
use machine::qemu::{Ended, Event, Guest, Machine};
use machine::session::Session;
use trefoil_gate::build::{self, Built};
use trefoil_gate::project::Project;
use trefoil_gate::tool;

/// How long a machine may take for what is asked of it, unless a test says otherwise.
pub const LIMIT: Duration = Duration::from_secs(120);
/// Length of `/big` on the standard disk.
pub const BIG_LENGTH: usize = 40 << 20;
/// Folders below each other on the standard disk.
pub const DEPTH: usize = 24;

/// What all tests share.
#[derive(Debug)]
pub struct Site {
    /// The clone that is tested.
    pub project: Project,
    /// Its kernel and archive.
    pub built: Built,
    /// A disk with known files; tests get copies.
    standard: PathBuf,
    /// The files of that disk.
    pub root: PathBuf,
    folder: PathBuf,
}

impl Site {
    /// Builds the system and makes the standard disk.
    ///
    /// # Errors
    /// If either cannot be made.
    pub fn prepare() -> Result<Self> {
        let project = Project::here();
        let built = build::build(&project, None)?;
        let folder = project.out.join("tests");
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        let (root, standard) = (folder.join("root"), folder.join("standard.img"));
        fill(&project, &root)?;
        disk::make(&root, &standard, "128M")?;
        Ok(Site {
            project,
            built,
            standard,
            root,
            folder,
        })
    }
}

/// Writes the files of the standard disk.
fn fill(project: &Project, root: &Path) -> Result<()> {
    fs::create_dir_all(root.join("text"))?;
    fs::create_dir_all(root.join("bin"))?;
    fs::write(root.join("text/a.txt"), disk::verses(5000))?;
    fs::write(root.join("text/b.txt"), disk::verses(7))?;
    fs::write(root.join("empty"), "")?;
    fs::write(root.join("big"), disk::noise(BIG_LENGTH, 3))?;
    let deep = (0..DEPTH).fold(root.join("deep"), |path, level| {
        path.join(format!("level{level}"))
    });
    fs::create_dir_all(&deep)?;
    fs::write(deep.join("leaf"), "at the bottom\n")?;
    std::os::unix::fs::symlink("text/b.txt", root.join("link"))?;
    fs::hard_link(root.join("text/b.txt"), root.join("hard"))?;
    for program in build::files_below(&project.images().join("boot/bin"))? {
        let name = program.file_name().context("a program has a name")?;
        fs::copy(&program, root.join("bin").join(name))?;
    }
    Ok(())
}

/// What one test works with. Its folder is removed when the test has passed.
pub struct Bench<'a> {
    /// What all tests share.
    pub site: &'a Site,
    /// A folder for this test alone.
    pub folder: PathBuf,
}

/// What came of a shell line.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// How the machine ended.
    pub ended: Ended,
    /// The kernel's log.
    pub log: String,
}

impl<'a> Bench<'a> {
    /// A bench for the test called `name`.
    ///
    /// # Errors
    /// If its folder cannot be made.
    pub fn new(site: &'a Site, name: &str) -> Result<Self> {
        let folder = site.folder.join(name);
        fs::create_dir_all(&folder)?;
        Ok(Bench { site, folder })
    }

    /// A copy of the standard disk.
    ///
    /// # Errors
    /// If it cannot be copied.
    pub fn disk(&self) -> Result<PathBuf> {
        let copy = self.folder.join("disk.img");
        tool::output(
            Command::new("cp")
                .arg("--sparse=always")
                .arg(&self.site.standard)
                .arg(&copy),
        )?;
        Ok(copy)
    }

    /// A disk of `size` with the files that `fill` puts into a folder.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn small_disk(
        &self,
        size: &str,
        options: &[&str],
        fill: impl FnOnce(&Path) -> Result<()>,
    ) -> Result<PathBuf> {
        let (root, image) = (self.folder.join("root"), self.folder.join("small.img"));
        fs::create_dir_all(&root)?;
        fill(&root)?;
        disk::make_with(&root, &image, size, options)?;
        fs::remove_dir_all(&root)?;
        Ok(image)
    }

    /// A machine that boots the system under test, without a disk.
    pub fn machine(&self) -> Machine {
        let mut machine = Machine::new(&self.site.built.kernel, &self.folder);
        machine.archive = Some(self.site.built.archive.clone());
        machine.words.push("panic=off".into());
        machine
    }

    /// A machine with `disk`.
    pub fn machine_with(&self, disk: &Path) -> Machine {
        let mut machine = self.machine();
        machine.disk = Some(disk.to_path_buf());
        machine
    }

    /// A machine that boots with the text `manifest` instead of the default one.
    ///
    /// # Errors
    /// If the archive cannot be written.
    pub fn machine_by(&self, manifest: &str) -> Result<Machine> {
        let archive = self.folder.join("archive.cpio");
        fs::write(
            &archive,
            build::packed(&self.site.project, manifest.as_bytes())?,
        )?;
        let mut machine = self.machine();
        machine.archive = Some(archive);
        Ok(machine)
    }

    /// Has `machine` run `line` and power off.
    ///
    /// # Errors
    /// If it does not end in time.
    pub fn exec_on(&self, machine: Machine, line: &str) -> Result<Answer> {
        self.exec_within(LIMIT, machine, line)
    }

    /// As [`Bench::exec_on`], with a limit of its own.
    ///
    /// # Errors
    /// If the machine does not end within `limit`.
    pub fn exec_within(&self, limit: Duration, machine: Machine, line: &str) -> Result<Answer> {
        let mut guest = self.begin(machine, line)?;
        let deadline = Instant::now() + limit;
        let mut stdout = Vec::new();
        loop {
            match guest.receive(deadline) {
                Event::Bytes(bytes) => stdout.extend(bytes),
                Event::End => break,
                Event::Silence => {
                    let (printed, log) = (String::from_utf8_lossy(&stdout), guest.log());
                    bail!(
                        "no end of `{line}`; it printed\n{}\nlog:\n{}\nstacks:\n{}",
                        last(&printed, 20),
                        last(&log, 20),
                        guest.stacks()
                    );
                }
            }
        }
        let ended = guest
            .wait(Some(deadline))?
            .context("QEMU goes on without a terminal")?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let stderr = text(&fs::read(&guest.errors)?);
        Ok(Answer {
            stdout: text(&stdout),
            stderr,
            ended,
            log: guest.log(),
        })
    }

    /// Has a machine with `disk` run `line` and power off.
    ///
    /// # Errors
    /// If it does not end in time.
    pub fn exec(&self, disk: &Path, line: &str) -> Result<Answer> {
        self.exec_on(self.machine_with(disk), line)
    }

    /// The tool itself, as the test run knows it by an environment variable, with the command
    /// `name`.
    ///
    /// # Errors
    /// If the tests were not started by the tool.
    pub fn tool(&self, name: &str) -> Result<Command> {
        let program =
            std::env::var_os("TREFOIL_XTASK").context("run this by `cargo xtask test`")?;
        let mut command = Command::new(program);
        command.arg(name).current_dir(&self.site.project.root);
        Ok(command)
    }

    /// Boots `machine` to its prompt.
    ///
    /// # Errors
    /// If the prompt does not come in time.
    pub fn session(&self, machine: &Machine) -> Result<Session> {
        let mut session = Session::start(machine, false)?;
        session.prompt(LIMIT)?;
        Ok(session)
    }

    /// Starts a machine that runs `line`, and has no input.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn begin(&self, mut machine: Machine, line: &str) -> Result<Guest> {
        machine.words.push(exec_word(line));
        let mut guest = machine.start()?;
        guest.close_input();
        Ok(guest)
    }

    /// Fails if `e2fsck -fn` has anything to say about `disk`.
    ///
    /// # Errors
    /// What it says.
    pub fn expect_clean(&self, disk: &Path) -> Result<()> {
        match disk::complaints(disk)? {
            None => Ok(()),
            Some(text) => bail!("e2fsck -fn is not content:\n{text}"),
        }
    }

    /// What is in the file `path` of the file system in `disk`, by the host's tools.
    ///
    /// # Errors
    /// If debugfs cannot be run or there is no such file.
    pub fn host_read(&self, disk: &Path, path: &str) -> Result<Vec<u8>> {
        image::file_by_host(disk, path, &self.folder)
    }
}

impl Answer {
    /// The answer, if the line ended with `status`.
    ///
    /// # Errors
    /// If it did not; the message has all that was printed.
    pub fn status(self, status: i32) -> Result<Self> {
        ensure!(
            self.ended == Ended::Status(status),
            "expected status {status}: {}",
            self.describe()
        );
        Ok(self)
    }

    /// The answer, if exactly this was printed to standard output.
    ///
    /// # Errors
    /// If it was not.
    pub fn prints(self, text: &str) -> Result<Self> {
        ensure!(
            self.stdout == text,
            "expected the output {text:?}: {}",
            self.describe()
        );
        Ok(self)
    }

    /// The answer, if standard output contains `text`.
    ///
    /// # Errors
    /// If it does not.
    pub fn shows(self, text: &str) -> Result<Self> {
        ensure!(
            self.stdout.contains(text),
            "expected {text:?} in the output: {}",
            self.describe()
        );
        Ok(self)
    }

    /// The answer, if the kernel's log contains `text`.
    ///
    /// # Errors
    /// If it does not.
    pub fn logs(self, text: &str) -> Result<Self> {
        self.logs_one_of(&[text])
    }

    /// The kernel's log contains one of these.
    ///
    /// # Errors
    /// It does not.
    pub fn logs_one_of(self, texts: &[&str]) -> Result<Self> {
        ensure!(
            texts.iter().any(|text| self.log.contains(text)),
            "expected one of {texts:?} in the log: {}",
            self.describe()
        );
        Ok(self)
    }

    /// The answer, if standard error contains `text`, whatever the case of its letters.
    ///
    /// # Errors
    /// If it does not.
    pub fn complains(self, text: &str) -> Result<Self> {
        let found = self.stderr.to_lowercase().contains(&text.to_lowercase());
        ensure!(
            found,
            "expected {text:?} in the errors: {}",
            self.describe()
        );
        Ok(self)
    }

    /// The answer, if nothing was printed to standard error.
    ///
    /// # Errors
    /// If something was.
    pub fn silently(self) -> Result<Self> {
        ensure!(
            self.stderr.is_empty(),
            "expected no errors: {}",
            self.describe()
        );
        Ok(self)
    }

    fn describe(&self) -> String {
        let Answer {
            stdout,
            stderr,
            ended,
            log,
        } = self;
        format!(
            "{ended:?}\n  output:\n{}\n  errors:\n{}\n  log:\n{}",
            last(stdout, 20),
            last(stderr, 20),
            last(log, 25)
        )
    }
}

/// The last lines of `text`.
pub fn last(text: &str, count: usize) -> String {
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..]
        .iter()
        .map(|line| format!("    {line}"))
        .collect::<Vec<_>>()
        .join("\n")
}

/// The SHA-256 of `bytes` in hexadecimal, by the host's tool.
///
/// # Errors
/// If it cannot be run.
pub fn host_sum(file: &Path) -> Result<String> {
    let text = tool::output(Command::new("sha256sum").arg(file))?;
    Ok(text
        .split_whitespace()
        .next()
        .context("sha256sum prints a sum")?
        .to_string())
}
