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
}

/// A program to start.
pub struct SpawnOrder<'a> {
    /// Path of its image.
    pub path: &'a [u8],
    /// Its arguments, its name first.
    pub arguments: &'a [Vec<u8>],
    /// Its environment.
    pub environment: &'a [(String, Vec<u8>)],
    /// What become its descriptors 0, 1 and 2. They stay the shell's to close.
    pub descriptors: [u32; 3],
    /// Ctrl-C does not reach it.
    pub background: bool,
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
}

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
    /// Which of these children have ended and can be waited for at once; also those that are not known.
    fn finished(&mut self, pids: &[u32]) -> Vec<u32>;
    /// Lets a moment pass, before it is asked again whether something has happened.
    fn pause(&mut self);
    /// Everything that can be read from a descriptor.
    ///
    /// # Errors
    /// Why it cannot be read.
    fn read_all(&mut self, descriptor: u32) -> Result<Vec<u8>, String>;
    /// Writes all of `text`; errors (a closed pipe) are dropped.
    fn write(&mut self, descriptor: u32, text: &[u8]);
    /// The next line of standard input, with a prompt in front if the shell is interactive.
    fn read_line(&mut self, prompt: &str) -> Line;
    /// What is at a path.
    fn lookup(&mut self, path: &[u8]) -> Lookup;
    /// The answer to a question of `test`.
    fn test(&mut self, path: &[u8], question: FileTest) -> bool;
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
    /// The shell's own process number.
    fn pid(&self) -> u32;
}
