//! What people call the things that the kernel gives numbers to.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::LazyLock;

use abi::events::STATE;
use abi::shared::KERNEL_OWNER;
use idlc::model::Seen;

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

/// How the number of an argument is written.
#[derive(Clone, Debug)]
enum Written {
    Number,
    Signed,
    Truth,
    Length,
    Variant(Vec<String>),
    Not,
}

impl Written {
    fn of(seen: Option<Seen<'_>>) -> Self {
        match seen {
            None => Written::Not,
            Some(Seen::Number) => Written::Number,
            Some(Seen::Signed) => Written::Signed,
            Some(Seen::Truth) => Written::Truth,
            Some(Seen::Length) => Written::Length,
            Some(Seen::Variant(definition)) => {
                let variants = definition.numbered().unwrap_or_default();
                Written::Variant(variants.iter().map(|it| it.name.clone()).collect())
            }
        }
    }

    fn told(&self, number: u64) -> String {
        match self {
            Written::Number => number.to_string(),
            Written::Signed => number.cast_signed().to_string(),
            Written::Truth => (number != 0).to_string(),
            Written::Length => format!("{number} elements"),
            Written::Variant(names) => {
                let name = names.get(number as usize);
                name.map_or_else(|| format!("variant {number}"), String::clone)
            }
            Written::Not => "_".into(),
        }
    }
}

/// A method: its name, and the names of its arguments.
type Method = (String, Vec<(String, Written)>);

/// The names of interfaces and their methods.
#[derive(Clone, Debug)]
pub struct Interfaces(HashMap<u64, (String, Vec<Method>)>);

impl Interfaces {
    /// All that the `.idl` files declare; nothing if those cannot be read any more.
    pub fn all() -> &'static Self {
        static ALL: LazyLock<Interfaces> = LazyLock::new(Interfaces::read);
        &ALL
    }

    fn read() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let model = idlc::load(&root).unwrap_or_default();
        let method = |method: &idlc::model::Method| {
            let seen = model.seen(method).into_iter().map(Written::of);
            let names = method.arguments.iter().map(|it| it.name.clone());
            (method.name.clone(), names.zip(seen).collect())
        };
        let interface = |it: &idlc::model::Interface| {
            let methods = it.methods.iter().map(method).collect();
            (it.number(), (it.name.clone(), methods))
        };
        Interfaces(model.interfaces.iter().map(interface).collect())
    }

    /// `Block.read`.
    pub fn method(&self, interface: u64, method: u32) -> String {
        let Some((name, methods)) = self.0.get(&interface) else {
            return format!("interface {interface:016x}, method {method}");
        };
        match methods.get(method as usize) {
            Some((method, _)) => format!("{name}.{method}"),
            None => format!("{name}, method {method}"),
        }
    }

    /// `sector 12, buffer 4096 elements`, from the numbers that were noted; `_` for what has none.
    pub fn arguments(&self, interface: u64, method: u32, numbers: &[u64]) -> String {
        let methods = self.0.get(&interface).map(|(_, methods)| methods);
        let method = methods.and_then(|methods| methods.get(method as usize));
        let Some((_, arguments)) = method else {
            return "..".into();
        };
        // Lengths are noted behind all others.
        let is_number =
            |(_, written): &&(String, Written)| !matches!(written, Written::Not | Written::Length);
        let count = arguments
            .iter()
            .filter(is_number)
            .count()
            .min(numbers.len());
        let (numbers, lengths) = numbers.split_at(count);
        let (mut numbers, mut lengths) = (numbers.iter(), lengths.iter());
        let told = arguments.iter().map(|(name, written)| {
            let number = match written {
                Written::Not => None,
                Written::Length => lengths.next(),
                _ => numbers.next(),
            };
            format!(
                "{name} {}",
                number.map_or("_".into(), |number| written.told(*number))
            )
        });
        told.collect::<Vec<_>>().join(", ")
    }
}
