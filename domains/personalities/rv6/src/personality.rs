//! What `init` sees of the personality: a program that is run on the console to its end.

use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use interfaces::{Errno, ExitStatus, FileKind, FsError, Personality, RVec};
use vfs::walk::{Place, Tree as _};

use crate::description::Description;
use crate::errors;
use crate::held::Held;
use crate::launch::{Launch, launch};
use crate::options;
use crate::process::Directory;
use crate::system::System;
use crate::table::NOBODY;
use crate::terminal::Stream;

/// What the environment of the first program has in any case.
const ENVIRONMENT: &[u8] = b"PATH=/bin:/boot/bin\0HOME=/\0";

/// The object that `init` calls.
pub struct Runner {
    system: Arc<System>,
}

impl Runner {
    /// Runs programs on `system`.
    pub fn new(system: Arc<System>) -> Self {
        Runner { system }
    }

    /// The environment of the first program: with the size of the terminal, if the machine was
    /// told.
    fn environment(&self) -> Vec<u8> {
        let mut text = ENVIRONMENT.to_vec();
        if let Some((columns, lines)) = options::terminal(self.system.command_line()) {
            text.extend_from_slice(format!("COLUMNS={columns}\0LINES={lines}\0").as_bytes());
        }
        text
    }

    fn root_directory(&self) -> Result<Directory, FsError> {
        let volumes = &self.system.volumes;
        let node = volumes.root()?;
        debug_assert!(node.kind == FileKind::Directory, "a root is a directory");
        let held = Held::new(volumes, node)?;
        Ok(Directory {
            place: Place {
                node,
                path: b"/".to_vec(),
            },
            held,
        })
    }
}

impl Personality for Runner {
    fn run(&self, path: RVec<u8>, arguments: RVec<u8>) -> Result<ExitStatus, Errno> {
        // Asked for now, so that a later crash of `init`, who hands them out, leaves the session
        // what it needs. Whoever cannot be had is asked for again by who needs it, and reported
        // there.
        let _ = self.system.terminal.device().prepare();
        self.system.prepare_services();
        for mount in self.system.volumes.mounts.all() {
            let _ = mount.live();
        }
        let directory = self.root_directory().map_err(errors::fs)?;
        let output = Arc::new(Description::Console(Stream::Output));
        let errors = Arc::new(Description::Console(Stream::Errors));
        let request = Launch {
            parent: NOBODY,
            session: None,
            directory: Arc::new(directory),
            path,
            arguments,
            environment: RVec::from_slice(&self.environment())?,
            descriptors: [Some(output.clone()), Some(output), Some(errors)],
            background: false,
            job: None,
        };
        let pid = launch(&self.system, request)?;
        self.system
            .table
            .wait(NOBODY, pid)
            .map(|(_, status)| status)
    }
}
