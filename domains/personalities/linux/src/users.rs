//! What a user's programs have altogether of what this domain has little of: threads, and memory in
//! pipes and sockets. So one user's bomb stops at the user's limit, and not at the end of the
//! domain.
//!
//! A process counts for its real user (`getrlimit(2)`, RLIMIT_NPROC), and with all its threads for
//! another one when it becomes that.

use crate::errno::{EAGAIN, ENFILE, Error};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};
use domain_rt::sync::Mutex;

/// Tasks of all users: fewer than this domain may have threads, as some are its own.
pub const MOST_TASKS: u64 = 1100;
/// Those of them that are left for the user 0, who may have to end others' bombs.
const ROOTS: u64 = 100;
/// Tasks of another user, unless `setrlimit` says something else: half of all, as on Linux, and on
/// a small machine one for so much memory, as each takes about a quarter of that.
const USERS_TASKS: u64 = MOST_TASKS / 2;
const PER_TASK: u64 = 4 << 20;
const FEW_TASKS: u64 = 64;
/// Pages of a pipe's buffer, and of one when there is little left.
pub const PIPE: u64 = 16;
const SMALL_PIPE: u64 = 1;
/// The most pages of a user's pipes, as on Linux; on a small machine this part of the memory.
const MOST_PAGES: u64 = 16_384;
const PART: u64 = 32;
const PAGE: u64 = 4096;

/// All users that have something.
pub struct Users {
    list: Mutex<Vec<Arc<User>>>,
    /// Tasks of all of them.
    tasks: Arc<AtomicU64>,
    /// The most pages of each one's before pipes are small.
    most_pages: u64,
    /// The most tasks of another one than the user 0, unless a limit is set.
    pub usual_tasks: u64,
}

/// A user, by what the programs have.
pub struct User {
    id: u32,
    tasks: AtomicU64,
    /// Tasks of all users.
    all: Arc<AtomicU64>,
    pages: AtomicU64,
    most_pages: u64,
    /// Bytes of sockets and of what is in them, and of sets that programs wait at.
    bytes: AtomicU64,
    /// Descriptors that are in messages.
    flying: AtomicU64,
}

/// Whose a process is, and how many of that user's tasks are the process'.
pub struct Owner(Mutex<(Arc<User>, u64)>);

/// A task of a process, as long as this is there.
pub struct Counted(Arc<Owner>);

/// Pages of a pipe of a user's, likewise.
pub struct Pages {
    user: Arc<User>,
    count: u64,
}

/// Bytes of a user's, likewise.
pub struct Held {
    user: Arc<User>,
    bytes: u64,
}

/// Descriptors of a user's that are in messages, likewise.
pub struct Flying {
    user: Arc<User>,
    count: u64,
}

impl Users {
    /// Nobody yet, on a machine of so many bytes of memory.
    pub fn new(memory: u64) -> Self {
        Users {
            list: Mutex::default(),
            tasks: Arc::default(),
            most_pages: (memory / PART / PAGE).min(MOST_PAGES),
            usual_tasks: (memory / PER_TASK).clamp(FEW_TASKS, USERS_TASKS),
        }
    }

    /// The user of this number.
    ///
    /// # Errors
    /// `EAGAIN`: there is no memory for one more.
    pub fn of(&self, id: u32) -> Result<Arc<User>, Error> {
        let mut list = self.list.lock();
        if let Some(user) = list.iter().find(|user| user.id == id) {
            return Ok(user.clone());
        }
        // Those that have nothing any more are in the list alone.
        list.retain(|user| Arc::strong_count(user) > 1);
        list.try_reserve(1).map_err(|_| EAGAIN)?;
        let user = Arc::new(User {
            id,
            tasks: AtomicU64::new(0),
            all: self.tasks.clone(),
            pages: AtomicU64::new(0),
            most_pages: self.most_pages,
            bytes: AtomicU64::new(0),
            flying: AtomicU64::new(0),
        });
        list.push(user.clone());
        Ok(user)
    }
}

impl Owner {
    /// Of a process without threads.
    pub fn new(user: Arc<User>) -> Arc<Self> {
        Arc::new(Owner(Mutex::new((user, 0))))
    }

    /// Whose the process is.
    pub fn user(&self) -> Arc<User> {
        self.0.lock().0.clone()
    }

    /// Counts a task of the process, of at most `limit` of the user's.
    ///
    /// # Errors
    /// `EAGAIN`: there are as many as may be.
    pub fn enter(self: &Arc<Self>, limit: u64) -> Result<Counted, Error> {
        let mut owner = self.0.lock();
        let (user, count) = &mut *owner;
        user.enter(limit)?;
        *count += 1;
        drop(owner);
        Ok(Counted(self.clone()))
    }

    /// The process is another user's with all its tasks, of which that one may have too many by it.
    pub fn change(&self, user: Arc<User>) {
        let mut owner = self.0.lock();
        let count = owner.1;
        user.tasks.fetch_add(count, Ordering::Relaxed);
        let before = core::mem::replace(&mut owner.0, user);
        before.tasks.fetch_sub(count, Ordering::Relaxed);
    }
}

impl User {
    /// Counts a task, of at most `limit`.
    fn enter(&self, limit: u64) -> Result<(), Error> {
        let most = match self.id {
            0 => MOST_TASKS,
            _ => MOST_TASKS - ROOTS,
        };
        if self.tasks.fetch_add(1, Ordering::Relaxed) >= limit {
            self.tasks.fetch_sub(1, Ordering::Relaxed);
            return Err(EAGAIN);
        }
        if self.all.fetch_add(1, Ordering::Relaxed) >= most {
            self.leave();
            return Err(EAGAIN);
        }
        Ok(())
    }

    /// Counts a task less.
    fn leave(&self) {
        self.tasks.fetch_sub(1, Ordering::Relaxed);
        self.all.fetch_sub(1, Ordering::Relaxed);
    }

    /// Takes pages for a pipe: as many as it may have, and few where the user has many already.
    ///
    /// # Errors
    /// `ENFILE`: the user has far too many.
    pub fn pipe(self: &Arc<Self>) -> Result<Pages, Error> {
        let usual = self.take(PIPE, self.most_pages);
        let little = || self.take(SMALL_PIPE, self.most_pages + self.most_pages / 2);
        usual.or_else(little).ok_or(ENFILE)
    }

    /// Takes so many bytes for sockets and the like, of as many as there are for pipes.
    ///
    /// # Errors
    /// `ENFILE`: the user has too many already.
    pub fn hold(self: &Arc<Self>, bytes: u64) -> Result<Held, Error> {
        let before = self.bytes.fetch_add(bytes, Ordering::Relaxed);
        let held = Held {
            user: self.clone(),
            bytes,
        };
        let fits = before.saturating_add(bytes) <= self.most_pages * PAGE;
        fits.then_some(held).ok_or(ENFILE)
    }

    /// Sends descriptors, of which at most `most` may be in messages.
    pub fn send_rights(self: &Arc<Self>, count: u64, most: u64) -> Option<Flying> {
        let before = self.flying.fetch_add(count, Ordering::Relaxed);
        let flying = Flying {
            user: self.clone(),
            count,
        };
        (before + count <= most).then_some(flying)
    }

    fn take(self: &Arc<Self>, count: u64, most: u64) -> Option<Pages> {
        let before = self.pages.fetch_add(count, Ordering::Relaxed);
        let pages = Pages {
            user: self.clone(),
            count,
        };
        (before + count <= most).then_some(pages)
    }
}

impl Pages {
    /// How many bytes they are.
    pub fn bytes(&self) -> usize {
        (self.count * PAGE) as usize
    }
}

impl Held {
    /// Takes over what another one has, of the same user or not.
    pub fn join(&mut self, more: &mut Held) {
        if Arc::ptr_eq(&self.user, &more.user) {
            self.bytes += core::mem::take(&mut more.bytes);
        } else {
            self.user.bytes.fetch_add(more.bytes, Ordering::Relaxed);
            self.bytes += more.bytes;
        }
    }
}

impl Flying {
    /// Takes over what another one has, as [`Held::join`].
    pub fn join(&mut self, more: &mut Flying) {
        self.user.flying.fetch_add(more.count, Ordering::Relaxed);
        self.count += more.count;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.user.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl Drop for Flying {
    fn drop(&mut self) {
        self.user.flying.fetch_sub(self.count, Ordering::Relaxed);
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut owner = self.0.0.lock();
        let (user, count) = &mut *owner;
        user.leave();
        *count -= 1;
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        self.user.pages.fetch_sub(self.count, Ordering::Relaxed);
    }
}
