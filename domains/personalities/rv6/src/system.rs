//! Everything that there is once.

use alloc::sync::Arc;
use alloc::vec::Vec;
use domain_rt::sync::Mutex;
use domain_rt::{log, time};
use interfaces::{AnyHandle, Disks, Errno, Handle, Loader, Monitor, ProcessInfo, Random, Text};

use crate::images::Images;
use crate::input;
use crate::ledger::Ledger;
use crate::options::Settings;
use crate::process::Process;
use crate::services::Named;
use crate::table::Table;
use crate::terminal::Terminal;
use crate::volumes::Volumes;

/// How long the rest of a session may take to end, in nanoseconds.
const DRAIN: u64 = 2_000_000_000;

/// Bytes in a page.
const PAGE: u64 = 4096;

/// Private memory of a program, in pages, if nothing says how much memory the machine has.
const DEFAULT_PAGES: u64 = (64 << 20) / PAGE;

/// Threads of a program if nothing is said.
const DEFAULT_THREADS: u32 = 64;
/// A job may have one part in so many of the machine's memory held for it here, if the manifest
/// says nothing.
const JOB_SHARE: u64 = 32;
/// What it may have at the least then, in bytes.
const LEAST_JOB: u64 = 1 << 20;

/// What this domain was granted of the system, for itself and for programs.
pub struct Granted {
    /// A view of all domains.
    pub monitor: Option<Handle<dyn Monitor>>,
    /// The disks.
    pub disks: Option<Handle<dyn Disks>>,
    /// What programs may ask for.
    pub services: Named,
    /// Random numbers, for `/dev/random`.
    pub random: Option<Handle<dyn Random>>,
}

/// The personality.
pub struct System {
    /// All processes.
    pub table: Table,
    /// The console.
    pub terminal: Terminal,
    /// The file systems.
    pub volumes: Volumes,
    /// Verified images.
    pub images: Images,
    /// Private memory of a program, in pages, at most.
    pub page_limit: u64,
    /// Threads of a program, besides the one that runs it, at most.
    pub thread_limit: u32,
    /// Bytes that are held here for a job, at most.
    job_limit: usize,
    /// Held while a disk is mounted, or that is ended.
    pub mounting: Mutex<()>,
    granted: Granted,
    settings: Settings,
}

impl System {
    /// The disks, for a process whose image may have `service`.
    pub fn disks(&self, process: &Process, service: &str) -> Option<&Handle<dyn Disks>> {
        let granted = self.settings.granted(process.image.as_str(), service);
        self.granted.disks.as_ref().filter(|_| granted)
    }

    /// Random numbers, if there are any.
    pub fn random(&self) -> Option<&Handle<dyn Random>> {
        self.granted.random.as_ref()
    }

    /// A view of all domains, if there is one.
    pub fn monitor(&self) -> Option<&Handle<dyn Monitor>> {
        self.granted.monitor.as_ref()
    }

    /// Process number `index`, counted by numbers.
    pub fn process(&self, index: usize) -> Option<ProcessInfo> {
        self.table.info(index, self.monitor())
    }

    /// What is held for the job with this number.
    pub fn ledger(&self, job: u32) -> Arc<Ledger> {
        let known = self.table.ledger(job);
        known.unwrap_or_else(|| Ledger::new(self.job_limit))
    }

    /// The line that the machine was started with.
    pub fn command_line(&self) -> &str {
        &self.settings.command_line
    }

    /// A system without processes.
    pub fn new(
        loader: Handle<dyn Loader>,
        granted: Granted,
        terminal: Terminal,
        volumes: Volumes,
        settings: Settings,
    ) -> Self {
        let memory = granted
            .monitor
            .as_ref()
            .and_then(|monitor| monitor.memory().ok());
        let total = memory.map_or(0, |memory| memory.total);
        let share = (total / JOB_SHARE).max(LEAST_JOB);
        let job_limit = settings.job_bytes.unwrap_or(share);
        let quarter = memory.map_or(DEFAULT_PAGES, |memory| memory.total / 4 / PAGE);
        System {
            table: Table::new(),
            terminal,
            volumes,
            images: Images::new(loader),
            page_limit: settings.pages.unwrap_or(quarter),
            thread_limit: settings.threads.unwrap_or(DEFAULT_THREADS),
            job_limit: usize::try_from(job_limit).unwrap_or(usize::MAX),
            mounting: Mutex::new(()),
            granted,
            settings,
        }
    }

    /// A service for a process, by name.
    ///
    /// # Errors
    /// `NotGranted` if its image may not have it, or there is none.
    pub fn service(&self, process: &Process, name: Text<32>) -> Result<AnyHandle, Errno> {
        if !self.settings.granted(process.image.as_str(), name.as_str()) {
            return Err(Errno::NotGranted);
        }
        self.granted.services.get(name)
    }

    /// Asks for all services that programs may have, so that those that outlive `init` are there
    /// when that is not.
    pub fn prepare_services(&self) {
        for (_, names) in &self.settings.grants {
            for name in names {
                // Who needs one that is not to be had asks again, and is told.
                let _ = self.granted.services.prepare(Text::new(name));
            }
        }
    }

    /// Ctrl-C: ends all processes in the foreground, except those that want only to be told.
    pub fn interrupt(&self) {
        // Those who want it are told under the table's lock: whoever is added later finds its
        // parent told.
        let ended = self
            .table
            .select(|process| !process.is_background() && !process.tell_interrupt());
        // The youngest first: the reader of a pipe is not to find it at its end, as if the writer
        // had been done.
        for process in ended.into_iter().rev() {
            process.kill();
        }
    }

    /// Ctrl-Z: stops all processes in the foreground that do not catch Ctrl-C, and tells who waits
    /// for them.
    pub fn suspend(&self) {
        for process in self.table.select(|process| !process.is_background()) {
            process.suspend();
        }
        self.table.wake();
    }

    /// Switches the terminal to raw mode, or back, for a process; whether it is raw now.
    pub fn set_raw(&self, process: &Process, on: bool) -> bool {
        if process.is_background() {
            return false;
        }
        let mut echo = Vec::new();
        let events = self.terminal.set_raw(process.pid, on, &mut echo);
        input::show(self, &mut echo);
        self.terminal.shown();
        for event in events {
            input::act(self, event);
        }
        self.terminal.is_raw()
    }

    /// Gives the terminal back that a process has made raw.
    pub fn release_terminal(&self, process: &Process) {
        if self.terminal.is_raw_for(process.pid) {
            self.set_raw(process, false);
        }
    }

    /// The first process of a session is gone: ends what it left in the foreground, so that the
    /// next shell has the console for itself. In `exec` mode, where the machine is switched off
    /// next, all goes.
    pub fn end_session(&self, first: &Process) {
        let all = self.settings.exec;
        let left = self.table.select(|process| {
            process.session == first.pid
                && process.pid != first.pid
                && (all || !process.is_background() || process.is_stopped())
        });
        for process in left {
            process.kill();
        }
        if all {
            self.table.drain(first, time::now().saturating_add(DRAIN));
        }
        // Whoever started the session may switch the machine off now.
        if let Err(error) = self.volumes.sync() {
            log!("the disk could not be synced: {error:?}");
        }
    }
}
