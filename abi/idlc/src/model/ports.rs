//! Ports: what an entry wants and offers, with the numbers and names by which the kernel and the
//! crate `interfaces` know them.

use super::{Argument, Entry, Interface, Kind, Type};
use sha2::{Digest, Sha256};

/// Something that a domain wants or offers, as it goes into the header of its image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// Its name.
    pub name: String,
    /// The name of its interface.
    pub interface: String,
    /// It is offered (otherwise wanted).
    pub offer: bool,
    /// The domain starts without it, too.
    pub optional: bool,
}

impl Port {
    /// The number of its interface.
    pub fn number(&self) -> u64 {
        interface_number(&self.interface)
    }
}

/// The number of the interface with this name, the same in every build.
pub fn interface_number(name: &str) -> u64 {
    let digest = Sha256::digest(format!("interface {name}"));
    digest
        .iter()
        .take(8)
        .rev()
        .fold(0, |number, &byte| number << 8 | u64::from(byte))
}

impl Interface {
    /// Its number, the same in every build.
    pub fn number(&self) -> u64 {
        interface_number(&self.name)
    }
}

impl Entry {
    /// The name of its module in `interfaces::domains`: `VirtioBlk` is `virtio_blk`.
    pub fn module(&self) -> String {
        snake_case(&self.name)
    }

    /// Whether the last parameter is `options: RVec<u8>`.
    pub fn has_options(&self) -> bool {
        self.arguments.last().is_some_and(Argument::is_options)
    }

    /// What it wants, in the order of the parameters, then what it offers.
    pub fn ports(&self) -> Vec<Port> {
        let wants = self.arguments.iter().filter_map(|argument| {
            let (interface, optional) = handle(&argument.ty)?;
            Some(Port {
                name: argument.name.clone(),
                interface,
                offer: false,
                optional,
            })
        });
        let types = self.offered();
        let alone =
            types.len() == 1 && !matches!(self.success().map(|it| &it.kind), Some(Kind::Array(..)));
        let offers = types.into_iter().enumerate().filter_map(|(index, ty)| {
            let (interface, optional) = handle(ty)?;
            let default = if alone {
                "service".to_string()
            } else {
                format!("service{index}")
            };
            let name = self.offer_names.get(index).cloned().unwrap_or(default);
            Some(Port {
                name,
                interface,
                offer: true,
                optional,
            })
        });
        wants.chain(offers).collect()
    }

    /// What `start` gives if it succeeds.
    pub fn success(&self) -> Option<&Type> {
        match &self.result.kind {
            Kind::Result(ok, _) => Some(ok),
            _ => None,
        }
    }

    /// The types of the offers, one by one.
    pub fn offered(&self) -> Vec<&Type> {
        let Some(success) = self.success() else {
            return Vec::new();
        };
        match &success.kind {
            Kind::Scalar("()") => Vec::new(),
            Kind::Tuple(elements) => elements.iter().collect(),
            Kind::Array(element, length) => {
                // Far more than the checker lets pass.
                let length = usize::try_from(*length).map_or(64, |it| it.min(64));
                vec![&**element; length]
            }
            _ => vec![success],
        }
    }
}

impl Argument {
    /// Whether it is `options: RVec<u8>`, which is not a port.
    pub fn is_options(&self) -> bool {
        let Kind::RVec(element) = &self.ty.kind else {
            return false;
        };
        self.name == "options" && matches!(element.kind, Kind::Scalar("u8"))
    }
}

/// The interface of `Handle<dyn I>` or `Option<Handle<dyn I>>`, and whether it is optional.
pub fn handle(ty: &Type) -> Option<(String, bool)> {
    match &ty.kind {
        Kind::Handle(name) => Some((name.clone(), false)),
        Kind::Option(inner) => match &inner.kind {
            Kind::Handle(name) => Some((name.clone(), true)),
            _ => None,
        },
        _ => None,
    }
}

/// `VirtioBlk` as `virtio_blk`; digits stay with what stands before them.
pub fn snake_case(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    let mut out = String::new();
    for (index, letter) in letters.iter().enumerate() {
        let before = index.checked_sub(1).map(|at| letters[at]);
        let starts = before.is_some_and(|it| !it.is_uppercase() && it != '_');
        let acronym_ends = before.is_some_and(char::is_uppercase)
            && letters.get(index + 1).is_some_and(|it| it.is_lowercase());
        if letter.is_uppercase() && (starts || acronym_ends) {
            out.push('_');
        }
        out.extend(letter.to_lowercase());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{interface_number, snake_case};

    #[test]
    fn module_names() {
        let cases = [
            ("VirtioBlk", "virtio_blk"),
            ("Ext2", "ext2"),
            ("Rv6", "rv6"),
            ("PCIBus", "pci_bus"),
            ("ProgramEntry", "program_entry"),
            ("BlockPCI", "block_pci"),
        ];
        for (name, module) in cases {
            assert_eq!(snake_case(name), module);
        }
    }

    #[test]
    fn interface_numbers_never_change() {
        // `printf 'interface Block' | sha256sum`, its first eight bytes in little-endian order.
        assert_eq!(interface_number("Block"), 0xdc5a_4d1f_8aa6_6218);
    }
}
