//! From a path to a file: components, `.` and `..`, symbolic links, and where one stands.
//!
//! [`walk`] knows nothing of file systems: a [`Tree`] looks up single names. Mount points are the
//! tree's affair, too.

use alloc::vec::Vec;

/// Longest path, also of one that symbolic links make.
pub const PATH_LIMIT: usize = 4096;

/// Most symbolic links on the way.
pub const LINK_LIMIT: usize = 40;

/// Where names are looked up.
pub trait Tree {
    /// A file, directory or symbolic link.
    type Node: Clone;
    /// Why it failed.
    type Error;

    /// The root directory.
    ///
    /// # Errors
    /// The tree's own.
    fn root(&self) -> Result<Self::Node, Self::Error>;

    /// What `name` in `directory` is, also for `..` (the root's is the root). `None`: nothing.
    ///
    /// # Errors
    /// The tree's own; also when `directory` is none.
    fn look_up(
        &self,
        directory: &Self::Node,
        name: &[u8],
    ) -> Result<Option<Self::Node>, Self::Error>;

    /// Where a symbolic link leads; `None` if `node` is something else.
    ///
    /// # Errors
    /// The tree's own.
    fn target(&self, node: &Self::Node) -> Result<Option<Vec<u8>>, Self::Error>;

    /// Whether `node` is a directory.
    fn is_directory(&self, node: &Self::Node) -> bool;
}

/// Why a path leads nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WalkError<E> {
    /// A directory on the way is not there, or the path is empty.
    NotFound,
    /// Something on the way is not a directory.
    NotDirectory,
    /// More than [`LINK_LIMIT`] symbolic links.
    Loop,
    /// Longer than [`PATH_LIMIT`] bytes.
    TooLong,
    /// The tree's own error.
    Tree(E),
}

impl<E> From<E> for WalkError<E> {
    fn from(error: E) -> Self {
        WalkError::Tree(error)
    }
}

/// A directory and its absolute path without symbolic links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place<N> {
    /// The directory.
    pub node: N,
    /// Its path; `/` for the root, otherwise without a slash at the end.
    pub path: Vec<u8>,
}

/// Where a path leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found<N> {
    /// The directory that the last name is in.
    pub directory: Place<N>,
    /// The last name. Empty if the path ends in `.`, `..` or is the root: then `node` is
    /// `directory`'s.
    pub name: Vec<u8>,
    /// What the name leads to; `None` if there is nothing in the directory under it.
    pub node: Option<N>,
    /// The path ended in a slash, so only a directory will do.
    pub must_be_directory: bool,
}

impl<N> Found<N> {
    /// The absolute path without symbolic links.
    pub fn path(&self) -> Vec<u8> {
        let mut path = self.directory.path.clone();
        if !self.name.is_empty() {
            push(&mut path, &self.name);
        }
        path
    }
}

/// Follows `path` from `start` (or the root, if it is absolute). With `follow`, a symbolic link at
/// its end is followed, too; otherwise only if a slash stands behind it.
///
/// # Errors
/// See [`WalkError`]. That the last name leads to nothing is no error.
pub fn walk<T: Tree>(
    tree: &T,
    start: &Place<T::Node>,
    path: &[u8],
    follow: bool,
) -> Result<Found<T::Node>, WalkError<T::Error>> {
    if path.is_empty() {
        return Err(WalkError::NotFound);
    }
    let mut walker = Walker {
        tree,
        at: start.clone(),
        rest: Vec::new(),
        links: 0,
    };
    walker.prepend(path)?;
    loop {
        let Some((name, last, slash)) = walker.next_name() else {
            let node = Some(walker.at.node.clone());
            return Ok(Found {
                directory: walker.at,
                name: Vec::new(),
                node,
                must_be_directory: true,
            });
        };
        if let Some(found) = walker.step(name, last, slash, follow)? {
            return Ok(found);
        }
    }
}

struct Walker<'t, T: Tree> {
    tree: &'t T,
    at: Place<T::Node>,
    /// What is still to be walked.
    rest: Vec<u8>,
    links: usize,
}

impl<T: Tree> Walker<'_, T> {
    /// Puts a path (or a link's target) in front of the rest.
    fn prepend(&mut self, path: &[u8]) -> Result<(), WalkError<T::Error>> {
        if path.len() + 1 + self.rest.len() > PATH_LIMIT {
            return Err(WalkError::TooLong);
        }
        if path.first() == Some(&b'/') {
            self.at = Place {
                node: self.tree.root()?,
                path: b"/".to_vec(),
            };
        }
        let mut joined = path.to_vec();
        if !self.rest.is_empty() {
            joined.push(b'/');
            joined.extend_from_slice(&self.rest);
        }
        self.rest = joined;
        Ok(())
    }

    /// Takes the next component: the name, whether it is the last, whether slashes end the path.
    fn next_name(&mut self) -> Option<(Vec<u8>, bool, bool)> {
        let start = self.rest.iter().position(|&byte| byte != b'/')?;
        let length = self.rest[start..].iter().position(|&byte| byte == b'/');
        let end = length.map_or(self.rest.len(), |length| start + length);
        let name = self.rest[start..end].to_vec();
        let last = self.rest[end..].iter().all(|&byte| byte == b'/');
        let slash = last && end < self.rest.len();
        self.rest.drain(..end);
        Some((name, last, slash))
    }

    /// Walks one component; what was found if it was the last.
    fn step(
        &mut self,
        name: Vec<u8>,
        last: bool,
        slash: bool,
        follow: bool,
    ) -> Result<Option<Found<T::Node>>, WalkError<T::Error>> {
        if !self.tree.is_directory(&self.at.node) {
            return Err(WalkError::NotDirectory);
        }
        if name == b"." {
            return Ok(None);
        }
        if name == b".." {
            self.up()?;
            return Ok(None);
        }
        let node = self.tree.look_up(&self.at.node, &name)?;
        let target = match &node {
            Some(node) if !last || slash || follow => self.tree.target(node)?,
            _ => None,
        };
        if let Some(target) = target {
            self.follow_link(&target, slash)?;
            return Ok(None);
        }
        if last {
            let directory = self.at.clone();
            return Ok(Some(Found {
                directory,
                name,
                node,
                must_be_directory: slash,
            }));
        }
        self.down(node, &name)?;
        Ok(None)
    }

    fn follow_link(&mut self, target: &[u8], slash: bool) -> Result<(), WalkError<T::Error>> {
        self.links += 1;
        if self.links > LINK_LIMIT {
            return Err(WalkError::Loop);
        }
        if target.is_empty() {
            return Err(WalkError::NotFound);
        }
        if slash {
            // Slashes alone are left of the path: keep one, so that the target must be a directory.
            self.rest = Vec::new();
            let mut target = target.to_vec();
            target.push(b'/');
            return self.prepend(&target);
        }
        self.prepend(target)
    }

    fn down(&mut self, node: Option<T::Node>, name: &[u8]) -> Result<(), WalkError<T::Error>> {
        self.at.node = node.ok_or(WalkError::NotFound)?;
        push(&mut self.at.path, name);
        if self.at.path.len() > PATH_LIMIT {
            return Err(WalkError::TooLong);
        }
        Ok(())
    }

    fn up(&mut self) -> Result<(), WalkError<T::Error>> {
        self.at.node = self
            .tree
            .look_up(&self.at.node, b"..")?
            .ok_or(WalkError::NotFound)?;
        let cut = self
            .at
            .path
            .iter()
            .rposition(|&byte| byte == b'/')
            .unwrap_or(0);
        self.at.path.truncate(cut.max(1));
        Ok(())
    }
}

/// Appends a name to an absolute path.
fn push(path: &mut Vec<u8>, name: &[u8]) {
    if path.last() != Some(&b'/') {
        path.push(b'/');
    }
    path.extend_from_slice(name);
}

/// The last component of a path; empty if it has none.
pub fn file_name(path: &[u8]) -> &[u8] {
    path.rsplit(|&byte| byte == b'/')
        .find(|name| !name.is_empty())
        .unwrap_or(b"")
}

#[cfg(test)]
mod tests;
