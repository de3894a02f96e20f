//! A simple file system in memory, and a disk under it on which any prefix of the changes since the
//! last `sync` may be when it crashes. Free numbers are given out again at once, lowest first, so
//! that reuse is the rule.

pub mod pair;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use redo::intent::SETTING;
use redo::{Action, Facts, Fault, Kind, Node, Outcome, Severity, Target};

pub const ROOT: u64 = 2;
/// The directory of hidden names.
pub const UNNAMED: u64 = 3;
const FIRST: u64 = 11;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    Dead,
    Trouble,
    Missing,
    Exists,
    NotDirectory,
    IsDirectory,
    NotEmpty,
    Invalid,
    Failed,
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Error {
        match fault {
            Fault::Missing => Error::Missing,
            Fault::Exists => Error::Exists,
            Fault::Failed => Error::Failed,
        }
    }
}

impl Error {
    /// What the engine is to make of it.
    pub fn severity(&self) -> Severity {
        match self {
            Error::Dead => Severity::Dead,
            Error::Trouble | Error::Failed => Severity::Trouble,
            Error::Missing => Severity::Missing,
            _ => Severity::Answer,
        }
    }
}

pub type Result<T> = std::result::Result<T, Error>;

/// What can be set of an inode.
#[derive(Clone, Copy, Debug)]
pub enum Setting {
    Mode(u16),
    /// Of the last access, of the last change; `None`: stays.
    Times([Option<u64>; 2]),
}

impl Setting {
    /// As bytes: what it is, and two words, each after a mark that it is there.
    pub fn pack(&self, place: &mut [u8; SETTING]) {
        let (code, words) = match *self {
            Setting::Mode(mode) => (1, [Some(mode.into()), None]),
            Setting::Times(times) => (2, times),
        };
        place[0] = code;
        for (word, place) in words.into_iter().zip(place[8..].chunks_exact_mut(16)) {
            place[0] = word.is_some().into();
            place[8..].copy_from_slice(&word.unwrap_or(0).to_le_bytes());
        }
    }

    /// From bytes.
    pub fn unpack(bytes: &[u8; SETTING]) -> Option<Self> {
        let word = |at: usize| {
            let word = u64::from_le_bytes(bytes[at + 8..at + 16].try_into().unwrap());
            (bytes[at] != 0).then_some(word)
        };
        match bytes[0] {
            1 => Some(Setting::Mode(word(8)? as u16)),
            2 => Some(Setting::Times([word(8), word(24)])),
            _ => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    File(Vec<u8>),
    Directory(BTreeMap<Vec<u8>, u64>),
    Symlink(Vec<u8>),
    Node(Node),
}

#[derive(Clone, Debug)]
pub struct Inode {
    pub body: Body,
    pub mode: u16,
    pub links: u32,
    pub open: u32,
    /// Of the last access and the last change of the content.
    pub times: [u64; 2],
}

/// The time at which everything happens.
pub const NOW: u64 = 1_700_000_000;

/// The file system.
#[derive(Clone, Debug)]
pub struct Model {
    pub inodes: BTreeMap<u64, Inode>,
}

impl Model {
    pub fn new() -> Self {
        let empty = Inode {
            body: Body::Directory(BTreeMap::new()),
            mode: 0o755,
            links: 1,
            open: 0,
            times: [NOW; 2],
        };
        Model {
            inodes: BTreeMap::from([(ROOT, empty.clone()), (UNNAMED, empty)]),
        }
    }

    pub fn inode(&self, number: u64) -> Result<&Inode> {
        self.inodes.get(&number).ok_or(Error::Missing)
    }

    pub fn names(&self, directory: u64) -> Result<&BTreeMap<Vec<u8>, u64>> {
        match &self.inode(directory)?.body {
            Body::Directory(names) => Ok(names),
            _ => Err(Error::NotDirectory),
        }
    }

    fn names_mut(&mut self, directory: u64) -> &mut BTreeMap<Vec<u8>, u64> {
        match &mut self.inodes.get_mut(&directory).unwrap().body {
            Body::Directory(names) => names,
            _ => panic!("not a directory"),
        }
    }

    pub fn look_up(&self, directory: u64, name: &[u8]) -> Result<u64> {
        self.names(directory)?
            .get(name)
            .copied()
            .ok_or(Error::Missing)
    }

    pub fn is_directory(&self, number: u64) -> Result<bool> {
        Ok(matches!(self.inode(number)?.body, Body::Directory(_)))
    }

    fn content(&mut self, number: u64) -> Result<&mut Vec<u8>> {
        match &mut self.inodes.get_mut(&number).ok_or(Error::Missing)?.body {
            Body::File(content) => Ok(content),
            _ => Err(Error::Invalid),
        }
    }

    fn insert(&mut self, directory: u64, name: &[u8], body: Body, mode: u16) -> Result<Outcome> {
        self.vacant(directory, name)?;
        let number = (FIRST..)
            .find(|number| !self.inodes.contains_key(number))
            .unwrap();
        let inode = Inode {
            body,
            mode,
            links: 1,
            open: 0,
            times: [NOW; 2],
        };
        self.inodes.insert(number, inode);
        self.names_mut(directory).insert(name.into(), number);
        Ok(Outcome::Made(number))
    }

    fn vacant(&self, directory: u64, name: &[u8]) -> Result<()> {
        if self.inode(directory)?.links == 0 {
            return Err(Error::Missing);
        }
        match self.names(directory)?.contains_key(name) {
            true => Err(Error::Exists),
            false => Ok(()),
        }
    }

    fn drop_link(&mut self, number: u64) {
        self.inodes.get_mut(&number).unwrap().links -= 1;
        self.reap(number);
    }

    fn reap(&mut self, number: u64) {
        if self
            .inodes
            .get(&number)
            .is_some_and(|inode| inode.links == 0 && inode.open == 0)
        {
            self.inodes.remove(&number);
        }
    }

    pub fn open(&mut self, number: u64) {
        self.inodes.get_mut(&number).unwrap().open += 1;
    }

    pub fn close(&mut self, number: u64) {
        self.inodes.get_mut(&number).unwrap().open -= 1;
        self.reap(number);
    }

    /// What a mount makes of it.
    fn mount(&mut self) {
        self.inodes.values_mut().for_each(|inode| inode.open = 0);
        self.inodes.retain(|_, inode| inode.links > 0);
    }

    fn is_inside(&self, directory: u64, of: u64) -> bool {
        let below = |names: &BTreeMap<Vec<u8>, u64>| {
            names
                .values()
                .any(|&child| self.is_inside(directory, child))
        };
        directory == of || self.names(of).is_ok_and(below)
    }

    fn rename(&mut self, from: u64, name: &[u8], to: u64, new_name: &[u8]) -> Result<Outcome> {
        let source = self.look_up(from, name)?;
        if self.inode(to)?.links == 0 {
            return Err(Error::Missing);
        }
        let target = self.names(to)?.get(new_name).copied();
        if target == Some(source) {
            return Ok(Outcome::Done);
        }
        let directory = self.is_directory(source)?;
        if directory && self.is_inside(to, source) {
            return Err(Error::Invalid);
        }
        if let Some(target) = target {
            match (directory, self.is_directory(target)?) {
                (false, true) => return Err(Error::IsDirectory),
                (true, false) => return Err(Error::NotDirectory),
                (true, true) if !self.names(target)?.is_empty() => return Err(Error::NotEmpty),
                _ => self.drop_link(target),
            }
        }
        self.names_mut(from).remove(name);
        self.names_mut(to).insert(new_name.into(), source);
        Ok(Outcome::Done)
    }

    fn exchange(&mut self, on: [u64; 2], names: [&[u8]; 2]) -> Result<Outcome> {
        let one = self.look_up(on[0], names[0])?;
        let other = self.look_up(on[1], names[1])?;
        if one == other {
            return Ok(Outcome::Done);
        }
        for (inode, to) in [(one, on[1]), (other, on[0])] {
            if self.is_directory(inode)? && self.is_inside(to, inode) {
                return Err(Error::Invalid);
            }
        }
        self.names_mut(on[0]).insert(names[0].into(), other);
        self.names_mut(on[1]).insert(names[1].into(), one);
        Ok(Outcome::Done)
    }

    fn remove(&mut self, directory: u64, name: &[u8], is_directory: bool) -> Result<Outcome> {
        let number = self.look_up(directory, name)?;
        match (is_directory, self.is_directory(number)?) {
            (false, true) => return Err(Error::IsDirectory),
            (true, false) => return Err(Error::NotDirectory),
            (true, true) if !self.names(number)?.is_empty() => return Err(Error::NotEmpty),
            _ => {}
        }
        self.names_mut(directory).remove(name);
        self.drop_link(number);
        Ok(Outcome::Done)
    }

    fn change_times(&mut self, inode: u64, new: [Option<u64>; 2]) -> Result<()> {
        let inode = self.inodes.get_mut(&inode).ok_or(Error::Missing)?;
        for (time, new) in inode.times.iter_mut().zip(new) {
            *time = new.unwrap_or(*time);
        }
        Ok(())
    }

    pub fn perform(&mut self, action: &Action<Vec<u8>, Setting>, on: [u64; 2]) -> Result<Outcome> {
        match action {
            Action::Write { offset, data } => {
                let content = self.content(on[0])?;
                let end = *offset as usize + data.len();
                content.resize(content.len().max(end), 0);
                content[*offset as usize..end].copy_from_slice(data);
                if !data.is_empty() {
                    self.change_times(on[0], [None, Some(NOW)])?;
                }
                return Ok(Outcome::Wrote(data.len() as u64));
            }
            Action::Truncate { size } => {
                self.content(on[0])?.resize(*size as usize, 0);
                self.change_times(on[0], [None, Some(NOW)])?;
            }
            Action::Set(Setting::Mode(mode)) => {
                self.inodes.get_mut(&on[0]).ok_or(Error::Missing)?.mode = *mode
            }
            Action::Set(Setting::Times(times)) => self.change_times(on[0], *times)?,
            Action::Create { name, kind, mode } => {
                let body = match kind {
                    Kind::File => Body::File(Vec::new()),
                    _ => Body::Directory(BTreeMap::new()),
                };
                return self.insert(on[0], name, body, *mode);
            }
            Action::Node { name, node } => {
                return self.insert(on[0], name, Body::Node(*node), node.mode);
            }
            Action::Symlink { name, target } => {
                return self.insert(on[0], name, Body::Symlink(target.clone()), 0o777);
            }
            Action::Link { name } => {
                if self.is_directory(on[1])? {
                    return Err(Error::Invalid);
                }
                self.vacant(on[0], name)?;
                if self.inode(on[1])?.links == 0 {
                    return Err(Error::Missing);
                }
                self.names_mut(on[0]).insert(name.clone(), on[1]);
                self.inodes.get_mut(&on[1]).unwrap().links += 1;
            }
            Action::Unlink { name } => return self.remove(on[0], name, false),
            Action::RemoveDirectory { name } => return self.remove(on[0], name, true),
            Action::Rename { name, new_name } => return self.rename(on[0], name, on[1], new_name),
            Action::Exchange { name, new_name } => return self.exchange(on, [name, new_name]),
        }
        Ok(Outcome::Done)
    }

    /// The tree as text, without what is hidden.
    pub fn tree(&self) -> String {
        let mut text = String::new();
        self.print(ROOT, "", &mut text);
        text
    }

    fn print(&self, directory: u64, path: &str, text: &mut String) {
        for (name, &number) in self.names(directory).unwrap() {
            let inode = &self.inodes[&number];
            let path = format!("{path}/{}", String::from_utf8_lossy(name));
            match &inode.body {
                Body::Directory(_) => {
                    text.push_str(&format!("{path}/ {:o}\n", inode.mode));
                    self.print(number, &path, text);
                }
                body => text.push_str(&format!(
                    "{path} {:o} {} {:?} {body:?}\n",
                    inode.mode, inode.links, inode.times
                )),
            }
        }
    }
}

/// Random numbers (xorshift).
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % limit.max(1)
    }
}

/// When the next crash comes.
#[derive(Clone, Copy, Debug)]
pub struct Crash {
    /// After so many calls.
    pub calls: usize,
    /// The call at which it comes is done before.
    pub done: bool,
}

/// Which of the states that may be on the disk is there after a crash.
#[derive(Clone, Copy, Debug)]
pub enum Choice {
    Random,
    /// So many states after the oldest, or the newest if there are less.
    Nth(usize),
}

pub struct Disk {
    pub live: Model,
    /// What may be on the disk: the state at the last `sync`, and after each change since.
    pub states: Vec<Model>,
    pub id: u32,
    pub dead: bool,
    pub crashes: Vec<Crash>,
    pub choice: Choice,
    pub random: Random,
    pub calls: usize,
    /// Calls fail with `Trouble`, so many.
    pub trouble: usize,
    /// Changes are refused, so many.
    pub refusals: usize,
    /// Who changes this name dies of it, before or after it is done; and how many have.
    pub deadly: Option<(Vec<u8>, bool)>,
    pub killed: usize,
    /// Whoever makes a change of this name takes the shadow with him, before it is made; how often
    /// that was.
    pub kills_shadow: Option<Vec<u8>>,
    pub shadows_killed: usize,
    /// The shadow dies after so many more calls, blameless; the call is made before or not.
    pub shadow_ends: Option<(usize, bool)>,
    /// It has: nobody hears an answer.
    pub shadow_is_dead: bool,
    /// The change that the last crash came in: no other comes in the same, or it would be given up.
    struck: Option<String>,
}

impl Disk {
    fn remount(&mut self) {
        let index = match self.choice {
            Choice::Random => self.random.below(self.states.len()),
            Choice::Nth(n) => n.min(self.states.len() - 1),
        };
        self.live = self.states[index].clone();
        self.live.mount();
        self.states = vec![self.live.clone()];
        self.id += 1;
        self.dead = false;
    }

    /// One call: whether it crashes, and then whether it is done before.
    fn call(&mut self, id: u32) -> Result<Option<bool>> {
        if self.shadow_is_dead {
            return Err(Error::Trouble);
        }
        if self.dead || id != self.id {
            return Err(Error::Dead);
        }
        if self.trouble > 0 {
            self.trouble -= 1;
            return Err(Error::Trouble);
        }
        self.calls += 1;
        let Some(crash) = self.crashes.first_mut() else {
            return Ok(None);
        };
        if crash.calls > 0 {
            crash.calls -= 1;
            return Ok(None);
        }
        self.dead = true;
        Ok(Some(self.crashes.remove(0).done))
    }
}

impl Disk {
    /// `None`: the shadow lives on after a change. Otherwise whether that is made.
    fn shadow_goes_on(&mut self, action: &Action<Vec<u8>, Setting>) -> Option<bool> {
        let is_deadly = |name: &Vec<u8>| self.kills_shadow.as_ref() == Some(name);
        if action.names().into_iter().flatten().any(is_deadly) {
            (self.shadow_is_dead, self.shadows_killed) = (true, self.shadows_killed + 1);
            return Some(false);
        }
        match &mut self.shadow_ends {
            Some((0, is_made)) => {
                let is_made = *is_made;
                (self.shadow_is_dead, self.shadow_ends) = (true, None);
                Some(is_made)
            }
            Some((left, _)) => {
                *left -= 1;
                None
            }
            None => None,
        }
    }

    /// Whether a crash comes in a change, rather than at the next call.
    fn strikes(&mut self, action: &Action<Vec<u8>, Setting>, done: bool) -> bool {
        let struck = Some(format!("{action:?}"));
        if self.struck != struck {
            self.struck = struck;
            return true;
        }
        self.dead = false;
        self.crashes.insert(0, Crash { calls: 0, done });
        false
    }
}

/// One instance of the file system.
#[derive(Clone)]
pub struct Instance {
    pub disk: Arc<Mutex<Disk>>,
    pub id: u32,
}

impl Instance {
    pub fn new(seed: u64) -> Self {
        let model = Model::new();
        let disk = Disk {
            live: model.clone(),
            states: vec![model],
            id: 1,
            dead: false,
            crashes: Vec::new(),
            choice: Choice::Random,
            random: Random(seed),
            calls: 0,
            trouble: 0,
            refusals: 0,
            deadly: None,
            killed: 0,
            kills_shadow: None,
            shadows_killed: 0,
            shadow_ends: None,
            shadow_is_dead: false,
            struck: None,
        };
        Instance {
            disk: Arc::new(Mutex::new(disk)),
            id: 1,
        }
    }

    pub fn replace(&self) -> Self {
        let mut disk = self.disk.lock().unwrap();
        if disk.id == self.id {
            disk.remount();
        }
        Instance {
            disk: self.disk.clone(),
            id: disk.id,
        }
    }

    pub fn view<R>(&self, work: impl FnOnce(&Model) -> Result<R>) -> Result<R> {
        let mut disk = self.disk.lock().unwrap();
        match disk.call(self.id)? {
            Some(_) => Err(Error::Dead),
            None => work(&disk.live),
        }
    }
}

impl Target for Instance {
    type Data = Vec<u8>;
    type Setting = Setting;
    type Error = Error;
    type Kept = ();
    type Known = (u32, u64);

    fn id(&self) -> u32 {
        self.id
    }

    fn root(&self) -> u64 {
        ROOT
    }

    fn unnamed(&self) -> Result<u64> {
        self.view(|_| Ok(UNNAMED))
    }

    fn look_up(&self, directory: u64, name: &Vec<u8>) -> Result<u64> {
        self.view(|fs| fs.look_up(directory, name))
    }

    fn facts(&self, inode: u64) -> Result<Facts> {
        self.view(|fs| {
            let of = fs.inode(inode)?;
            let (kind, size) = match &of.body {
                Body::File(content) => (Kind::File, content.len() as u64),
                Body::Symlink(_) | Body::Node(_) => (Kind::Other, 0),
                Body::Directory(_) => (Kind::Directory, 0),
            };
            Ok(Facts {
                kind,
                links: of.links,
                size,
            })
        })
    }

    fn perform(&self, action: &Action<Vec<u8>, Setting>, on: [u64; 2]) -> Result<Outcome> {
        let mut disk = self.disk.lock().unwrap();
        let crash = disk.call(self.id)?;
        let crash = crash.filter(|done| disk.strikes(action, *done));
        if crash == Some(false) {
            return Err(Error::Dead);
        }
        if disk.refusals > 0 {
            disk.refusals -= 1;
            return Err(Error::NotEmpty);
        }
        let is_made = disk.shadow_goes_on(action);
        if is_made == Some(false) {
            return Err(Error::Trouble);
        }
        let names = action.names().into_iter().flatten();
        let deadly = disk
            .deadly
            .iter()
            .find(|(deadly, _)| names.clone().any(|name| name == deadly));
        let deadly = deadly.map(|(_, is_done)| *is_done);
        if deadly.is_some() {
            (disk.dead, disk.killed) = (true, disk.killed + 1);
        }
        if deadly == Some(false) {
            return Err(Error::Dead);
        }
        let outcome = disk.live.perform(action, on);
        let state = disk.live.clone();
        disk.states.push(state);
        match crash.or(deadly) {
            Some(_) => Err(Error::Dead),
            None if is_made.is_some() => Err(Error::Trouble),
            None => outcome,
        }
    }

    fn write(&self, inode: u64, offset: u64, data: &Vec<u8>) -> Result<u64> {
        let data = data.clone();
        match self.perform(&Action::Write { offset, data }, [inode; 2])? {
            Outcome::Wrote(count) => Ok(count),
            other => panic!("a write that ends with {other:?}"),
        }
    }

    fn keep(&self, inode: u64) -> Result<()> {
        let mut disk = self.disk.lock().unwrap();
        match disk.call(self.id)? {
            Some(_) => Err(Error::Dead),
            None => {
                disk.live.inode(inode)?;
                disk.live.open(inode);
                Ok(())
            }
        }
    }

    fn commit(&self) -> Result<()> {
        self.sync()
    }

    fn sync(&self) -> Result<()> {
        let mut disk = self.disk.lock().unwrap();
        let crash = disk.call(self.id)?;
        if crash != Some(false) {
            disk.states = vec![disk.live.clone()];
        }
        match crash {
            Some(_) => Err(Error::Dead),
            None => Ok(()),
        }
    }

    fn pack_setting(setting: &Setting, place: &mut [u8; SETTING]) -> Option<()> {
        setting.pack(place);
        Some(())
    }

    fn unpack_setting(bytes: &[u8; SETTING]) -> Option<Setting> {
        Setting::unpack(bytes)
    }

    fn data(bytes: &[u8]) -> Result<Vec<u8>> {
        Ok(bytes.into())
    }

    fn cut(mut data: Vec<u8>, length: usize) -> Vec<u8> {
        data.truncate(length);
        data
    }

    fn error(fault: Fault) -> Error {
        fault.into()
    }

    fn severity(error: &Error) -> Severity {
        error.severity()
    }
}
