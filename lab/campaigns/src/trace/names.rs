//! What people call the things that the kernel gives numbers to.

use std::collections::{BTreeMap, BTreeSet};

use abi::events::STATE;
use abi::shared::KERNEL_OWNER;
use calltext::Tables;

use super::event::Event;

/// Numbers of interrupts that the kernel uses itself; below them are those of devices.
const TIMER: u64 = 0xf0;
const REQUEST: u64 = 0xf1;
const FIRST_LINE: u64 = 0x30;

/// The interrupt with this number.
pub fn interrupt(number: u64) -> String {
    match number {
        TIMER => "timer".into(),
        REQUEST => "asked by another processor".into(),
        FIRST_LINE..TIMER => format!("device line {}", number - FIRST_LINE),
        _ => format!("interrupt {number:#x}"),
    }
}

/// The names of domains.
#[derive(Clone, Debug, Default)]
pub struct Domains {
    names: BTreeMap<u32, String>,
    /// Names that several instances have.
    shared: BTreeSet<String>,
}

impl Domains {
    /// Those that the events tell.
    pub fn of(events: &[Event]) -> Self {
        let mut names = BTreeMap::new();
        let told = events.iter().filter(|event| event.kind == STATE);
        for event in told.filter(|event| event.bytes[0] != 0) {
            names.insert(event.other, event.text());
        }
        let (mut seen, mut shared) = (BTreeSet::new(), BTreeSet::new());
        for name in names.values().filter(|name| !seen.insert(*name)) {
            shared.insert(name.clone());
        }
        Domains { names, shared }
    }

    /// The name alone, which all its instances have.
    pub fn name(&self, id: u32) -> String {
        match self.names.get(&id) {
            _ if id <= KERNEL_OWNER => "kernel".into(),
            Some(name) => name.clone(),
            None => format!("domain {id}"),
        }
    }

    /// Whether both are instances of one name.
    pub fn are_alike(&self, one: u32, other: u32) -> bool {
        self.name(one) == self.name(other)
    }

    /// The name, with the number where others have the same.
    pub fn label(&self, id: u32) -> String {
        let name = self.name(id);
        match self.shared.contains(&name) {
            true => format!("{name} {id}"),
            false => name,
        }
    }
}

/// The names of interfaces, their methods and arguments.
pub const INTERFACES: Tables = Tables {
    interfaces: interfaces::INTERFACES,
    arguments: interfaces::ARGUMENTS,
};
