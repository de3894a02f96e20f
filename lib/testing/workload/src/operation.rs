//! What is done, and how it is drawn.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::model::{Model, Node, is_below};
use crate::random::Random;

/// Names in one directory that are used again and again.
const NAMES: u64 = 24;
/// Most names in all.
const MOST_NAMES: usize = 60;
/// Most bytes in all files.
const MOST_BYTES: usize = 3 << 19;
/// Most bytes in one file.
const MOST_IN_FILE: usize = 160 << 10;
/// Folders below each other.
const DEPTH: usize = 4;

/// One operation. Paths are relative to the directory of the work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Makes an empty file, and leaves it open.
    Create {
        /// Its number.
        file: u32,
        /// Its name.
        path: String,
    },
    /// Writes to a file, which is opened if it is not open.
    Write {
        /// The file.
        file: u32,
        /// One of its names.
        path: String,
        /// Where.
        offset: usize,
        /// What.
        data: Vec<u8>,
    },
    /// Makes a file shorter, or longer by zeros.
    Truncate {
        /// The file.
        file: u32,
        /// One of its names.
        path: String,
        /// Its new length.
        size: usize,
    },
    /// Brings a file to the disk (`fsync`).
    SyncFile {
        /// The file.
        file: u32,
        /// One of its names.
        path: String,
    },
    /// Brings the content of a file to the disk (`fdatasync`).
    SyncData {
        /// The file.
        file: u32,
        /// One of its names.
        path: String,
    },
    /// Closes a file, if it is open.
    Close {
        /// The file.
        file: u32,
    },
    /// Brings everything to the disk.
    Sync,
    /// Moves a name; what the new one led to is gone.
    Rename {
        /// The name.
        from: String,
        /// The new one.
        to: String,
    },
    /// Removes a name that is not a directory's.
    Remove {
        /// The name.
        path: String,
    },
    /// Makes a directory.
    MakeDirectory {
        /// Its name.
        path: String,
    },
    /// Removes an empty directory.
    RemoveDirectory {
        /// Its name.
        path: String,
    },
    /// Gives a file another name.
    Link {
        /// One that it has.
        path: String,
        /// The new one.
        new: String,
    },
    /// Makes a symbolic link, which may lead nowhere.
    Symlink {
        /// Its name.
        path: String,
        /// Where it leads.
        target: String,
    },
}

/// Work that goes on for as long as it is asked for more.
#[derive(Clone, Debug)]
pub struct Workload {
    random: Random,
    model: Model,
    files: u32,
    /// One of so many operations that close something or bring it to the disk is drawn as such: how
    /// rarely this work does that.
    rarely: u64,
}

impl Workload {
    /// The work of `seed`.
    pub fn new(seed: u64) -> Self {
        let mut random = Random::new(seed, 0);
        let rarely = [1, 4, 12][random.below(3) as usize];
        Workload {
            random,
            model: Model::default(),
            files: 0,
            rarely,
        }
    }

    /// What the files should be after all operations so far.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// The next operation.
    pub fn advance(&mut self) -> Operation {
        let operation = loop {
            if let Some(operation) = self.draw() {
                break operation;
            }
        };
        self.model.apply(&operation);
        operation
    }

    /// An operation, if one of the kind that was drawn can be done.
    fn draw(&mut self) -> Option<Operation> {
        let is_full = self.model.size() > MOST_BYTES || self.model.names().len() > MOST_NAMES;
        match self.random.below(100) {
            0..46 if is_full => self.remove(),
            0..16 => self.create(),
            16..46 => self.write(),
            46..51 => self.truncate(),
            51..61 => self.rename(),
            61..70 => self.remove(),
            70..75 => self
                .new_path()
                .map(|path| Operation::MakeDirectory { path }),
            75..78 => self.remove_directory(),
            78..81 => self.link(),
            81..84 => self.symlink(),
            84.. if self.random.below(self.rarely) > 0 => None,
            84..89 => self.file().map(|(file, _)| Operation::Close { file }),
            89..93 => self
                .file()
                .map(|(file, path)| Operation::SyncFile { file, path }),
            93..97 => self
                .file()
                .map(|(file, path)| Operation::SyncData { file, path }),
            _ => Some(Operation::Sync),
        }
    }

    /// One of the names of some file.
    fn file(&mut self) -> Option<(u32, String)> {
        let paths = self.model.paths(|node| matches!(node, Node::File(_)));
        let path = self.random.pick(&paths)?;
        match self.model.names().get(*path) {
            Some(Node::File(file)) => Some((*file, path.to_string())),
            _ => None,
        }
    }

    fn directory(&mut self) -> Option<String> {
        let paths = self.model.paths(|node| *node == Node::Directory);
        self.random.pick(&paths).map(|path| path.to_string())
    }

    /// A name that is free, in some directory.
    fn new_path(&mut self) -> Option<String> {
        let number = self.random.below(NAMES);
        let name = match self.random.below(12) {
            // Long names fill the blocks of a directory.
            0 => format!("{number:0>200}"),
            _ => format!("n{number}"),
        };
        let path = match self.random.below(3) {
            0 => name,
            _ => self
                .directory()
                .map_or(name.clone(), |directory| format!("{directory}/{name}")),
        };
        let names = self.model.names();
        let is_free = !names.contains_key(&path) && names.len() <= MOST_NAMES;
        (is_free && path.split('/').count() <= DEPTH).then_some(path)
    }

    fn create(&mut self) -> Option<Operation> {
        let path = self.new_path()?;
        self.files += 1;
        let file = self.files;
        Some(Operation::Create { file, path })
    }

    fn write(&mut self) -> Option<Operation> {
        let (file, path) = self.file()?;
        let size = self.model.content(file)?.len();
        let offset = match self.random.below(10) {
            0..5 => size,
            5..9 => self.random.below(size as u64) as usize,
            _ => size + self.random.below(20_000) as usize,
        };
        let length = match self.random.below(8) {
            0..3 => self.random.below(600),
            3..7 => self.random.below(9000),
            _ => self.random.below(50_000),
        };
        let data = self.random.bytes(1 + length as usize);
        let fits = offset + data.len() <= MOST_IN_FILE;
        fits.then_some(Operation::Write {
            file,
            path,
            offset,
            data,
        })
    }

    fn truncate(&mut self) -> Option<Operation> {
        let (file, path) = self.file()?;
        let size = self.model.content(file)?.len() as u64;
        let size = match self.random.below(4) {
            0 => 0,
            1 => size + self.random.below(10_000),
            _ => self.random.below(size),
        };
        let size = (size as usize).min(MOST_IN_FILE);
        Some(Operation::Truncate { file, path, size })
    }

    fn rename(&mut self) -> Option<Operation> {
        match self.random.below(10) {
            0..2 => self.rename_directory(),
            2..6 => {
                let (_, from) = self.file()?;
                let to = self.new_path()?;
                Some(Operation::Rename { from, to })
            }
            // Over another file. Between two names of one file nothing would happen.
            _ => {
                let (one, from) = self.file()?;
                let (other, to) = self.file()?;
                (one != other).then_some(Operation::Rename { from, to })
            }
        }
    }

    fn rename_directory(&mut self) -> Option<Operation> {
        let from = self.directory()?;
        let to = self.new_path()?;
        let below = self.model.names().keys();
        let depth = |path: &str| path.split('/').count();
        let deepest = below.filter(|path| is_below(path, &from));
        let deepest = deepest
            .map(|path| depth(path) - depth(&from))
            .max()
            .unwrap_or(0);
        let is_good = !is_below(&to, &from) && depth(&to) + deepest <= DEPTH + 2;
        is_good.then_some(Operation::Rename { from, to })
    }

    fn remove(&mut self) -> Option<Operation> {
        let paths = self.model.paths(|node| *node != Node::Directory);
        let path = self.random.pick(&paths)?.to_string();
        Some(Operation::Remove { path })
    }

    fn remove_directory(&mut self) -> Option<Operation> {
        let path = self.directory()?;
        let is_empty = self.model.is_empty(&path);
        is_empty.then_some(Operation::RemoveDirectory { path })
    }

    fn link(&mut self) -> Option<Operation> {
        let (_, path) = self.file()?;
        let new = self.new_path()?;
        Some(Operation::Link { path, new })
    }

    fn symlink(&mut self) -> Option<Operation> {
        let path = self.new_path()?;
        let number = self.random.below(1000);
        let target = match self.random.below(2) {
            0 => format!("to{number}"),
            // Does not fit into the inode.
            _ => format!("far/{number:0>90}"),
        };
        Some(Operation::Symlink { path, target })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_work() {
        let draw = |seed| {
            let mut work = Workload::new(seed);
            (0..500).map(|_| work.advance()).collect::<Vec<_>>()
        };
        assert!(draw(3) == draw(3));
        assert!(draw(3) != draw(4));
    }

    #[test]
    fn all_kinds_are_drawn_and_bounds_are_kept() {
        let mut work = Workload::new(1);
        let mut kinds = alloc::collections::BTreeSet::new();
        for _ in 0..4000 {
            let text = format!("{:?}", work.advance());
            kinds.insert(
                text.split([' ', '{'])
                    .next()
                    .unwrap_or_default()
                    .to_string(),
            );
            assert!(work.model().size() <= MOST_BYTES + MOST_IN_FILE);
            assert!(work.model().names().len() <= MOST_NAMES + 1);
        }
        assert_eq!(kinds.len(), 13, "{kinds:?}");
    }
}
