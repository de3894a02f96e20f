//! What names have led to.
//!
//! A name is looked up, and then something is done with the number that it led to. In between
//! others may replace what has the name: the number is nobody's then, or another's. So who acts
//! says which life of the number he means, and the file system answers that it is stale. That is
//! not to say that there is no such name: one looks again.
//!
//! | what was found | what keeps it from becoming another |
//! | --- | --- |
//! | by a name | its generation, which the hold or the change is asked for with |
//! | by a name, again and again in vain | nobody changes names while it is held ([`Mount::take_name`]) |
//! | open, or a working directory | a hold |
//! | a root | nothing has to |
//!
//! [`Mount::take_name`]: crate::Mount::take_name

use interfaces::{Failure, FsError, Metadata};

use crate::mount::Live;

/// An inode that a name has led to, or that is held.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// Its number.
    pub inode: u64,
    /// Its generation; `None`: it is held, or cannot go.
    pub life: Option<u32>,
}

impl Known {
    /// One that is held, or cannot go.
    pub fn held(inode: u64) -> Self {
        Known { inode, life: None }
    }

    /// The answer to a question about it, where that there is none says that it is stale.
    pub(crate) fn tell<T>(self, answer: Result<T, FsError>) -> Result<T, FsError> {
        match answer {
            Err(FsError::NotFound) if self.life.is_some() => Err(FsError::Stale),
            answer => answer,
        }
    }

    /// Fails if it is stale already.
    ///
    /// # Errors
    /// `Stale`; the file system's.
    pub(crate) fn expect(self, live: &Live) -> Result<(), FsError> {
        if self.life.is_none() {
            return Ok(());
        }
        match live.metadata(self)? {
            of if of.links > 0 => Ok(()),
            _ => Err(FsError::Stale),
        }
    }
}

impl From<&Metadata> for Known {
    fn from(of: &Metadata) -> Self {
        Known {
            inode: of.inode,
            life: Some(of.generation),
        }
    }
}

/// Whether an answer says that the instance could not be asked.
pub(crate) fn is_gone<T>(answer: &Result<T, FsError>) -> bool {
    matches!(answer, Err(error) if error.is_gone())
}
