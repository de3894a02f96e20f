//! What the interpreter needs of the system that it runs on.

use alloc::string::String;
use alloc::vec::Vec;

/// How a redirection opens a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// To read.
    Read,
    /// To write from the start; made or emptied.
    Write,
    /// As `Write`, but a file that is there already is an error; what is no file, such as
    /// `/dev/null`, is not.
    Create,
    /// To write at the end; made if it is not there.
    Append,
}

/// What is at a path where a program is looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// A file.
    File,
    /// A directory.
    Directory,
    /// Nothing.
    Missing,
    /// It cannot be told; why.
    Error(String),
}

/// A question of `test` about a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileTest {
    /// `-e`
    Exists,
    /// `-f`
    Regular,
    /// `-d`
    Directory,
    /// `-s`: it is not empty.
    NotEmpty,
    /// `-L`
    Symlink,
    /// `-x`
    Executable,
    /// `-p`, `-S`, `-b`, `-c`: a device, pipe or socket.
    Other,
    /// `-t`: the path is a descriptor number, and it leads to a terminal.
    Terminal,
}

/// A program to start.
pub struct SpawnOrder<'a> {
    /// Path of its image.
    pub path: &'a [u8],
    /// Its arguments, its name first.
    pub arguments: &'a [Vec<u8>],
    /// Its environment.
    pub environment: &'a [(String, Vec<u8>)],
    /// What become its descriptors 0, 1 and 2 ([`NO_DESCRIPTOR`]: not open). They stay the shell's
    /// to close.
    pub descriptors: [u32; 3],
    /// Ctrl-C does not reach it.
    pub background: bool,
    /// The process whose job it joins; `None`: it is the first of a new one.
    pub leader: Option<u32>,
}

/// Why a program did not start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpawnError {
    /// There is no such file.
    Missing,
    /// The shell itself is being ended.
    Killed,
    /// The file cannot be run; why.
    Refused(String),
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// With this status.
    Exited(i32),
    /// It was killed.
    Killed,
    /// It crashed.
    Crashed,
    /// It has not: Ctrl-Z stopped it.
    Stopped,
}

/// In [`SpawnOrder::descriptors`]: the program does not get this one.
pub const NO_DESCRIPTOR: u32 = u32::MAX;

/// A line of standard input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// Its text, without the line break.
    Text(Vec<u8>),
    /// There are no more.
    End,
    /// Ctrl-C was pressed: what was typed so far is dropped.
    Interrupted,
}

/// Why something could not be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unwritten {
    /// A pipe whose reader is gone.
    NoReader,
    /// Anything else, in words.
    Failed(String),
}

/// The system under the shell. Errors are texts for the user.
pub trait System {
    /// Opens a file for a redirection.
    ///
    /// # Errors
    /// Why not, without the path.
    fn open(&mut self, path: &[u8], mode: OpenMode) -> Result<u32, String>;
    /// Closes a descriptor.
    fn close(&mut self, descriptor: u32);
    /// A pipe: descriptor to read from, descriptor to write to.
    ///
    /// # Errors
    /// Why not.
    fn pipe(&mut self) -> Result<(u32, u32), String>;
    /// Starts a program.
    ///
    /// # Errors
    /// Why not.
    fn spawn(&mut self, order: &SpawnOrder<'_>) -> Result<u32, SpawnError>;
    /// Waits for a child. `None`: there is no such child (any more).
    fn wait(&mut self, pid: u32) -> Option<Ended>;
    /// As `wait`, but comes back also when Ctrl-Z stops the child.
    fn wait_or_stop(&mut self, pid: u32) -> Option<Ended>;
    /// Lets a child go on that was stopped.
    fn resume(&mut self, pid: u32, background: bool);
    /// Ends a process.
    ///
    /// # Errors
    /// Why not.
    fn kill(&mut self, pid: u32) -> Result<(), String>;
    /// Ends all processes of the job that a child belongs to, with what they have forked.
    ///
    /// # Errors
    /// Why not.
    fn kill_job(&mut self, child: u32) -> Result<(), String>;
    /// Which of these children have ended and can be waited for at once; also those that are not
    /// known.
    fn finished(&mut self, pids: &[u32]) -> Vec<u32>;
    /// Lets a moment pass, before it is asked again whether something has happened.
    fn pause(&mut self);
    /// Everything that can be read from a descriptor.
    ///
    /// # Errors
    /// Why it cannot be read.
    fn read_all(&mut self, descriptor: u32) -> Result<Vec<u8>, String>;
    /// Everything in a file.
    ///
    /// # Errors
    /// Why it cannot be read.
    fn read_file(&mut self, path: &[u8]) -> Result<Vec<u8>, String>;
    /// A descriptor from which `text` can be read.
    ///
    /// # Errors
    /// Why not.
    fn document(&mut self, text: &[u8]) -> Result<u32, String>;
    /// A line from a descriptor, as far as there is one, and whether a line break ended it (it is
    /// not part of the text). Nothing behind the line is taken.
    fn read_from(&mut self, descriptor: u32) -> (Vec<u8>, bool);
    /// Writes all of `text`.
    ///
    /// # Errors
    /// Why not all of it went.
    fn write(&mut self, descriptor: u32, text: &[u8]) -> Result<(), Unwritten>;
    /// The next line of standard input, with a prompt in front if the shell is interactive.
    /// `commands` are the names of its builtins and functions, for completion; `columns` is how
    /// wide the terminal is, if the variable `COLUMNS` tells.
    fn read_line(&mut self, prompt: &str, commands: &[Vec<u8>], columns: Option<usize>) -> Line;
    /// The lines that were typed before, oldest first; none if nobody types.
    fn history(&self) -> Vec<Vec<u8>>;
    /// What is at a path.
    fn lookup(&mut self, path: &[u8]) -> Lookup;
    /// The answer to a question of `test`.
    fn test(&mut self, path: &[u8], question: FileTest) -> bool;
    /// When the file was last changed, in seconds; `None` if there is none.
    fn modified(&mut self, path: &[u8]) -> Option<u64>;
    /// The names in a directory (empty: the working directory).
    fn list(&mut self, directory: &[u8]) -> Vec<Vec<u8>>;
    /// Changes the working directory.
    ///
    /// # Errors
    /// Why not.
    fn change_directory(&mut self, path: &[u8]) -> Result<(), String>;
    /// The working directory.
    ///
    /// # Errors
    /// Why it is not known.
    fn working_directory(&mut self) -> Result<Vec<u8>, String>;
    /// How often Ctrl-C was pressed; only the change from one call to the next counts.
    fn interrupts(&mut self) -> u32;
    /// Processor time in milliseconds: of the shell itself, of others on its behalf, and the same
    /// of its children that have ended.
    fn times(&mut self) -> [u64; 4];
    /// The shell's own process number.
    fn pid(&self) -> u32;
    /// The process number of who started it.
    fn parent(&mut self) -> u32;
    /// Whether there is a process with this number.
    fn exists(&mut self, pid: u32) -> bool;
    /// Whether both paths lead to the same file.
    fn same_file(&mut self, one: &[u8], other: &[u8]) -> bool;
}
