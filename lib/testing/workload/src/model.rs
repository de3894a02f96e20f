//! What the files should be.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::Operation;

/// What a path leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    /// A directory.
    Directory,
    /// The file with this number. Several names may lead to it.
    File(u32),
    /// A symbolic link to there.
    Link(String),
}

/// All names and contents. A clone shares the contents.
#[derive(Clone, Debug, Default)]
pub struct Model {
    names: BTreeMap<String, Node>,
    contents: BTreeMap<u32, Arc<Vec<u8>>>,
}

impl Model {
    /// All paths, relative to the directory of the work.
    pub fn names(&self) -> &BTreeMap<String, Node> {
        &self.names
    }

    /// The content of a file.
    pub fn content(&self, file: u32) -> Option<&Arc<Vec<u8>>> {
        self.contents.get(&file)
    }

    /// Bytes in all files.
    pub fn size(&self) -> usize {
        self.contents.values().map(|content| content.len()).sum()
    }

    /// The paths of all nodes of which `which` is true.
    pub fn paths(&self, which: impl Fn(&Node) -> bool) -> Vec<&String> {
        let all = self.names.iter().filter(|(_, node)| which(node));
        all.map(|(path, _)| path).collect()
    }

    /// Whether `directory` has nothing in it.
    pub fn is_empty(&self, directory: &str) -> bool {
        !self.names.keys().any(|path| is_below(path, directory))
    }

    /// Does what the operation does.
    pub fn apply(&mut self, operation: &Operation) {
        match operation {
            Operation::Create { file, path } => {
                self.contents.insert(*file, Arc::default());
                self.names.insert(path.clone(), Node::File(*file));
            }
            Operation::Write {
                file, offset, data, ..
            } => self.edit(*file, |content| {
                let end = offset + data.len();
                content.resize(content.len().max(end), 0);
                content[*offset..end].copy_from_slice(data);
            }),
            Operation::Truncate { file, size, .. } => {
                self.edit(*file, |content| content.resize(*size, 0));
            }
            Operation::MakeDirectory { path } => {
                self.names.insert(path.clone(), Node::Directory);
            }
            Operation::Symlink { path, target } => {
                self.names.insert(path.clone(), Node::Link(target.clone()));
            }
            Operation::Link { path, new } => {
                if let Some(node) = self.names.get(path).cloned() {
                    self.names.insert(new.clone(), node);
                }
            }
            Operation::Remove { path } | Operation::RemoveDirectory { path } => {
                self.names.remove(path);
                self.forget();
            }
            Operation::Rename { from, to } => {
                self.rename(from, to);
                self.forget();
            }
            Operation::SyncFile { .. }
            | Operation::SyncData { .. }
            | Operation::Sync
            | Operation::Close { .. } => {}
        }
    }

    fn edit(&mut self, file: u32, change: impl FnOnce(&mut Vec<u8>)) {
        if let Some(content) = self.contents.get_mut(&file) {
            change(Arc::make_mut(content));
        }
    }

    fn rename(&mut self, from: &str, to: &str) {
        let moves = |path: &str| path == from || is_below(path, from);
        let paths = self.names.keys().filter(|path| moves(path));
        let paths: Vec<String> = paths.cloned().collect();
        for path in paths {
            if let Some(node) = self.names.remove(&path) {
                let new = alloc::format!("{to}{}", &path[from.len()..]);
                self.names.insert(new, node);
            }
        }
    }

    /// Forgets files without a name.
    fn forget(&mut self) {
        let names = &self.names;
        self.contents
            .retain(|file, _| names.values().any(|node| *node == Node::File(*file)));
    }
}

/// Whether `path` lies somewhere below `directory`.
pub(crate) fn is_below(path: &str, directory: &str) -> bool {
    let rest = path.strip_prefix(directory);
    rest.is_some_and(|rest| rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    fn made(operations: &[Operation]) -> Model {
        let mut model = Model::default();
        operations.iter().for_each(|one| model.apply(one));
        model
    }

    fn create(file: u32, path: &str) -> Operation {
        let path = path.to_string();
        Operation::Create { file, path }
    }

    #[test]
    fn writing_behind_the_end_leaves_zeros() {
        let write = Operation::Write {
            file: 1,
            path: "a".into(),
            offset: 3,
            data: alloc::vec![7, 8],
        };
        let model = made(&[create(1, "a"), write]);
        assert_eq!(**model.content(1).expect("a file"), [0, 0, 0, 7, 8]);
    }

    #[test]
    fn a_directory_takes_what_is_below_it_along() {
        let make = |path: &str| Operation::MakeDirectory { path: path.into() };
        let rename = Operation::Rename {
            from: "d".into(),
            to: "e".into(),
        };
        let model = made(&[make("d"), make("dd"), create(1, "d/f"), rename]);
        let names: Vec<_> = model.names().keys().map(String::as_str).collect();
        assert_eq!(names, ["dd", "e", "e/f"]);
        assert!(model.is_empty("dd") && !model.is_empty("e"));
    }

    #[test]
    fn a_file_lives_as_long_as_its_last_name() {
        let link = Operation::Link {
            path: "a".into(),
            new: "b".into(),
        };
        let remove = |path: &str| Operation::Remove { path: path.into() };
        let mut model = made(&[create(1, "a"), link, remove("a")]);
        assert!(model.content(1).is_some());
        model.apply(&remove("b"));
        assert!(model.content(1).is_none());
    }
}
