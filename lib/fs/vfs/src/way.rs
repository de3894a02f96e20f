//! How far a path has been followed on one file system, by numbers: what those have in common that
//! answer `FileSystem::walk`.

/// How far a walk has come.
pub struct Way<'p> {
    path: &'p [u8],
    /// Where the next name begins, slashes before it left out.
    next: usize,
    /// Where the last name that was looked up ends.
    used: usize,
    /// The directory of the next name.
    directory: u64,
    /// Its generation; `None`: any life of its number is meant.
    life: Option<u32>,
    is_at_start: bool,
}

impl<'p> Way<'p> {
    /// At the beginning of `path`, in a directory, in this life of its number.
    pub fn new(directory: u64, life: Option<u32>, path: &'p [u8]) -> Self {
        let mut way = Way {
            path,
            next: 0,
            used: 0,
            directory,
            life,
            is_at_start: true,
        };
        way.skip();
        way
    }

    fn skip(&mut self) {
        while self.path.get(self.next) == Some(&b'/') {
            self.next += 1;
        }
    }

    /// The next name; `None` at the end, and in front of `.` and `..`.
    pub fn name(&self) -> Option<&'p [u8]> {
        let rest = self.path.get(self.next..)?;
        let name = rest.split(|&byte| byte == b'/').next()?;
        (!matches!(name, b"" | b"." | b"..")).then_some(name)
    }

    /// The directory that the next name is in, or the last one if there is none.
    pub fn directory(&self) -> u64 {
        self.directory
    }

    /// The generation of that directory, if it is to be in a certain life.
    pub fn life(&self) -> Option<u32> {
        self.life
    }

    /// Whether that is still the directory in which the walk began.
    pub fn is_at_start(&self) -> bool {
        self.is_at_start
    }

    /// Bytes of the path up to the end of the last name that was looked up.
    pub fn used(&self) -> usize {
        self.used
    }

    /// The generation of the directory, if it is another than that in which the walk began.
    pub fn found_life(&self) -> Option<u32> {
        self.life.filter(|_| !self.is_at_start)
    }

    /// The name leads to nothing.
    pub fn ends(&mut self, name: &[u8]) {
        self.used = self.next + name.len();
    }

    /// The name leads to this inode of this generation, if that is a directory. Whether to go on
    /// from there.
    pub fn passes(&mut self, name: &[u8], directory: Option<(u64, u32)>) -> bool {
        self.ends(name);
        self.next = self.used;
        self.skip();
        match directory {
            Some((inode, generation)) if self.name().is_some() => {
                (self.directory, self.life) = (inode, Some(generation));
                self.is_at_start = false;
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_from_directory_to_directory() {
        let mut way = Way::new(2, None, b"/a//b/c/");
        assert_eq!((way.name(), way.directory()), (Some(&b"a"[..]), 2));
        assert!(way.passes(b"a", Some((7, 1))));
        assert_eq!((way.name(), way.directory()), (Some(&b"b"[..]), 7));
        assert_eq!((way.life(), way.found_life()), (Some(1), Some(1)));
        assert!(way.passes(b"b", Some((8, 5))));
        // The last name's directory stays.
        assert!(!way.passes(b"c", Some((9, 6))));
        assert_eq!((way.used(), way.directory()), (7, 8));
        assert_eq!((way.name(), way.found_life()), (None, Some(5)));
    }

    #[test]
    fn it_ends_at_what_is_no_directory_at_nothing_and_at_dots() {
        let mut way = Way::new(2, Some(3), b"a/b");
        assert!(!way.passes(b"a", None));
        assert_eq!((way.used(), way.is_at_start()), (1, true));
        assert_eq!((way.life(), way.found_life()), (Some(3), None));
        let mut way = Way::new(2, None, b"a/b");
        way.ends(b"a");
        assert_eq!((way.used(), way.directory()), (1, 2));
        let mut way = Way::new(2, None, b"a/../b");
        assert!(!way.passes(b"a", Some((7, 1))));
        assert_eq!((way.used(), way.directory()), (1, 2));
        assert_eq!(Way::new(2, None, b"./a").name(), None);
        assert_eq!(Way::new(2, None, b"//").name(), None);
    }
}
