//! What the instances in a trace are called.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use interfaces::{DomainState, Handle, Monitor, RpcResult, Text};
use ulib::Env;

/// The highest number of the kernel itself.
const KERNEL: u32 = 1;

/// Names that were asked for once, also of instances that are gone since.
pub struct Names {
    monitor: Handle<dyn Monitor>,
    known: BTreeMap<u32, String>,
}

impl Names {
    /// None yet.
    pub fn new(monitor: Handle<dyn Monitor>) -> Self {
        Names {
            monitor,
            known: BTreeMap::new(),
        }
    }

    /// Looks the names of these instances up, if they are not known. Of a process that nobody has
    /// waited for yet, the name is known also when its domain is gone.
    ///
    /// # Errors
    /// The monitor does not answer.
    pub fn learn(&mut self, env: &Env, ids: [u32; 2]) -> RpcResult<()> {
        if ids.iter().all(|id| self.known.contains_key(id)) {
            return Ok(());
        }
        for info in ulib::domains(&self.monitor)? {
            self.add(info.id, info.name);
        }
        let processes = (0..).map_while(|index| env.process().process(index).ok().flatten());
        for info in processes {
            self.add(info.domain, info.name);
        }
        for id in ids {
            self.known.entry(id).or_insert_with(|| match id {
                0..=KERNEL => String::from("kernel"),
                _ => format!("domain {id}"),
            });
        }
        Ok(())
    }

    fn add(&mut self, id: u32, name: Text<32>) {
        let name = format!("{name}");
        let is_taken = self.known.values().any(|known| *known == name);
        self.known.entry(id).or_insert_with(|| match is_taken {
            true => format!("{name} {id}"),
            false => name,
        });
    }

    /// The name of instance `id`, with the number where another has the same; the number alone of
    /// one that was gone before it was looked up.
    pub fn of(&self, id: u32) -> &str {
        self.known.get(&id).map_or("?", String::as_str)
    }

    /// Whether instance `id` runs, or is about to.
    ///
    /// # Errors
    /// The monitor does not answer.
    pub fn is_alive(&self, id: u32) -> RpcResult<bool> {
        let found = self.monitor.next(id)?.filter(|info| info.id == id);
        Ok(found
            .is_some_and(|info| matches!(info.state, DomainState::Starting | DomainState::Running)))
    }
}
