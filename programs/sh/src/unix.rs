//! The shell's [`System`]: a process.

use crate::editor::Person;
use crate::input::{self, Input};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use interfaces::{
    DescriptorKind, Errno, ExitStatus, FileKind, FsError, Job, Metadata, OpenFlags, ProcessInfo,
    RVec, RpcError, SpawnRequest,
};
use shell::{
    Ended, FileTest, Line, Lookup, MOST_EXPANDED, OpenMode, SpawnError, SpawnOrder, System,
    Unwritten,
};
use ulib::{Env, Error};

/// Bytes that are read at once of a command's output.
const CHUNK: usize = 16 * 1024;

/// Longest here-document that goes through a pipe, in bytes.
const PIPED: usize = 32 * 1024;

/// How long to wait until the state of a background process is looked at again, in nanoseconds.
const PAUSE: u64 = 20_000_000;

/// A process as the shell sees it.
pub struct Unix<'a> {
    env: &'a Env,
    input: Input,
    interactive: bool,
    person: Option<Person>,
}

impl<'a> Unix<'a> {
    /// The system calls of `env`; prompts are shown if it is `interactive`.
    pub fn new(env: &'a Env, interactive: bool) -> Self {
        let input = Input::new(env.process().clone());
        Unix {
            env,
            input,
            interactive,
            person: interactive.then(|| Person::new(env)),
        }
    }

    fn path(&self, path: &[u8]) -> Result<RVec<u8>, Error> {
        Ok(RVec::from_slice(path)?)
    }

    /// Whether a file that is no image is to be run by a new shell: a text that may be executed.
    fn is_script(&mut self, path: &[u8]) -> bool {
        let Ok(mut reader) = self.env.open(path) else {
            return false;
        };
        let is_text = reader
            .fill()
            .is_ok_and(|start| !start[..start.len().min(CHUNK)].contains(&0));
        is_text && self.test(path, FileTest::Executable)
    }

    fn spawn_script(&mut self, order: &SpawnOrder<'_>) -> Result<u32, SpawnError> {
        let rest = order.arguments.get(1..).unwrap_or_default();
        let mut arguments = Vec::from([b"sh".to_vec(), order.path.to_vec()]);
        arguments.extend_from_slice(rest);
        let shell = ["/bin/sh", "/boot/bin/sh"]
            .into_iter()
            .find(|path| self.lookup(path.as_bytes()) == Lookup::File);
        let path = shell.ok_or(SpawnError::Missing)?.as_bytes();
        // One that is the shell itself cannot come back here.
        self.spawn(&SpawnOrder {
            path,
            arguments: &arguments,
            environment: order.environment,
            ..*order
        })
    }

    /// A here-document that is longer than a pipe holds: a file without a name.
    fn document_file(&mut self, text: &[u8]) -> Result<u32, String> {
        let pid = self.pid();
        let mut last = String::new();
        for directory in ["/tmp", ""] {
            let path = alloc::format!("{directory}/.sh-{pid}-document").into_bytes();
            let writer = match self.open(&path, OpenMode::Write) {
                Ok(writer) => writer,
                Err(error) => {
                    last = error;
                    continue;
                }
            };
            let written = self.write(writer, text).is_ok();
            self.close(writer);
            let reader = self.open(&path, OpenMode::Read);
            let path = self.path(&path).map_err(self::text)?;
            // It stays while it is open.
            let _ = self.env.process().unlink(&path);
            return match written {
                true => reader,
                false => Err("the here-document could not be written".to_string()),
            };
        }
        Err(alloc::format!("here-document: {last}"))
    }

    /// What there is to know about a process.
    fn process(&self, pid: u32) -> Option<ProcessInfo> {
        let all = (0..).map_while(|index| self.env.process().process(index).ok().flatten());
        all.into_iter().find(|info| info.pid == pid)
    }

    fn request(&self, order: &SpawnOrder<'_>) -> Result<SpawnRequest, RpcError> {
        let mut environment = Vec::new();
        for (name, value) in order.environment {
            environment.push([name.as_bytes(), b"=", value].concat());
        }
        Ok(SpawnRequest {
            path: RVec::from_slice(order.path)?,
            arguments: RVec::from_slice(&with_zeros(order.arguments))?,
            environment: RVec::from_slice(&with_zeros(&environment))?,
            descriptors: order.descriptors,
            background: order.background,
            job: order.leader.map_or(Job::New, Job::Of),
        })
    }
}

/// Texts that are each followed by a zero byte.
fn with_zeros(texts: &[Vec<u8>]) -> Vec<u8> {
    texts
        .iter()
        .flat_map(|text| text.iter().copied().chain([0]))
        .collect()
}

/// Whether both describe one file, as far as that can be told: there is no device number.
fn is_same(one: &Metadata, other: &Metadata) -> bool {
    let key = |it: &Metadata| (it.inode, it.size, it.allocated, it.modified, it.links);
    key(one) == key(other)
}

fn text(error: impl Into<Error>) -> String {
    error.into().to_string()
}

impl System for Unix<'_> {
    fn open(&mut self, path: &[u8], mode: OpenMode) -> Result<u32, String> {
        if mode == OpenMode::Create && self.test(path, FileTest::Regular) {
            return Err("File exists".to_string());
        }
        let writing = mode != OpenMode::Read;
        let flags = OpenFlags {
            read: !writing,
            write: writing,
            create: writing,
            truncate: matches!(mode, OpenMode::Write | OpenMode::Create),
            append: mode == OpenMode::Append,
            exclusive: false,
        };
        let path = self.path(path).map_err(text)?;
        self.env.process().open(&path, flags).map_err(text)
    }

    fn close(&mut self, descriptor: u32) {
        // The descriptor is the shell's own, so the only error is one of a file system that is
        // gone.
        let _ = self.env.process().close(descriptor);
    }

    fn pipe(&mut self) -> Result<(u32, u32), String> {
        self.env
            .process()
            .pipe()
            .map_err(|error| alloc::format!("pipe: {}", text(error)))
    }

    fn spawn(&mut self, order: &SpawnOrder<'_>) -> Result<u32, SpawnError> {
        if order.arguments.iter().any(|argument| argument.contains(&0)) {
            return Err(SpawnError::Refused(
                "an argument has a zero byte in it".to_string(),
            ));
        }
        let request = self
            .request(order)
            .map_err(|error| SpawnError::Refused(text(error)))?;
        let spawned = self.env.process().spawn(request);
        if let Err(Errno::BadImage(_)) = spawned
            && self.is_script(order.path)
        {
            return self.spawn_script(order);
        }
        spawned.map_err(|error| match error {
            Errno::Fs(FsError::NotFound) => SpawnError::Missing,
            Errno::Killed => SpawnError::Killed,
            // What else there is to be invalid in a request, the shell does not get wrong.
            Errno::Invalid => SpawnError::Refused(
                "the arguments and variables are too long for a program".to_string(),
            ),
            error => SpawnError::Refused(text(error)),
        })
    }

    fn wait(&mut self, pid: u32) -> Option<Ended> {
        match self.env.process().wait(pid) {
            Ok((_, ExitStatus::Exited(status))) => Some(Ended::Exited(status)),
            Ok((_, ExitStatus::Killed)) => Some(Ended::Killed),
            Ok((_, ExitStatus::Crashed)) => Some(Ended::Crashed),
            Err(_) => None,
        }
    }

    fn wait_or_stop(&mut self, pid: u32) -> Option<Ended> {
        match self.env.process().wait_or_stop(pid) {
            Ok(Some(ExitStatus::Exited(status))) => Some(Ended::Exited(status)),
            Ok(Some(ExitStatus::Killed)) => Some(Ended::Killed),
            Ok(Some(ExitStatus::Crashed)) => Some(Ended::Crashed),
            Ok(None) => Some(Ended::Stopped),
            Err(_) => None,
        }
    }

    fn resume(&mut self, pid: u32, background: bool) {
        // The only error is that it is gone, and then whoever waits for it will see that.
        let _ = self.env.process().resume(pid, background);
    }

    fn kill(&mut self, pid: u32) -> Result<(), String> {
        self.env.process().kill(pid).map_err(text)
    }

    fn kill_job(&mut self, child: u32) -> Result<(), String> {
        self.env.process().kill_job(child).map_err(text)
    }

    fn finished(&mut self, pids: &[u32]) -> Vec<u32> {
        let mut finished = pids.to_vec();
        let mut index = 0;
        while let Ok(Some(info)) = self.env.process().process(index) {
            if !info.ended {
                finished.retain(|&pid| pid != info.pid);
            }
            index += 1;
        }
        finished
    }

    fn pause(&mut self) {
        // If even that fails, asking again at once does no harm.
        let _ = self.env.process().sleep(PAUSE);
    }

    fn read_all(&mut self, descriptor: u32) -> Result<Vec<u8>, String> {
        let mut all = Vec::new();
        loop {
            let buffer = RVec::filled(0, CHUNK).map_err(text)?;
            let bytes = self.env.process().read(descriptor, buffer).map_err(text)?;
            if bytes.is_empty() {
                return Ok(all);
            }
            if all.len() + bytes.len() > MOST_EXPANDED {
                return Err("the command writes more than can be expanded".to_string());
            }
            all.try_reserve(bytes.len())
                .map_err(|_| text(RpcError::NoMemory))?;
            all.extend_from_slice(&bytes);
        }
    }

    fn read_file(&mut self, path: &[u8]) -> Result<Vec<u8>, String> {
        let read = self
            .env
            .open(path)
            .and_then(|mut reader| reader.read_to_end());
        read.map_err(text)
    }

    fn document(&mut self, text: &[u8]) -> Result<u32, String> {
        if text.len() > PIPED {
            return self.document_file(text);
        }
        let (reader, writer) = self.pipe()?;
        let written = self.write(writer, text).is_ok();
        self.close(writer);
        if !written {
            self.close(reader);
            return Err("the here-document could not be written".to_string());
        }
        Ok(reader)
    }

    fn read_from(&mut self, descriptor: u32) -> (Vec<u8>, bool) {
        match descriptor {
            0 => self.input.plain_line(),
            _ => input::line_of(self.env.process(), descriptor),
        }
    }

    fn write(&mut self, descriptor: u32, text: &[u8]) -> Result<(), Unwritten> {
        let failed = |error: Errno| match error {
            Errno::BrokenPipe => Unwritten::NoReader,
            error => Unwritten::Failed(Error::System(error).to_string()),
        };
        let out_of_memory = |error: RpcError| failed(Errno::Rpc(error));
        let mut rest = RVec::from_slice(text).map_err(out_of_memory)?;
        while !rest.is_empty() {
            let written = match self.env.process().write(descriptor, &rest) {
                Ok(written) if written > 0 => written as usize,
                Ok(_) => return Err(Unwritten::Failed(String::from("nothing was written"))),
                Err(error) => return Err(failed(error)),
            };
            if written >= rest.len() {
                return Ok(());
            }
            rest = RVec::from_slice(&rest[written..]).map_err(out_of_memory)?;
        }
        Ok(())
    }

    fn history(&self) -> Vec<Vec<u8>> {
        self.person.as_ref().map_or(Vec::new(), Person::typed)
    }

    fn read_line(&mut self, prompt: &str, commands: &[Vec<u8>], columns: Option<usize>) -> Line {
        let edited = match &mut self.person {
            Some(person) if !self.input.is_ahead() => {
                person.resize(columns);
                person.line(self.env, prompt.as_bytes(), commands)
            }
            _ => None,
        };
        match edited {
            Some(Line::End) => {
                let _ = self.write(1, b"\n");
                return Line::End;
            }
            Some(line) => return line,
            None => {}
        }
        if self.interactive {
            let _ = self.write(1, prompt.as_bytes());
        }
        let line = self.input.next_line();
        if self.interactive && line != Line::End {
            return line;
        }
        if self.interactive {
            let _ = self.write(1, b"\n");
        }
        line
    }

    fn lookup(&mut self, path: &[u8]) -> Lookup {
        match self.env.metadata(path, true) {
            Ok(metadata) if matches!(metadata.kind, FileKind::Directory) => Lookup::Directory,
            Ok(_) => Lookup::File,
            Err(Error::System(Errno::Fs(FsError::NotFound | FsError::NotDirectory))) => {
                Lookup::Missing
            }
            Err(error) => Lookup::Error(text(error)),
        }
    }

    fn test(&mut self, path: &[u8], question: FileTest) -> bool {
        if question == FileTest::Terminal {
            let descriptor = core::str::from_utf8(path)
                .ok()
                .and_then(|it| it.parse().ok());
            let kind = descriptor.map(|it| self.env.process().kind(it));
            return matches!(kind, Some(Ok(DescriptorKind::Console)));
        }
        let follow = question != FileTest::Symlink;
        let Ok(metadata) = self.env.metadata(path, follow) else {
            return false;
        };
        match question {
            FileTest::Exists => true,
            FileTest::Regular => matches!(metadata.kind, FileKind::Regular),
            FileTest::Directory => matches!(metadata.kind, FileKind::Directory),
            FileTest::Symlink => matches!(metadata.kind, FileKind::Symlink),
            FileTest::NotEmpty => metadata.size > 0,
            FileTest::Executable => metadata.mode & 0o111 != 0,
            FileTest::Other => !matches!(
                metadata.kind,
                FileKind::Regular | FileKind::Directory | FileKind::Symlink
            ),
            FileTest::Terminal => false,
        }
    }

    fn modified(&mut self, path: &[u8]) -> Option<u64> {
        let metadata = self.env.metadata(path, true).ok()?;
        Some(metadata.modified)
    }

    fn list(&mut self, directory: &[u8]) -> Vec<Vec<u8>> {
        let directory = if directory.is_empty() {
            b"."
        } else {
            directory
        };
        let entries = self.env.read_directory(directory).unwrap_or_default();
        entries.into_iter().map(|entry| entry.name).collect()
    }

    fn change_directory(&mut self, path: &[u8]) -> Result<(), String> {
        let path = self.path(path).map_err(text)?;
        self.env.process().change_directory(&path).map_err(text)
    }

    fn working_directory(&mut self) -> Result<Vec<u8>, String> {
        let path = self.env.process().working_directory().map_err(text)?;
        Ok(path.to_vec())
    }

    fn interrupts(&mut self) -> u32 {
        match self.interactive {
            true => self.env.process().interrupts().unwrap_or(0),
            false => 0,
        }
    }

    fn times(&mut self) -> [u64; 4] {
        let times = self.env.process().times();
        times.map_or([0; 4], |times| {
            [
                times.user,
                times.system,
                times.children_user,
                times.children_system,
            ]
            .map(|nanoseconds| nanoseconds / 1_000_000)
        })
    }

    fn pid(&self) -> u32 {
        self.env.process().pid().unwrap_or(0)
    }

    fn parent(&mut self) -> u32 {
        let own = self.pid();
        self.process(own).map_or(0, |info| info.parent)
    }

    fn exists(&mut self, pid: u32) -> bool {
        self.process(pid).is_some()
    }

    fn same_file(&mut self, one: &[u8], other: &[u8]) -> bool {
        let metadata = |path| self.env.metadata(path, true);
        match (metadata(one), metadata(other)) {
            (Ok(one), Ok(other)) => is_same(&one, &other),
            _ => false,
        }
    }
}
