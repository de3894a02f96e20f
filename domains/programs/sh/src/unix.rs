//! The shell's [`System`]: a process.

use crate::input::Input;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use interfaces::{Errno, ExitStatus, FileKind, FsError, OpenFlags, RVec, RpcError, SpawnRequest};
use shell::{
    Ended, FileTest, Line, Lookup, MOST_EXPANDED, OpenMode, SpawnError, SpawnOrder, System,
};
use ulib::{Env, Error};

/// Bytes that are read at once of a command's output.
const CHUNK: usize = 16 * 1024;

/// How long to wait until the state of a background process is looked at again, in nanoseconds.
const PAUSE: u64 = 20_000_000;

/// A process as the shell sees it.
pub struct Unix<'a> {
    env: &'a Env,
    input: Input,
    interactive: bool,
}

impl<'a> Unix<'a> {
    /// The system calls of `env`; prompts are shown if it is `interactive`.
    pub fn new(env: &'a Env, interactive: bool) -> Self {
        let input = Input::new(env.process().clone());
        Unix {
            env,
            input,
            interactive,
        }
    }

    fn path(&self, path: &[u8]) -> Result<RVec<u8>, Error> {
        Ok(RVec::from_slice(path)?)
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

fn text(error: impl Into<Error>) -> String {
    error.into().to_string()
}

impl System for Unix<'_> {
    fn open(&mut self, path: &[u8], mode: OpenMode) -> Result<u32, String> {
        let writing = mode != OpenMode::Read;
        let flags = OpenFlags {
            read: !writing,
            write: writing,
            create: writing,
            truncate: mode == OpenMode::Write,
            append: mode == OpenMode::Append,
            exclusive: false,
        };
        let path = self.path(path).map_err(text)?;
        self.env.process().open(&path, flags).map_err(text)
    }

    fn close(&mut self, descriptor: u32) {
        // The descriptor is the shell's own, so the only error is one of a file system that is gone.
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
        self.env
            .process()
            .spawn(request)
            .map_err(|error| match error {
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

    fn write(&mut self, descriptor: u32, text: &[u8]) {
        let Ok(mut rest) = RVec::from_slice(text) else {
            return;
        };
        while !rest.is_empty() {
            match self.env.process().write(descriptor, &rest) {
                Ok(written @ 1..) if (written as usize) < rest.len() => {
                    match RVec::from_slice(&rest[written as usize..]) {
                        Ok(more) => rest = more,
                        Err(_) => return,
                    }
                }
                _ => return,
            }
        }
    }

    fn read_line(&mut self, prompt: &str) -> Line {
        if self.interactive {
            self.write(1, prompt.as_bytes());
        }
        let line = self.input.next_line();
        if self.interactive && line != Line::End {
            return line;
        }
        if self.interactive {
            self.write(1, b"\n");
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
        }
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

    fn pid(&self) -> u32 {
        self.env.process().pid().unwrap_or(0)
    }
}
