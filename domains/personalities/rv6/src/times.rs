//! How long processes have had a processor.
//!
//! The kernel knows two things. How long a thread ran is exact, wherever it was meanwhile: that is
//! the time of a process, once the thread that runs it is asked for and those that its program made
//! are added. How long the code of a domain ran is known by samples, which say what part of the
//! former was the program's own (*user*) and what part others worked on its behalf (*system*).

use core::sync::atomic::{AtomicU64, Ordering};

use domain_rt::sync::Mutex;
use domain_rt::thread;
use interfaces::{DomainInfo, Handle, Monitor, ProcessTimes, RpcResult};

/// Processor time in nanoseconds.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Times {
    /// In the program's own code.
    pub user: u64,
    /// In others', on its behalf.
    pub system: u64,
}

impl Times {
    /// Of a process whose threads ran for `total`, and whose own code was sampled to run for `own`.
    /// The samples may say more than there is, since each stands for the time since the one before.
    pub fn split(total: u64, own: u64) -> Self {
        let user = own.min(total);
        Times {
            user,
            system: total - user,
        }
    }
}

/// A sum of [`Times`] that several threads add to.
#[derive(Default)]
struct Sum {
    user: AtomicU64,
    system: AtomicU64,
}

impl Sum {
    fn add(&self, times: Times) {
        self.user.fetch_add(times.user, Ordering::Relaxed);
        self.system.fetch_add(times.system, Ordering::Relaxed);
    }

    fn get(&self) -> Times {
        Times {
            user: self.user.load(Ordering::Relaxed),
            system: self.system.load(Ordering::Relaxed),
        }
    }
}

/// The account of one process.
#[derive(Default)]
pub struct Account {
    /// The kernel's number of the thread that runs it; 0 before there is one.
    thread: Mutex<u64>,
    /// What it had used at its end.
    ended: Mutex<Option<Times>>,
    /// What its children, and theirs, had used at their ends. Only those count that it has waited
    /// for.
    children: Sum,
}

impl Account {
    /// Starts `body` as the thread that runs the process.
    ///
    /// # Errors
    /// As [`thread::spawn`].
    pub fn run(&self, name: &str, body: impl FnOnce() + Send + 'static) -> RpcResult<()> {
        // Locked until the number is there: the thread may come to ask for its time before that.
        let mut thread = self.thread.lock();
        *thread = thread::spawn_numbered(name, body)?;
        Ok(())
    }

    /// How long the thread that runs it has run; 0 if there is none (any more) or nobody can tell.
    pub fn main_thread(&self, monitor: Option<&Handle<dyn Monitor>>) -> u64 {
        let thread = *self.thread.lock();
        let time = monitor.and_then(|monitor| monitor.thread_time(thread).ok()?);
        time.unwrap_or(0)
    }

    /// Notes what it has used when it ends: its thread for `main`, and what its domain is known for
    /// then.
    pub fn end(&self, main: u64, domain: Option<DomainInfo>) {
        *self.ended.lock() = Some(of(main, domain));
    }

    /// What it has used so far. `domain` describes its domain.
    pub fn now(
        &self,
        monitor: Option<&Handle<dyn Monitor>>,
        domain: impl FnOnce() -> Option<DomainInfo>,
    ) -> Times {
        let ended = *self.ended.lock();
        ended.unwrap_or_else(|| of(self.main_thread(monitor), domain()))
    }

    /// Adds a child that has ended and was waited for.
    pub fn adopt(&self, child: &Account) {
        let ended = *child.ended.lock();
        self.children.add(ended.unwrap_or_default());
        self.children.add(child.children.get());
    }

    /// As the process itself asks for it; `own` is [`now`](Self::now).
    pub fn with_children(&self, own: Times) -> ProcessTimes {
        let children = self.children.get();
        ProcessTimes {
            user: own.user,
            system: own.system,
            children_user: children.user,
            children_system: children.system,
        }
    }
}

fn of(main: u64, domain: Option<DomainInfo>) -> Times {
    let (own, threads) = domain.map_or((0, 0), |info| (info.own_ns, info.threads_ns));
    Times::split(main + threads, own)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(user: u64, system: u64) -> Times {
        Times { user, system }
    }

    #[test]
    fn the_split_never_invents_time() {
        assert_eq!(Times::split(10, 4), times(4, 6));
        assert_eq!(Times::split(10, 0), times(0, 10));
        // A sample stands for more than a short program has run.
        assert_eq!(Times::split(3, 10), times(3, 0));
        assert_eq!(Times::split(0, 10), times(0, 0));
    }

    #[test]
    fn children_count_with_theirs_once_they_have_ended() {
        let (parent, child, grandchild) =
            (Account::default(), Account::default(), Account::default());
        *grandchild.ended.lock() = Some(times(1, 2));
        child.adopt(&grandchild);
        let own = child.with_children(times(5, 5));
        assert_eq!((own.children_user, own.children_system), (1, 2));
        // One that has not ended has nothing to add but its own children.
        parent.adopt(&child);
        *child.ended.lock() = Some(times(10, 20));
        assert_eq!(child.now(None, || None), times(10, 20));
        parent.adopt(&child);
        let own = parent.with_children(times(0, 0));
        assert_eq!((own.children_user, own.children_system), (12, 24));
    }
}
