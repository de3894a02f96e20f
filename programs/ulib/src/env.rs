//! A running program's surroundings.

use crate::error::{Error, Stop};
use crate::file::{FileWriter, READ, Reader};
use crate::output::Output;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::fmt;
use interfaces::{Handle, Interface, Metadata, Process, RVec, RpcResult, Text};
use textutil::directory::{Entry, unpack};
use textutil::options::Options;
use textutil::path::base_name;

/// Bytes of packed directory entries that are asked for at once.
const DIRECTORY_CHUNK: usize = 16 * 1024;
/// The longest target of a symbolic link.
const LONGEST_LINK: usize = 4096;

/// A running program's surroundings: arguments, environment, files, output.
pub struct Env {
    process: Rc<Handle<dyn Process>>,
    arguments: Vec<Vec<u8>>,
    output: RefCell<Output>,
    failed: Cell<bool>,
}

impl Env {
    /// The surroundings of `process`.
    ///
    /// # Errors
    /// The process does not tell its arguments.
    pub(crate) fn new(process: Rc<Handle<dyn Process>>) -> Result<Self, Error> {
        let arguments = split_zeros(&process.arguments()?);
        let output = RefCell::new(Output::new(process.clone(), 1));
        Ok(Env {
            process,
            arguments,
            output,
            failed: Cell::new(false),
        })
    }

    /// Ends the program: writes what is left to write, says what must be said; the exit status.
    pub(crate) fn finish(&self, result: Result<i32, Stop>) -> i32 {
        let flushed = self.flush();
        let result = match (result, flushed) {
            (Ok(_), Err(stop)) => Err(stop),
            (result, _) => result,
        };
        match result {
            Ok(status) => status,
            Err(Stop::Exit(status)) => status,
            Err(Stop::Fault {
                subject,
                error,
                status,
            }) => {
                match subject {
                    Some(subject) => self.fail(&subject, &error),
                    None => self.complain(format_args!("{error}")),
                }
                status
            }
        }
    }

    /// The system calls.
    pub fn process(&self) -> &Rc<Handle<dyn Process>> {
        &self.process
    }

    /// The program's name, as it was called.
    pub fn name(&self) -> String {
        let name = self
            .arguments
            .first()
            .map_or(&b"?"[..], |name| base_name(name));
        String::from_utf8_lossy(name).into_owned()
    }

    /// The arguments behind the name.
    pub fn arguments(&self) -> &[Vec<u8>] {
        self.arguments.get(1..).unwrap_or_default()
    }

    /// The environment variables, in order.
    ///
    /// # Errors
    /// The process does not tell them.
    pub fn environment(&self) -> Result<Vec<(String, Vec<u8>)>, Error> {
        let all = split_zeros(&self.process.environment()?);
        let pairs = all.iter().filter_map(|setting| {
            let sign = setting.iter().position(|&byte| byte == b'=')?;
            let name = core::str::from_utf8(&setting[..sign]).ok()?;
            Some((String::from(name), setting[sign + 1..].to_vec()))
        });
        Ok(pairs.collect())
    }

    /// Takes the arguments apart; `known` as for [`Options::parse`]. `--help` prints `usage`.
    ///
    /// # Errors
    /// A stop with status 2 and a message if an option is unknown or lacks its value; with status 0
    /// after `--help`.
    pub fn options(&self, usage: &str, known: &str) -> Result<Options, Stop> {
        self.options_of(self.arguments(), usage, known)
    }

    /// Like [`options`](Env::options) for a program that takes nothing else.
    ///
    /// # Errors
    /// As there; an operand is one more.
    pub fn options_alone(&self, usage: &str, known: &str) -> Result<Options, Stop> {
        let options = self.options(usage, known)?;
        match options.operands.first() {
            None => Ok(options),
            Some(operand) => Err(Stop::usage(&alloc::format!(
                "`{}` is not understood; `{} --help` says more",
                String::from_utf8_lossy(operand),
                self.name()
            ))),
        }
    }

    /// Like [`options`](Env::options) over other arguments than the program's own.
    ///
    /// # Errors
    /// As there.
    pub fn options_of(
        &self,
        arguments: &[Vec<u8>],
        usage: &str,
        known: &str,
    ) -> Result<Options, Stop> {
        let options = Options::parse(arguments, known).map_err(|error| {
            Stop::usage(&alloc::format!(
                "{error}; `{} --help` says more",
                self.name()
            ))
        })?;
        if options.help {
            self.write(usage.trim_ascii().as_bytes())?;
            self.write(b"\n")?;
            return Err(Stop::Exit(0));
        }
        Ok(options)
    }

    /// Writes bytes to the standard output, perhaps later.
    ///
    /// # Errors
    /// A quiet stop if nobody reads it any more; otherwise with a message.
    pub fn write(&self, bytes: &[u8]) -> Result<(), Stop> {
        self.output.borrow_mut().write(bytes).map_err(write_error)
    }

    /// Writes formatted text to the standard output. Used by the macros.
    ///
    /// # Errors
    /// As [`write`](Env::write).
    pub fn print(&self, text: fmt::Arguments<'_>) -> Result<(), Stop> {
        match text.as_str() {
            Some(text) => self.write(text.as_bytes()),
            None => self.write(alloc::fmt::format(text).as_bytes()),
        }
    }

    /// Writes formatted text and a line break to the standard output. Used by the macros.
    ///
    /// # Errors
    /// As [`write`](Env::write).
    pub fn print_line(&self, text: fmt::Arguments<'_>) -> Result<(), Stop> {
        self.print(text)?;
        self.write(b"\n")
    }

    /// Writes a buffer to the standard output as it is.
    ///
    /// # Errors
    /// As [`write`](Env::write).
    pub fn write_shared(&self, data: &RVec<u8>) -> Result<(), Stop> {
        self.output
            .borrow_mut()
            .write_shared(data)
            .map_err(write_error)
    }

    /// Writes out what is buffered.
    ///
    /// # Errors
    /// As [`write`](Env::write).
    pub fn flush(&self) -> Result<(), Stop> {
        self.output.borrow_mut().flush().map_err(write_error)
    }

    /// Writes `NAME: text` to the standard error, behind what was printed so far. There is nobody
    /// to tell if that fails.
    pub fn complain(&self, text: fmt::Arguments<'_>) {
        self.failed.set(true);
        self.report(format_args!("{}: {text}", self.name()));
    }

    /// Writes a line to the standard error, behind what was printed so far, that is no complaint.
    pub fn report(&self, text: fmt::Arguments<'_>) {
        let _ = self.flush();
        let line = alloc::format!("{text}\n");
        let mut errors = Output::new(self.process.clone(), 2);
        let _ = errors.write(line.as_bytes()).and_then(|()| errors.flush());
    }

    /// Writes `NAME: SUBJECT: error` to the standard error.
    pub fn fail(&self, subject: &[u8], error: &Error) {
        self.complain(format_args!(
            "{}: {error}",
            String::from_utf8_lossy(subject)
        ));
    }

    /// 1 if the program complained about anything so far, otherwise 0.
    pub fn status(&self) -> i32 {
        i32::from(self.failed.get())
    }

    /// Opens a file or directory to read.
    ///
    /// # Errors
    /// The file system's.
    pub fn open(&self, path: &[u8]) -> Result<Reader, Error> {
        let descriptor = self.process.open(&RVec::from_slice(path)?, READ)?;
        Ok(Reader::new(self.process.clone(), descriptor, true))
    }

    /// Like [`open`](Env::open), but `-` is the standard input.
    ///
    /// # Errors
    /// The file system's.
    pub fn input(&self, path: &[u8]) -> Result<Reader, Error> {
        match path {
            b"-" => Ok(self.stdin()),
            _ => self.open(path),
        }
    }

    /// The standard input.
    pub fn stdin(&self) -> Reader {
        Reader::new(self.process.clone(), 0, false)
    }

    /// Makes (or empties) a file to write.
    ///
    /// # Errors
    /// The file system's.
    pub fn create(&self, path: &[u8]) -> Result<FileWriter, Error> {
        FileWriter::create(self.process.clone(), path)
    }

    /// What is known of a file; of a symbolic link itself unless `follow`.
    ///
    /// # Errors
    /// The file system's.
    pub fn metadata(&self, path: &[u8], follow: bool) -> Result<Metadata, Error> {
        Ok(self.process.metadata(&RVec::from_slice(path)?, follow)?)
    }

    /// The entries of a directory, `.` and `..` among them, in no order.
    ///
    /// # Errors
    /// The file system's.
    pub fn read_directory(&self, path: &[u8]) -> Result<Vec<Entry>, Error> {
        let descriptor = self.process.open(&RVec::from_slice(path)?, READ)?;
        let entries = self.read_entries(descriptor);
        self.process.close(descriptor)?;
        entries
    }

    fn read_entries(&self, descriptor: u32) -> Result<Vec<Entry>, Error> {
        let mut entries = Vec::new();
        loop {
            let buffer = RVec::filled(0, DIRECTORY_CHUNK)?;
            let packed = self.process.read_directory(descriptor, buffer)?;
            if packed.is_empty() {
                return Ok(entries);
            }
            entries.extend(unpack(&packed));
        }
    }

    /// Where a symbolic link leads.
    ///
    /// # Errors
    /// The file system's.
    pub fn read_link(&self, path: &[u8]) -> Result<Vec<u8>, Error> {
        let buffer = RVec::filled(0, LONGEST_LINK)?;
        Ok(self
            .process
            .read_link(&RVec::from_slice(path)?, buffer)?
            .to_vec())
    }

    /// A service of the system that the manifest grants to this program.
    ///
    /// # Errors
    /// It is not granted, or is something else than this program takes it for.
    pub fn service<I: ?Sized + Interface>(&self, name: &str) -> Result<Handle<I>, Stop> {
        let service = self.process.service(Text::new(name));
        let service = service.map_err(|errno| Stop::about(name.as_bytes(), errno))?;
        let wrong = |_| Error::text("the service has another interface");
        service
            .downcast()
            .map_err(wrong)
            .map_err(|error| Stop::about(name.as_bytes(), error))
    }

    /// Calls `operation` with a path as system calls take it.
    ///
    /// # Errors
    /// What the operation gives, or that there is no memory for the path.
    pub fn with_path<T, E: Into<Error>>(
        &self,
        path: &[u8],
        operation: impl FnOnce(&Handle<dyn Process>, &RVec<u8>) -> Result<T, E>,
    ) -> Result<T, Error> {
        let shared: RpcResult<_> = RVec::from_slice(path);
        operation(&self.process, &shared?).map_err(Into::into)
    }
}

fn write_error(error: Error) -> Stop {
    Stop::about(b"write error", error)
}

/// Texts that are each followed by a zero byte.
fn split_zeros(text: &[u8]) -> Vec<Vec<u8>> {
    let text = text.strip_suffix(&[0]).unwrap_or(text);
    match text.is_empty() {
        true => Vec::new(),
        false => text.split(|&byte| byte == 0).map(<[u8]>::to_vec).collect(),
    }
}
