//! One process: what belongs to it, and the domain that it runs as.

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use alloc::sync::Arc;
use alloc::vec::Vec;
use domain_rt::sync::{Condvar, Mutex, Wait};
use domain_rt::time;
use interfaces::{Domain, Errno, Handle, Monitor, RVec, Text};
use vfs::walk::Place;

use crate::descriptors::Descriptors;
use crate::errors;
use crate::held::Held;
use crate::ledger::{Charge, Ledger};
use crate::stop::Stop;
use crate::times::{Account, Times};
use crate::volumes::{EMPTY, Node, Volumes};

/// A working directory, which is kept while a process is in it.
pub struct Directory {
    /// Where it is.
    pub place: Place<Node>,
    /// Keeps its inode.
    pub held: Held,
}

/// The domain of a process that has started.
pub struct Running {
    /// The number of the instance.
    pub id: u32,
    /// Authority over it.
    pub control: Handle<dyn Domain>,
}

/// What a new process is made of.
pub struct Birth {
    /// What its job is charged for it.
    pub charge: Charge,
    /// What is held for its job.
    pub ledger: Arc<Ledger>,
    /// Its program's name, for `ps` and as the domain's name.
    pub name: Text<32>,
    /// The name in the signed image, by which services are granted.
    pub image: Text<32>,
    /// Arguments, each followed by a zero byte.
    pub arguments: RVec<u8>,
    /// Environment, each followed by a zero byte.
    pub environment: RVec<u8>,
    /// Descriptors 0, 1, 2.
    pub descriptors: Descriptors,
    /// The working directory.
    pub directory: Arc<Directory>,
    /// Ctrl-C does not reach it.
    pub background: bool,
    /// The first process of its session; `None`: it is that itself.
    pub session: Option<u32>,
    /// See [`Process::job`].
    pub job: u32,
}

/// A process.
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// The first process of its session, which was started by `init`.
    pub session: u32,
    /// The job that it belongs to: the number of the group that its domain shares a budget with.
    pub job: u32,
    /// See [`Birth`].
    pub name: Text<32>,
    /// See [`Birth`].
    pub image: Text<32>,
    /// See [`Birth`].
    pub arguments: RVec<u8>,
    /// See [`Birth`].
    pub environment: RVec<u8>,
    /// What it has open.
    pub descriptors: Descriptors,
    /// Its processor time.
    pub account: Account,
    /// What is held for its job.
    pub ledger: Arc<Ledger>,
    _charge: Charge,
    background: AtomicBool,
    directory: Mutex<Arc<Directory>>,
    /// It wants to be told of Ctrl-C instead of being ended.
    catching: AtomicBool,
    interrupts: AtomicU32,
    /// How many of them it knows of.
    heeded: AtomicU32,
    /// It is to be ended, perhaps before its domain has started.
    killed: AtomicBool,
    /// Its job is being ended, so it starts no others.
    barren: AtomicBool,
    running: Mutex<Option<Arc<Running>>>,
    stop: Stop,
    /// For [`sleep`](Self::sleep): nothing is notified here, only time passes.
    asleep: Mutex<()>,
    never: Condvar,
}

impl Process {
    /// A process that has not started.
    pub fn new(pid: u32, birth: Birth) -> Self {
        Process {
            pid,
            session: birth.session.unwrap_or(pid),
            job: birth.job,
            name: birth.name,
            image: birth.image,
            arguments: birth.arguments,
            environment: birth.environment,
            descriptors: birth.descriptors,
            account: Account::default(),
            ledger: birth.ledger,
            _charge: birth.charge,
            background: AtomicBool::new(birth.background),
            directory: Mutex::new(birth.directory),
            catching: AtomicBool::new(false),
            interrupts: AtomicU32::new(0),
            heeded: AtomicU32::new(0),
            killed: AtomicBool::new(false),
            barren: AtomicBool::new(false),
            running: Mutex::new(None),
            stop: Stop::new(),
            asleep: Mutex::new(()),
            never: Condvar::new(),
        }
    }

    /// Whether Ctrl-C and Ctrl-Z do not reach it, and the console is always at its end for it.
    pub fn is_background(&self) -> bool {
        self.background.load(Ordering::SeqCst)
    }

    /// Ctrl-Z was pressed: stops it, unless it wants to be told of such keys itself. What is
    /// stopped is in the background: Ctrl-C is meant for what runs then.
    pub fn suspend(&self) {
        if !self.catching.load(Ordering::SeqCst) {
            self.background.store(true, Ordering::SeqCst);
            self.stop.stop();
        }
    }

    /// Lets it go on.
    pub fn resume(&self, background: bool) {
        self.background.store(background, Ordering::SeqCst);
        self.stop.resume();
    }

    /// Waits here while the process is stopped.
    ///
    /// # Errors
    /// `Interrupted` if it is ended meanwhile.
    pub fn gate(&self) -> Result<(), Errno> {
        self.stop.gate()
    }

    /// Whether Ctrl-Z stopped it.
    pub fn is_stopped(&self) -> bool {
        self.stop.is_stopped()
    }

    /// Whether it was stopped since this was last asked.
    pub fn take_stop(&self) -> bool {
        self.stop.take_news()
    }

    /// The working directory.
    pub fn directory(&self) -> Arc<Directory> {
        let directory = self.directory.lock().clone();
        directory.held.keep();
        directory
    }

    /// Goes to another directory.
    pub fn set_directory(&self, directory: Directory) {
        let old = core::mem::replace(&mut *self.directory.lock(), Arc::new(directory));
        drop(old);
    }

    /// Goes to a directory that keeps no file system mounted.
    pub fn leave_directory(&self, volumes: &Volumes) {
        if let Ok(held) = Held::new(volumes, EMPTY) {
            let (node, path) = (EMPTY, Vec::new());
            let place = Place { node, path };
            self.set_directory(Directory { place, held });
        }
    }

    /// The number of the domain instance; 0 before there is one.
    pub fn domain(&self) -> u32 {
        self.running.lock().as_ref().map_or(0, |running| running.id)
    }

    /// The processor time that it has used so far.
    pub fn times(&self, monitor: Option<&Handle<dyn Monitor>>) -> Times {
        let running = self.running.lock().clone();
        let domain = || running.and_then(|running| running.control.info().ok());
        self.account.now(monitor, domain)
    }

    /// Notes the domain, and ends it at once if the process was killed before it had one.
    pub fn attach(&self, running: Arc<Running>) {
        *self.running.lock() = Some(running);
        if self.killed.load(Ordering::SeqCst) {
            self.kill();
        }
    }

    /// Ends the process' domain. The thread that runs it does the rest.
    pub fn kill(&self) {
        self.killed.store(true, Ordering::SeqCst);
        let running = self.running.lock().clone();
        if let Some(running) = running {
            // It fails only if the kernel has no memory for the call; the caller can kill again.
            let _ = running.control.kill();
        }
    }

    /// From now on it can start no others. The table is locked meanwhile.
    pub fn make_barren(&self) {
        self.barren.store(true, Ordering::SeqCst);
    }

    /// Whether it can start no others.
    pub fn is_barren(&self) -> bool {
        self.barren.load(Ordering::SeqCst)
    }

    /// Forgets the domain, which is gone.
    pub fn detach(&self) {
        let running = self.running.lock().take();
        drop(running);
    }

    /// Chooses between being told of Ctrl-C and being ended by it.
    pub fn catch_interrupts(&self, on: bool) {
        self.catching.store(on, Ordering::SeqCst);
        self.interrupts.store(0, Ordering::SeqCst);
        self.heeded.store(0, Ordering::SeqCst);
    }

    /// Interrupts since it asked to be told.
    pub fn interrupts(&self) -> u32 {
        self.interrupts.load(Ordering::SeqCst)
    }

    /// As [`interrupts`](Self::interrupts); from here on it knows of them.
    pub fn heed_interrupts(&self) -> u32 {
        let count = self.interrupts();
        self.heeded.store(count, Ordering::SeqCst);
        count
    }

    /// Whether it was ended, or told of a Ctrl-C that it does not know of yet. What it starts in
    /// the foreground has come too late then: the key was meant for that.
    pub fn is_cut_short(&self) -> bool {
        let unheeded = self.interrupts() != self.heeded.load(Ordering::SeqCst);
        unheeded || self.killed.load(Ordering::SeqCst)
    }

    /// Ctrl-C was pressed: tells the process, if it wants to be told. Otherwise `false`.
    pub fn tell_interrupt(&self) -> bool {
        let told = self.catching.load(Ordering::SeqCst);
        if told {
            self.interrupts.fetch_add(1, Ordering::SeqCst);
        }
        told
    }

    /// Sleeps.
    ///
    /// # Errors
    /// `Interrupted` if the process is ended meanwhile.
    pub fn sleep(&self, nanoseconds: u64) -> Result<(), Errno> {
        let deadline = time::now().saturating_add(nanoseconds);
        let mut guard = self.asleep.lock();
        while time::now() < deadline {
            let (again, wait) = self.never.wait_until(guard, deadline);
            if wait == Wait::Interrupted {
                return Err(errors::INTERRUPTED);
            }
            guard = again;
        }
        Ok(())
    }
}
