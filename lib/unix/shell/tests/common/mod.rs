//! A little Unix in memory for the shell's tests: files, pipes, a handful of programs that run to
//! their end as soon as they are started, and a check that the shell closes every descriptor that
//! it opens.
#![allow(dead_code)]

use shell::*;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

#[derive(Clone, Debug)]
pub enum Object {
    Input,
    Output,
    Errors,
    Closed,
    File { path: Vec<u8>, at: usize },
    Pipe(usize),
}

#[derive(Default)]
pub struct World {
    pub files: BTreeMap<Vec<u8>, Vec<u8>>,
    pub pipes: Vec<Vec<u8>>,
    pub output: Vec<u8>,
    pub errors: Vec<u8>,
    pub input: Vec<Line>,
    pub children: BTreeMap<u32, Ended>,
    pub pids: u32,
    pub interrupts: u32,
    /// Children that Ctrl-Z stops once.
    pub stoppers: BTreeMap<u32, ()>,
    /// Children that do not end.
    pub endless: Vec<u32>,
    /// Programs that were started: arguments joined by blanks, with ` &` behind if in the
    /// background.
    pub started: Vec<String>,
    /// What each line was asked for with: how wide the terminal is.
    pub columns: Vec<Option<usize>>,
    /// Whose job each of them joined.
    pub leaders: Vec<Option<u32>>,
}

#[derive(Clone)]
pub struct Fake {
    pub world: Rc<RefCell<World>>,
    pub table: BTreeMap<u32, Object>,
    pub directory: Vec<u8>,
}

impl Fake {
    pub fn new() -> Self {
        let mut world = World::default();
        for name in [
            "echo", "cat", "true", "false", "crasher", "killed", "status", "sh", "env", "int",
            "told", "endless", "say", "stopper",
        ] {
            world
                .files
                .insert(format!("/bin/{name}").into_bytes(), Vec::new());
        }
        world
            .files
            .insert(b"/bin/broken".to_vec(), b"broken".to_vec());
        let world = Rc::new(RefCell::new(world));
        Fake {
            world,
            table: standard([Object::Input, Object::Output, Object::Errors]),
            directory: b"/".to_vec(),
        }
    }

    fn absolute(&self, path: &[u8]) -> Vec<u8> {
        match path.first() {
            Some(b'/') => path.to_vec(),
            _ => [
                self.directory.trim_ascii(),
                if self.directory == b"/" { b"" } else { b"/" },
                path,
            ]
            .concat(),
        }
    }

    fn new_descriptor(&mut self, object: Object) -> u32 {
        let descriptor = (0..).find(|n| !self.table.contains_key(n)).unwrap();
        self.table.insert(descriptor, object);
        descriptor
    }

    fn put(&mut self, object: &Object, text: &[u8]) {
        let mut world = self.world.borrow_mut();
        match object {
            Object::Output => world.output.extend_from_slice(text),
            Object::Errors => world.errors.extend_from_slice(text),
            Object::File { path, .. } => world.files.get_mut(path).unwrap().extend_from_slice(text),
            Object::Pipe(index) => world.pipes[*index].extend_from_slice(text),
            Object::Input | Object::Closed => panic!("write to the input"),
        }
    }

    fn take(&mut self, object: &Object) -> Vec<u8> {
        let mut world = self.world.borrow_mut();
        match object {
            Object::File { path, at } => world.files[path][*at..].to_vec(),
            Object::Pipe(index) => std::mem::take(&mut world.pipes[*index]),
            _ => Vec::new(),
        }
    }

    fn run(&mut self, order: &SpawnOrder<'_>, fds: &[Object; 3]) -> Ended {
        let arguments = &order.arguments[1..];
        let name = order.path.rsplit(|&b| b == b'/').next().unwrap();
        match name {
            b"echo" | b"say" => {
                self.put(&fds[1], &[arguments.join(&b' '), b"\n".to_vec()].concat())
            }
            b"cat" => {
                let text = self.take(&fds[0]);
                self.put(&fds[1], &text);
            }
            b"env" => {
                for (name, value) in order.environment {
                    let value = String::from_utf8_lossy(value);
                    self.put(&fds[1], format!("{name}={value}\n").as_bytes());
                }
            }
            b"false" => return Ended::Exited(1),
            b"status" => {
                self.put(&fds[2], b"status says\n");
                return Ended::Exited(String::from_utf8_lossy(&arguments[0]).parse().unwrap());
            }
            b"crasher" => return Ended::Crashed,
            b"killed" => return Ended::Killed,
            b"int" => {
                self.world.borrow_mut().interrupts += 1;
                return Ended::Killed;
            }
            b"told" => self.world.borrow_mut().interrupts += 1,
            b"sh" => return self.run_shell(order, fds),
            _ => {}
        }
        Ended::Exited(0)
    }

    fn run_shell(&mut self, order: &SpawnOrder<'_>, fds: &[Object; 3]) -> Ended {
        let mut inner = self.clone();
        inner.table = standard(fds.clone());
        let positional = order.arguments[5..].to_vec();
        let mut shell = Shell::new(inner, positional, order.environment.to_vec(), false);
        shell.restore(&order.arguments[2]);
        Ended::Exited(shell.run_text(&order.arguments[4]))
    }
}

fn standard(objects: [Object; 3]) -> BTreeMap<u32, Object> {
    (0..).zip(objects).collect()
}

impl System for Fake {
    fn open(&mut self, path: &[u8], mode: OpenMode) -> Result<u32, String> {
        if path.is_empty() {
            return Err("No such file or directory".into());
        }
        let path = self.absolute(path);
        let at = {
            let mut world = self.world.borrow_mut();
            match mode {
                OpenMode::Read => {
                    world.files.get(&path).ok_or("No such file or directory")?;
                }
                OpenMode::Create if world.files.contains_key(&path) => {
                    return Err("File exists".into());
                }
                OpenMode::Write | OpenMode::Create => {
                    drop(world.files.insert(path.clone(), Vec::new()))
                }
                OpenMode::Append => drop(world.files.entry(path.clone()).or_default()),
            }
            0
        };
        Ok(self.new_descriptor(Object::File { path, at }))
    }

    fn close(&mut self, descriptor: u32) {
        assert!(
            self.table.remove(&descriptor).is_some(),
            "closed twice: {descriptor}"
        );
    }

    fn pipe(&mut self) -> Result<(u32, u32), String> {
        let index = {
            let mut world = self.world.borrow_mut();
            world.pipes.push(Vec::new());
            world.pipes.len() - 1
        };
        Ok((
            self.new_descriptor(Object::Pipe(index)),
            self.new_descriptor(Object::Pipe(index)),
        ))
    }

    fn spawn(&mut self, order: &SpawnOrder<'_>) -> Result<u32, SpawnError> {
        if order.path.ends_with(b"broken") {
            return Err(SpawnError::Refused("not a program image".into()));
        }
        let fds = order.descriptors.map(|descriptor| match descriptor {
            NO_DESCRIPTOR => Object::Closed,
            descriptor => self.table[&descriptor].clone(),
        });
        let mut arguments = order.arguments.to_vec();
        if arguments.get(1).is_some_and(|it| it == b"-S") {
            arguments.drain(1..3);
        }
        let mut line = String::from_utf8_lossy(&arguments.join(&b' ')).into_owned();
        if order.background {
            line += " &";
        }
        let pid = {
            let mut world = self.world.borrow_mut();
            world.started.push(line);
            world.leaders.push(order.leader);
            world.pids += 1;
            world.pids
        };
        if order.path.ends_with(b"stopper") {
            self.world.borrow_mut().stoppers.insert(pid, ());
        }
        if order.path.ends_with(b"endless") {
            self.world.borrow_mut().endless.push(pid);
            return Ok(pid);
        }
        let ended = self.run(order, &fds);
        self.world.borrow_mut().children.insert(pid, ended);
        Ok(pid)
    }

    fn wait(&mut self, pid: u32) -> Option<Ended> {
        self.world.borrow_mut().children.remove(&pid)
    }

    fn wait_or_stop(&mut self, pid: u32) -> Option<Ended> {
        let stopped = self.world.borrow_mut().stoppers.remove(&pid);
        if stopped.is_some() {
            self.world.borrow_mut().endless.push(pid);
        }
        match stopped {
            Some(()) => Some(Ended::Stopped),
            None => self.wait(pid),
        }
    }

    fn resume(&mut self, pid: u32, background: bool) {
        let how = if background { "bg" } else { "fg" };
        let mut world = self.world.borrow_mut();
        world.started.push(format!("{how} {pid}"));
        if !background {
            world.endless.retain(|&other| other != pid);
        }
    }

    fn kill(&mut self, pid: u32) -> Result<(), String> {
        let mut world = self.world.borrow_mut();
        world.endless.retain(|&other| other != pid);
        world.started.push(format!("kill {pid}"));
        world.children.insert(pid, Ended::Killed);
        Ok(())
    }

    fn kill_job(&mut self, child: u32) -> Result<(), String> {
        let mut world = self.world.borrow_mut();
        world.endless.retain(|&other| other != child);
        world.started.push(format!("kill job of {child}"));
        world.children.insert(child, Ended::Killed);
        Ok(())
    }

    fn finished(&mut self, pids: &[u32]) -> Vec<u32> {
        let world = self.world.borrow();
        let mut ended = pids.to_vec();
        ended.retain(|pid| !world.endless.contains(pid));
        ended
    }

    fn pause(&mut self) {
        // Somebody loses patience.
        self.world.borrow_mut().interrupts += 1;
    }

    fn read_all(&mut self, descriptor: u32) -> Result<Vec<u8>, String> {
        let object = self.table[&descriptor].clone();
        Ok(self.take(&object))
    }

    fn read_file(&mut self, path: &[u8]) -> Result<Vec<u8>, String> {
        let path = self.absolute(path);
        let found = self.world.borrow().files.get(&path).cloned();
        found.ok_or("No such file or directory".into())
    }

    fn document(&mut self, text: &[u8]) -> Result<u32, String> {
        let (reader, writer) = self.pipe()?;
        self.write(writer, text).expect("it is no broken file");
        self.close(writer);
        Ok(reader)
    }

    fn read_from(&mut self, descriptor: u32) -> (Vec<u8>, bool) {
        let take = |text: &mut Vec<u8>| match text.iter().position(|&byte| byte == b'\n') {
            Some(end) => {
                let mut line: Vec<u8> = text.drain(..=end).collect();
                line.pop();
                (line, true)
            }
            None => (std::mem::take(text), false),
        };
        let mut world = self.world.borrow_mut();
        match self.table.get_mut(&descriptor).unwrap() {
            Object::Input if world.input.is_empty() => (Vec::new(), false),
            Object::Input => match world.input.remove(0) {
                Line::Text(line) => (line, true),
                _ => (Vec::new(), false),
            },
            Object::File { path, at } => {
                let mut rest = world.files[path][*at..].to_vec();
                let before = rest.len();
                let line = take(&mut rest);
                *at += before - rest.len();
                line
            }
            Object::Pipe(index) => take(&mut world.pipes[*index]),
            _ => panic!("nothing to read"),
        }
    }

    fn write(&mut self, descriptor: u32, text: &[u8]) -> Result<(), Unwritten> {
        let object = self.table[&descriptor].clone();
        if let Object::File { path, .. } = &object {
            match path.as_slice() {
                b"/broken-pipe" => return Err(Unwritten::NoReader),
                b"/full" => return Err(Unwritten::Failed("No space left on device".into())),
                _ => {}
            }
        }
        self.put(&object, text);
        Ok(())
    }

    fn history(&self) -> Vec<Vec<u8>> {
        vec![b"ls /".to_vec(), b"echo two words".to_vec()]
    }

    fn read_line(&mut self, _prompt: &str, _commands: &[Vec<u8>], columns: Option<usize>) -> Line {
        self.world.borrow_mut().columns.push(columns);
        let mut world = self.world.borrow_mut();
        if world.input.is_empty() {
            return Line::End;
        }
        let line = world.input.remove(0);
        if line == Line::Interrupted {
            world.interrupts += 1;
        }
        line
    }

    fn lookup(&mut self, path: &[u8]) -> Lookup {
        let path = self.absolute(path);
        if path.starts_with(b"/down/") {
            return Lookup::Error("file system was restarted, try again".into());
        }
        match self.world.borrow().files.contains_key(&path) {
            true => Lookup::File,
            false if path == b"/bin" || path == b"/" => Lookup::Directory,
            false => Lookup::Missing,
        }
    }

    fn test(&mut self, path: &[u8], question: FileTest) -> bool {
        let found = self.lookup(path);
        match question {
            FileTest::Exists => found != Lookup::Missing,
            FileTest::Regular => found == Lookup::File,
            FileTest::Directory => found == Lookup::Directory,
            _ => false,
        }
    }

    fn modified(&mut self, path: &[u8]) -> Option<u64> {
        let path = self.absolute(path);
        let world = self.world.borrow();
        world.files.get(&path).map(|content| content.len() as u64)
    }

    fn list(&mut self, directory: &[u8]) -> Vec<Vec<u8>> {
        let directory = self.absolute(directory.trim_suffix_slash());
        let prefix = if directory == b"/" {
            directory
        } else {
            [directory, b"/".to_vec()].concat()
        };
        let world = self.world.borrow();
        let inside = world
            .files
            .keys()
            .filter_map(|path| path.strip_prefix(prefix.as_slice()));
        let mut names: Vec<Vec<u8>> = inside
            .map(|rest| rest.split(|&b| b == b'/').next().unwrap().to_vec())
            .collect();
        names.dedup();
        names
    }

    fn change_directory(&mut self, path: &[u8]) -> Result<(), String> {
        match path {
            b"/nowhere" | b"/nonexistent/dir" => Err("No such file or directory".into()),
            _ => {
                self.directory = self.absolute(path);
                Ok(())
            }
        }
    }

    fn working_directory(&mut self) -> Result<Vec<u8>, String> {
        Ok(self.directory.clone())
    }

    fn parent(&mut self) -> u32 {
        7
    }

    fn exists(&mut self, pid: u32) -> bool {
        pid == self.pid() || self.world.borrow().endless.contains(&pid)
    }

    fn same_file(&mut self, one: &[u8], other: &[u8]) -> bool {
        self.absolute(one) == self.absolute(other)
    }

    fn interrupts(&mut self) -> u32 {
        self.world.borrow().interrupts
    }

    fn times(&mut self) -> [u64; 4] {
        [1, 2_030, 61_400, 3_600_000]
    }

    fn pid(&self) -> u32 {
        77
    }
}

trait TrimSlash {
    fn trim_suffix_slash(&self) -> &[u8];
}

impl TrimSlash for [u8] {
    fn trim_suffix_slash(&self) -> &[u8] {
        match self {
            [rest @ .., b'/'] if !rest.is_empty() => rest,
            _ => self,
        }
    }
}

/// What a run of the shell left behind.
pub struct Outcome {
    pub status: i32,
    pub output: String,
    pub errors: String,
    pub started: Vec<String>,
    pub leaders: Vec<Option<u32>>,
    pub files: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl Outcome {
    pub fn file(&self, path: &str) -> String {
        String::from_utf8(self.files[path.as_bytes()].clone()).unwrap()
    }
}

fn outcome(mut shell: Shell<Fake>, status: i32) -> Outcome {
    let system = shell.system();
    assert_eq!(
        system.table.keys().collect::<Vec<_>>(),
        [&0, &1, &2],
        "left open"
    );
    let world = system.world.borrow();
    Outcome {
        status,
        output: String::from_utf8_lossy(&world.output).into_owned(),
        errors: String::from_utf8_lossy(&world.errors).into_owned(),
        started: world.started.clone(),
        leaders: world.leaders.clone(),
        files: world.files.clone(),
    }
}

fn shell_on(fake: Fake, interactive: bool) -> Shell<Fake> {
    let positional = ["sh", "one", "two words"]
        .map(|text| text.as_bytes().to_vec())
        .to_vec();
    let environment = vec![("HOME".to_string(), b"/home".to_vec())];
    Shell::new(fake, positional, environment, interactive)
}

/// Runs `text` like `sh -c` with `$1` = `one` and `$2` = `two words`, over `files`.
pub fn run_over(files: &[(&str, &str)], text: &str) -> Outcome {
    let fake = Fake::new();
    for (path, content) in files {
        fake.world
            .borrow_mut()
            .files
            .insert(path.as_bytes().to_vec(), content.as_bytes().to_vec());
    }
    let mut shell = shell_on(fake, false);
    let status = shell.run_text(text.as_bytes());
    outcome(shell, status)
}

/// Runs `text` over no files but the programs.
pub fn run(text: &str) -> Outcome {
    run_over(&[], text)
}

/// Runs an interactive shell on these lines of input.
pub fn run_lines(lines: Vec<Line>) -> Outcome {
    let fake = Fake::new();
    fake.world.borrow_mut().input = lines;
    let mut shell = shell_on(fake, true);
    let status = shell.run_input();
    outcome(shell, status)
}

/// How wide the terminal was said to be at each of these lines.
pub fn columns_of(lines: Vec<Line>) -> Vec<Option<usize>> {
    let fake = Fake::new();
    let world = fake.world.clone();
    world.borrow_mut().input = lines;
    shell_on(fake, true).run_input();
    world.borrow().columns.clone()
}

/// A line of input.
pub fn line(text: &str) -> Line {
    Line::Text(text.as_bytes().to_vec())
}

/// Runs `text` like `sh -c` without arguments and environment, as far as there are programs.
pub fn run_alone(text: &str) -> Outcome {
    let mut shell = Shell::new(Fake::new(), vec![b"sh".to_vec()], Vec::new(), false);
    let status = shell.run_text(text.as_bytes());
    outcome(shell, status)
}
