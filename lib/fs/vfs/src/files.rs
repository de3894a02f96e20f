//! A tree of files that never change, made from a list of paths: what the boot archive looks like
//! as a file system. Inodes are numbered from 1, the root.

use alloc::vec::Vec;

/// The inode of the root directory.
pub const ROOT: u64 = 1;

/// What an inode is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A directory.
    Directory,
    /// A file: the number it has where its content is, and its size.
    File {
        /// The number given to [`Files::add`].
        index: u32,
        /// Bytes in it.
        size: u64,
    },
}

struct Node {
    name: Vec<u8>,
    parent: u64,
    kind: Kind,
    children: Vec<u64>,
}

/// Why a path was not added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddError {
    /// It is empty, absolute, or has a component that is empty, `.`, `..` or longer than 255 bytes.
    BadPath,
    /// Something else is there already, or a file stands where a directory would have to be.
    Conflict,
}

/// The tree.
pub struct Files {
    nodes: Vec<Node>,
}

impl Default for Files {
    fn default() -> Self {
        Self::new()
    }
}

impl Files {
    /// Only a root directory.
    pub fn new() -> Self {
        let root = Node {
            name: Vec::new(),
            parent: ROOT,
            kind: Kind::Directory,
            children: Vec::new(),
        };
        Files {
            nodes: alloc::vec![root],
        }
    }

    /// Adds a file at `path`, and the directories that lead there.
    ///
    /// # Errors
    /// See [`AddError`]. Directories may have been made then.
    pub fn add(&mut self, path: &[u8], index: u32, size: u64) -> Result<u64, AddError> {
        let mut at = ROOT;
        let mut names = path.split(|&byte| byte == b'/').peekable();
        while let Some(name) = names.next() {
            if name.is_empty() || name == b"." || name == b".." || name.len() > 255 {
                return Err(AddError::BadPath);
            }
            let last = names.peek().is_none();
            at = match self.child(at, name) {
                Some(there) if !last && self.kind(there) == Some(Kind::Directory) => there,
                Some(_) => return Err(AddError::Conflict),
                None if last => self.insert(at, name, Kind::File { index, size }),
                None => self.insert(at, name, Kind::Directory),
            };
        }
        Ok(at)
    }

    /// What the inode is; `None` if there is none with this number.
    pub fn kind(&self, inode: u64) -> Option<Kind> {
        Some(self.node(inode)?.kind)
    }

    /// What `name` in a directory leads to, also for `.` and `..`. `None` if there is nothing, or
    /// `directory` is none.
    pub fn look_up(&self, directory: u64, name: &[u8]) -> Option<u64> {
        let node = self.node(directory)?;
        match name {
            _ if node.kind != Kind::Directory => None,
            b"." => Some(directory),
            b".." => Some(node.parent),
            _ => self.child(directory, name),
        }
    }

    /// Entry number `position` of a directory: inode and name. `.` and `..` come first.
    pub fn entry(&self, directory: u64, position: u64) -> Option<(u64, &[u8])> {
        let node = self.node(directory)?;
        match (node.kind, position) {
            (Kind::File { .. }, _) => None,
            (_, 0) => Some((directory, b".")),
            (_, 1) => Some((node.parent, b"..")),
            (_, n) => {
                let child = *node.children.get(usize::try_from(n - 2).ok()?)?;
                Some((child, &self.node(child)?.name))
            }
        }
    }

    /// Links to the inode: for a directory its name, its `.`, and the `..` of each subdirectory.
    pub fn links(&self, inode: u64) -> u32 {
        let Some(node) = self.node(inode) else {
            return 0;
        };
        let folders = node
            .children
            .iter()
            .filter(|&&child| self.kind(child) == Some(Kind::Directory));
        match node.kind {
            Kind::File { .. } => 1,
            Kind::Directory => 2 + u32::try_from(folders.count()).unwrap_or(u32::MAX - 2),
        }
    }

    /// Number of inodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there is nothing but the root.
    pub fn is_empty(&self) -> bool {
        self.nodes.len() == 1
    }

    fn node(&self, inode: u64) -> Option<&Node> {
        self.nodes
            .get(usize::try_from(inode.checked_sub(ROOT)?).ok()?)
    }

    fn child(&self, directory: u64, name: &[u8]) -> Option<u64> {
        let children = &self.node(directory)?.children;
        children
            .iter()
            .copied()
            .find(|&child| self.node(child).is_some_and(|node| node.name == name))
    }

    fn insert(&mut self, parent: u64, name: &[u8], kind: Kind) -> u64 {
        self.nodes.push(Node {
            name: name.to_vec(),
            parent,
            kind,
            children: Vec::new(),
        });
        let inode = self.nodes.len() as u64;
        self.nodes[(parent - ROOT) as usize].children.push(inode);
        inode
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Files {
        let mut files = Files::new();
        files.add(b"bin/ls", 4, 100).expect("new");
        files.add(b"bin/cat", 5, 200).expect("new");
        files.add(b"readme", 6, 300).expect("new");
        files
    }

    #[test]
    fn finds_what_was_added() {
        let files = sample();
        let bin = files.look_up(ROOT, b"bin").expect("there");
        assert_eq!(files.kind(bin), Some(Kind::Directory));
        let cat = files.look_up(bin, b"cat").expect("there");
        assert_eq!(
            files.kind(cat),
            Some(Kind::File {
                index: 5,
                size: 200
            })
        );
        assert_eq!(files.look_up(bin, b".."), Some(ROOT));
        assert_eq!(files.look_up(ROOT, b".."), Some(ROOT));
        assert_eq!(files.look_up(bin, b"."), Some(bin));
    }

    #[test]
    fn lists_in_the_order_of_adding() {
        let files = sample();
        let names: Vec<&[u8]> = (0..)
            .map_while(|n| files.entry(ROOT, n))
            .map(|entry| entry.1)
            .collect();
        assert_eq!(names, [&b"."[..], b"..", b"bin", b"readme"]);
        assert_eq!(files.links(ROOT), 3);
        assert_eq!(files.len(), 5);
    }

    #[test]
    fn what_is_not_there_is_not_found() {
        let files = sample();
        let readme = files.look_up(ROOT, b"readme").expect("there");
        assert_eq!(files.look_up(readme, b"."), None);
        assert_eq!(files.look_up(ROOT, b"no"), None);
        assert_eq!(files.look_up(0, b"bin"), None);
        assert_eq!(files.look_up(99, b"bin"), None);
        assert_eq!(files.entry(readme, 0), None);
        assert_eq!(files.entry(ROOT, u64::MAX), None);
        assert_eq!(files.kind(u64::MAX), None);
        assert_eq!(files.links(77), 0);
    }

    #[test]
    fn bad_paths_are_refused() {
        let mut files = sample();
        for path in [&b""[..], b"/bin/x", b"bin//x", b"bin/.", b"../x", b"bin/"] {
            assert_eq!(files.add(path, 0, 0), Err(AddError::BadPath), "{path:?}");
        }
        assert_eq!(files.add(b"bin", 0, 0), Err(AddError::Conflict));
        assert_eq!(files.add(b"bin/ls", 0, 0), Err(AddError::Conflict));
        assert_eq!(files.add(b"readme/x", 0, 0), Err(AddError::Conflict));
    }
}
