//! From a path to a file: components, `.` and `..`, symbolic links, and where one stands.
//!
//! [`walk`] knows nothing of file systems: a [`Tree`] looks up single names. Mount points are the
//! tree's affair, too.

use alloc::borrow::Cow;
use alloc::vec::Vec;
use core::mem;

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

    /// Follows `path` from `directory` on, names and slashes, as far as that goes at once. It must
    /// end at the first name that is no directory's, and go neither by `.` nor by `..`. `None`: not
    /// even one name, so they are looked up one by one.
    ///
    /// # Errors
    /// As [`look_up`](Self::look_up).
    fn leap(
        &self,
        directory: &Self::Node,
        path: &[u8],
    ) -> Result<Option<Leap<Self::Node>>, Self::Error> {
        let _ = (directory, path);
        Ok(None)
    }

    /// Where a symbolic link leads; `None` if `node` is something else.
    ///
    /// # Errors
    /// The tree's own.
    fn target(&self, node: &Self::Node) -> Result<Option<Vec<u8>>, Self::Error>;

    /// Whether `node` is a directory.
    fn is_directory(&self, node: &Self::Node) -> bool;

    /// Asked before anything is looked up in a directory one by one, `.` and `..` too.
    ///
    /// # Errors
    /// The tree's own: nothing may be looked up there.
    fn enter(&self, directory: &Self::Node) -> Result<(), Self::Error> {
        let _ = directory;
        Ok(())
    }

    /// Asked before a symbolic link in `directory` is followed that stands at the end of a path.
    ///
    /// # Errors
    /// The tree's own: it may not be followed.
    fn follow(&self, directory: &Self::Node, link: &Self::Node) -> Result<(), Self::Error> {
        let _ = (directory, link);
        Ok(())
    }

    /// Where a link leads that leads to something itself, whatever has a name; `None` if `node` is
    /// something else.
    ///
    /// # Errors
    /// The tree's own.
    fn jump(&self, node: &Self::Node) -> Result<Option<Place<Self::Node>>, Self::Error> {
        let _ = node;
        Ok(None)
    }
}

/// How far a [`Tree::leap`] went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leap<N> {
    /// Bytes of the path up to the end of the last name.
    pub used: usize,
    /// The directory that the last name is in.
    pub directory: N,
    /// What it leads to; `None`: nothing.
    pub node: Option<N>,
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
    /// Its path; `/` for the root, otherwise without a slash at the end. Empty: not known, and
    /// neither is that of what is found from here on.
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
        if !self.name.is_empty() && !path.is_empty() {
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
    // With room for the names of the path.
    let mut from = Vec::with_capacity(start.path.len() + 1 + path.len().min(PATH_LIMIT));
    from.extend_from_slice(&start.path);
    let mut walker = Walker {
        tree,
        at: Place {
            node: start.node.clone(),
            path: from,
        },
        rest: Cow::Borrowed(&[]),
        done: 0,
        links: 0,
    };
    walker.prepend(Cow::Borrowed(path))?;
    loop {
        let found = match walker.leap(follow)? {
            Leapt::To(found) => found,
            Leapt::Nowhere => walker.step(follow)?,
        };
        if let Some(found) = found {
            return Ok(found);
        }
    }
}

struct Walker<'t, T: Tree> {
    tree: &'t T,
    at: Place<T::Node>,
    /// What is to be walked, and how many bytes of it were.
    rest: Cow<'t, [u8]>,
    done: usize,
    links: usize,
}

/// A name of a path.
struct Name {
    from: usize,
    to: usize,
    /// Nothing but slashes follows.
    last: bool,
    /// There are some, at the end of the path.
    slash: bool,
}

/// What came of a leap.
enum Leapt<N> {
    /// None can be made here.
    Nowhere,
    /// What was found, if the last name was among those that it went by.
    To(Option<Found<N>>),
}

impl<'t, T: Tree> Walker<'t, T> {
    /// Puts a path (or a link's target) in front of the rest.
    fn prepend(&mut self, path: Cow<'t, [u8]>) -> Result<(), WalkError<T::Error>> {
        let rest = &self.rest[self.done..];
        if path.len() + 1 + rest.len() > PATH_LIMIT {
            return Err(WalkError::TooLong);
        }
        if path.first() == Some(&b'/') {
            self.at.node = self.tree.root()?;
            self.at.path.clear();
            self.at.path.push(b'/');
        }
        self.rest = match rest.is_empty() {
            true => path,
            false => Cow::Owned([&path, b"/".as_slice(), rest].concat()),
        };
        self.done = 0;
        Ok(())
    }

    /// The next name.
    fn next_name(&self) -> Option<Name> {
        let rest = &self.rest[self.done..];
        let from = self.done + rest.iter().position(|&byte| byte != b'/')?;
        let length = self.rest[from..].iter().position(|&byte| byte == b'/');
        let to = length.map_or(self.rest.len(), |length| from + length);
        Some(self.name(from, to))
    }

    fn name(&self, from: usize, to: usize) -> Name {
        let last = self.rest[to..].iter().all(|&byte| byte == b'/');
        let slash = last && to < self.rest.len();
        Name {
            from,
            to,
            last,
            slash,
        }
    }

    /// Walks several names at once, if that can be done here.
    fn leap(&mut self, follow: bool) -> Result<Leapt<T::Node>, WalkError<T::Error>> {
        if !self.tree.is_directory(&self.at.node) {
            return Ok(Leapt::Nowhere);
        }
        let rest = &self.rest[self.done..];
        let Some(leap) = self.tree.leap(&self.at.node, rest)? else {
            return Ok(Leapt::Nowhere);
        };
        let to = self.done + leap.used.min(rest.len());
        let way = &self.rest[self.done..to];
        let length = way.iter().rev().position(|&byte| byte == b'/');
        let from = to - length.unwrap_or(way.len());
        let names = self.rest[self.done..from].split(|&byte| byte == b'/');
        let is_known = !self.at.path.is_empty();
        for name in names.filter(|name| is_known && !name.is_empty()) {
            push(&mut self.at.path, name);
        }
        self.at.node = leap.directory;
        self.check_length()?;
        let name = self.name(from, to);
        self.arrive(&name, leap.node, follow).map(Leapt::To)
    }

    /// Walks one component; what was found if it was the last.
    fn step(&mut self, follow: bool) -> Result<Option<Found<T::Node>>, WalkError<T::Error>> {
        let Some(name) = self.next_name() else {
            let node = Some(self.at.node.clone());
            return Ok(Some(Found {
                directory: self.end(),
                name: Vec::new(),
                node,
                must_be_directory: true,
            }));
        };
        if !self.tree.is_directory(&self.at.node) {
            return Err(WalkError::NotDirectory);
        }
        self.tree.enter(&self.at.node)?;
        match &self.rest[name.from..name.to] {
            b"." => self.done = name.to,
            b".." => {
                self.done = name.to;
                self.up()?;
            }
            bytes => {
                let node = self.tree.look_up(&self.at.node, bytes)?;
                return self.arrive(&name, node, follow);
            }
        }
        Ok(None)
    }

    /// A name leads to `node`; what was found if it was the last.
    fn arrive(
        &mut self,
        name: &Name,
        node: Option<T::Node>,
        follow: bool,
    ) -> Result<Option<Found<T::Node>>, WalkError<T::Error>> {
        let link = node.as_ref();
        let link = link.filter(|_| !name.last || name.slash || follow);
        if let Some(place) = self.jump(link)? {
            self.done = name.to;
            return self.land(name, place);
        }
        let target = match link {
            Some(link) => self.tree.target(link)?,
            None => None,
        };
        self.done = name.to;
        if let Some(target) = target {
            if let Some(link) = link.filter(|_| name.last) {
                self.tree.follow(&self.at.node, link)?;
            }
            self.follow_link(target, name.slash)?;
            return Ok(None);
        }
        if name.last {
            return Ok(Some(Found {
                directory: self.end(),
                name: self.rest[name.from..name.to].to_vec(),
                node,
                must_be_directory: name.slash,
            }));
        }
        self.at.node = node.ok_or(WalkError::NotFound)?;
        if !self.at.path.is_empty() {
            push(&mut self.at.path, &self.rest[name.from..name.to]);
        }
        self.check_length()?;
        Ok(None)
    }

    /// Where a link leads that leads to something itself.
    fn jump(
        &mut self,
        link: Option<&T::Node>,
    ) -> Result<Option<Place<T::Node>>, WalkError<T::Error>> {
        let Some(link) = link else {
            return Ok(None);
        };
        let place = self.tree.jump(link)?;
        if place.is_some() {
            self.count_link()?;
        }
        Ok(place)
    }

    /// Goes on where such a link has led; what was found if it was the last name.
    fn land(
        &mut self,
        name: &Name,
        place: Place<T::Node>,
    ) -> Result<Option<Found<T::Node>>, WalkError<T::Error>> {
        self.at = place;
        Ok(name.last.then(|| Found {
            node: Some(self.at.node.clone()),
            directory: self.end(),
            name: Vec::new(),
            must_be_directory: name.slash,
        }))
    }

    fn count_link(&mut self) -> Result<(), WalkError<T::Error>> {
        self.links += 1;
        match self.links > LINK_LIMIT {
            true => Err(WalkError::Loop),
            false => Ok(()),
        }
    }

    /// Where the walk has ended.
    fn end(&mut self) -> Place<T::Node> {
        Place {
            node: self.at.node.clone(),
            path: mem::take(&mut self.at.path),
        }
    }

    fn follow_link(&mut self, mut target: Vec<u8>, slash: bool) -> Result<(), WalkError<T::Error>> {
        self.count_link()?;
        if target.is_empty() {
            return Err(WalkError::NotFound);
        }
        if slash {
            // Slashes alone are left of the path: keep one, so that the target must be a directory.
            self.done = self.rest.len();
            target.push(b'/');
        }
        self.prepend(Cow::Owned(target))
    }

    fn check_length(&self) -> Result<(), WalkError<T::Error>> {
        match self.at.path.len() > PATH_LIMIT {
            true => Err(WalkError::TooLong),
            false => Ok(()),
        }
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
