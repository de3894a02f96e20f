//! Everything that there is once, and the services that programs may ask for.

use alloc::sync::Arc;
use alloc::vec::Vec;
use domain_rt::{log, time};
use interfaces::{
    AnyHandle, DomainControl, Errno, Handle, Loader, Monitor, Power, RpcResult, Supervisor,
};

use crate::images::Images;
use crate::options::Settings;
use crate::process::Process;
use crate::table::Table;
use crate::terminal::Terminal;
use crate::volumes::Volumes;

/// How long the rest of a session may take to end, in nanoseconds.
const DRAIN: u64 = 2_000_000_000;

/// Bytes in a page.
const PAGE: u64 = 4096;

/// Private memory of a program, in pages, if nothing says how much memory the machine has.
const DEFAULT_PAGES: u64 = (64 << 20) / PAGE;

/// The services of the system that `init` granted.
pub struct Services {
    /// A view of all domains.
    pub monitor: Option<Handle<dyn Monitor>>,
    /// Authority over all domains.
    pub control: Option<Handle<dyn DomainControl>>,
    /// The power switch.
    pub power: Option<Handle<dyn Power>>,
    /// What `init` supervises.
    pub supervisor: Option<Handle<dyn Supervisor>>,
}

impl Services {
    /// A new handle to a service; `None` if there is none of this name.
    fn duplicate(&self, name: &str) -> Option<RpcResult<AnyHandle>> {
        match name {
            "monitor" => self
                .monitor
                .as_ref()
                .map(|h| h.duplicate().map(Handle::into_any)),
            "control" => self
                .control
                .as_ref()
                .map(|h| h.duplicate().map(Handle::into_any)),
            "power" => self
                .power
                .as_ref()
                .map(|h| h.duplicate().map(Handle::into_any)),
            "supervisor" => self
                .supervisor
                .as_ref()
                .map(|h| h.duplicate().map(Handle::into_any)),
            _ => None,
        }
    }
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
    services: Services,
    settings: Settings,
}

impl System {
    /// A system without processes.
    pub fn new(
        loader: Handle<dyn Loader>,
        services: Services,
        terminal: Terminal,
        volumes: Volumes,
        settings: Settings,
    ) -> Self {
        let memory = services
            .monitor
            .as_ref()
            .and_then(|monitor| monitor.memory().ok());
        let quarter = memory.map_or(DEFAULT_PAGES, |memory| memory.total / 4 / PAGE);
        System {
            table: Table::new(),
            terminal,
            volumes,
            images: Images::new(loader),
            page_limit: settings.pages.unwrap_or(quarter),
            services,
            settings,
        }
    }

    /// A service for a process, by name.
    ///
    /// # Errors
    /// `NotGranted` if its image may not have it, or there is none.
    pub fn service(&self, process: &Process, name: &str) -> Result<AnyHandle, Errno> {
        if !self.settings.granted(process.image.as_str(), name) {
            return Err(Errno::NotGranted);
        }
        let service = self.services.duplicate(name).ok_or(Errno::NotGranted)?;
        service.map_err(Errno::Rpc)
    }

    /// Ctrl-C: ends all processes in the foreground, except those that want only to be told.
    pub fn interrupt(&self) {
        let foreground = self.table.select(|process| !process.background);
        let ended: Vec<Arc<Process>> = foreground
            .into_iter()
            .filter(|process| !process.tell_interrupt())
            .collect();
        for process in ended {
            process.kill();
        }
    }

    /// The first process of a session is gone: ends what it left in the foreground, so that the next
    /// shell has the console for itself. In `exec` mode, where the machine is switched off next, all goes.
    pub fn end_session(&self, first: &Process) {
        let all = self.settings.exec;
        let left = self.table.select(|process| {
            process.session == first.pid && process.pid != first.pid && (all || !process.background)
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
