//! Lines that a person types: the editor of `lineedit` on the console, with a history in a file and
//! completion.
//!
//! The console is raw only while a line is typed, and gives one byte at a time, so that what is
//! typed ahead reaches the program that it is meant for.

use alloc::vec::Vec;
use interfaces::{Errno, OpenFlags, RVec};
use lineedit::{Candidates, Editor, Event, History, unescaped, word_start};
use shell::Line;
use textutil::directory::Kind;
use ulib::Env;

/// Lines of history that are kept.
const ENTRIES: usize = 1000;

/// Lines of the file above which it is written anew when it is loaded.
const FILE_ENTRIES: usize = 2 * ENTRIES;

/// How wide the terminal is if `COLUMNS` does not tell.
const COLUMNS: usize = 80;

/// The name of the history in the home directory.
const FILE: &[u8] = b".sh_history";

/// What is needed to read lines from a person.
pub struct Person {
    editor: Editor,
    history: History,
    /// Where the history is; empty: nowhere.
    file: Vec<u8>,
    /// Where programs are.
    programs: Vec<Vec<u8>>,
}

impl Person {
    /// With what the environment says: `HOME` or `HISTFILE`, `PATH`.
    pub fn new(env: &Env) -> Self {
        let environment = env.environment().unwrap_or_default();
        let value = |name: &str| {
            let found = environment.iter().find(|(other, _)| other == name);
            found.map(|(_, value)| value.as_slice())
        };
        let home = value("HOME").unwrap_or(b"/");
        let slash: &[u8] = if home.ends_with(b"/") { b"" } else { b"/" };
        let usual = [home, slash, FILE].concat();
        let path = value("PATH").unwrap_or(b"/bin:/boot/bin");
        let programs = path.split(|&byte| byte == b':');
        let mut person = Person {
            editor: Editor::new(COLUMNS),
            history: History::new(ENTRIES),
            file: value("HISTFILE").map_or(usual, <[u8]>::to_vec),
            programs: programs.map(<[u8]>::to_vec).collect(),
        };
        person.load(env);
        person
    }

    /// The terminal is so many columns wide from the next line on.
    pub fn resize(&mut self, columns: Option<usize>) {
        self.editor.resize(columns.unwrap_or(COLUMNS));
    }

    /// What was typed, oldest first.
    pub fn typed(&self) -> Vec<Vec<u8>> {
        let lines = (0..self.history.len()).filter_map(|at| self.history.get(at));
        lines.map(<[u8]>::to_vec).collect()
    }

    /// Reads the history. Without a disk, or with a damaged one, there is none, and that is no
    /// reason to complain.
    fn load(&mut self, env: &Env) {
        let read = env
            .open(&self.file)
            .and_then(|mut reader| reader.read_to_end());
        let Ok(text) = read else { return };
        self.history.load(&text);
        if text.iter().filter(|&&byte| byte == b'\n').count() > FILE_ENTRIES {
            let whole = RVec::from_slice(&self.history.to_text());
            if let (Ok(whole), Ok(mut writer)) = (whole, env.create(&self.file)) {
                // If that fails the file has fewer lines, or none.
                let _ = writer.write(&whole).and_then(|()| writer.close());
            }
        }
    }

    /// Adds a line to the history and its file.
    fn remember(&mut self, env: &Env, line: &[u8]) {
        if !self.history.add(line) || self.file.is_empty() {
            return;
        }
        let added = self.history.len().checked_sub(1);
        let added = added.and_then(|last| self.history.get(last));
        let text = [added.unwrap_or_default(), b"\n"].concat();
        let flags = OpenFlags {
            read: false,
            write: true,
            create: true,
            truncate: false,
            append: true,
            exclusive: false,
        };
        let process = env.process();
        let written = RVec::from_slice(&self.file).map_err(Errno::from);
        let written = written.and_then(|path| process.open(&path, flags));
        let written = written.and_then(|file| {
            let written = process.write(file, &RVec::from_slice(&text)?);
            let synced = process.sync_file(file);
            process.close(file).and(synced).and(written)
        });
        // A full or missing disk must not keep anybody from typing.
        let _ = written;
    }

    /// The next line; `None` if the console cannot be edited on.
    pub fn line(&mut self, env: &Env, prompt: &[u8], commands: &[Vec<u8>]) -> Option<Line> {
        if !env.process().set_raw(true).unwrap_or(false) {
            return None;
        }
        let line = self.edit(env, prompt, commands);
        // It is cooked again at the latest when this process ends.
        let _ = env.process().set_raw(false);
        if let Line::Text(text) = &line {
            self.remember(env, text);
        }
        Some(line)
    }

    fn edit(&mut self, env: &Env, prompt: &[u8], commands: &[Vec<u8>]) -> Line {
        let mut out = Vec::new();
        self.editor.begin(prompt, &mut out);
        loop {
            if !show(env, &mut out) {
                return Line::End;
            }
            let read = RVec::filled(0, 1).map_err(Errno::from);
            let read = read.and_then(|buffer| env.process().read(0, buffer));
            let Ok([byte]) = read.as_deref() else {
                return Line::End;
            };
            let event = self.editor.feed(*byte, &self.history, &mut out);
            if event == Some(Event::Complete) {
                let candidates = self.candidates(env, commands);
                self.editor.complete(&candidates, &mut out);
                continue;
            }
            if event.is_some() {
                show(env, &mut out);
            }
            match event {
                Some(Event::Line(line)) => return Line::Text(line),
                Some(Event::Interrupted) => return Line::Interrupted,
                Some(Event::End) => return Line::End,
                Some(Event::Complete) | None => {}
            }
        }
    }

    /// What could stand where the cursor is.
    fn candidates(&self, env: &Env, commands: &[Vec<u8>]) -> Candidates {
        let (line, at) = self.editor.line();
        let (start, is_command) = word_start(line, at);
        let word = &line[start..at];
        let slash = word.iter().rposition(|&byte| byte == b'/');
        if let (None, true) = (slash, is_command) {
            let mut names: Vec<(Vec<u8>, u8)> = Vec::new();
            names.extend(commands.iter().map(|name| (name.clone(), b' ')));
            for directory in &self.programs {
                let files = files(env, directory).into_iter();
                names.extend(files.filter(|(_, end)| *end == b' '));
            }
            return Candidates::new(start, word, names);
        }
        let name_at = slash.map_or(0, |slash| slash + 1);
        let directory = unescaped(&word[..name_at]);
        let directory = if directory.is_empty() {
            b"."
        } else {
            directory.as_slice()
        };
        let hidden = word.get(name_at) == Some(&b'.');
        let names = files(env, directory)
            .into_iter()
            .filter(|(name, _)| hidden || !name.starts_with(b"."));
        Candidates::new(start + name_at, &word[name_at..], names)
    }
}

/// The names in a directory, each with what follows it in a line.
fn files(env: &Env, directory: &[u8]) -> Vec<(Vec<u8>, u8)> {
    let entries = env.read_directory(directory).unwrap_or_default();
    let named = entries
        .into_iter()
        .filter(|entry| entry.name != b"." && entry.name != b"..");
    let named = named.map(|entry| {
        let end = match entry.kind {
            Kind::Directory => b'/',
            _ => b' ',
        };
        (entry.name, end)
    });
    named.collect()
}

/// Writes what is to be shown, and whether that went. The console adds carriage returns itself.
fn show(env: &Env, out: &mut Vec<u8>) -> bool {
    let mut text = Vec::with_capacity(out.len());
    for (index, &byte) in out.iter().enumerate() {
        if !(byte == b'\r' && out.get(index + 1) == Some(&b'\n')) {
            text.push(byte);
        }
    }
    out.clear();
    if text.is_empty() {
        return true;
    }
    let written = RVec::from_slice(&text).map_err(Errno::from);
    written
        .and_then(|text| env.process().write(1, &text))
        .is_ok()
}
