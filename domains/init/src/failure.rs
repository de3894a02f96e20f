//! Why something did not start, in words.

use alloc::format;
use alloc::string::{String, ToString};
use interfaces::{
    Errno, FsError, HardwareError, LoadError, PciError, RespawnError, RpcError, StartError, Text,
};

/// Why there is no instance of a domain. The texts begin with the name of the domain whose fault it
/// is, and pass unchanged to those that depend on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// It crashed too often in too short a time and stays down; its name.
    GaveUp(String),
    /// It does not start; what was said.
    Cause(String),
    /// There is no memory to start it with; its name. There may be later.
    NoMemory(String),
    /// Whoever asked was ended while he waited.
    Interrupted,
}

impl Failure {
    /// What happened.
    pub fn text(&self) -> String {
        match self {
            Failure::GaveUp(name) => format!("{name}: crashed too often and stays down"),
            Failure::Cause(text) => text.clone(),
            Failure::NoMemory(name) => format!("{name}: {}", RpcError::NoMemory),
            Failure::Interrupted => RpcError::Interrupted.to_string(),
        }
    }
}

impl Failure {
    /// That of a call for the domain `name`.
    pub fn of_call(name: &str, error: RpcError, what: &str) -> Self {
        match error {
            RpcError::NoMemory => Failure::NoMemory(name.into()),
            RpcError::Interrupted => Failure::Interrupted,
            error => Failure::Cause(format!("{name}: {what}{error}")),
        }
    }

    /// That of asking for a resource of the machine, for the domain `name`.
    pub fn of_hardware(name: &str, error: &HardwareError, what: &str) -> Self {
        match error {
            HardwareError::Rpc(error) => Failure::of_call(name, *error, what),
            error => Failure::Cause(format!("{name}: {what}{}", hardware(error))),
        }
    }

    /// That of asking the PCI domain, for the domain `name`.
    pub fn of_pci(name: &str, error: &PciError, what: &str) -> Self {
        match error {
            PciError::Rpc(error) => Failure::of_call(name, *error, what),
            PciError::Resource(error) => Failure::of_hardware(name, error, what),
            error => Failure::Cause(format!("{name}: {what}{}", pci(error))),
        }
    }
}

impl From<Failure> for RespawnError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::GaveUp(_) => RespawnError::GaveUp,
            Failure::Cause(text) => RespawnError::CannotStart(Text::new(&text)),
            Failure::NoMemory(_) => RespawnError::Rpc(RpcError::NoMemory),
            Failure::Interrupted => RespawnError::Rpc(RpcError::Interrupted),
        }
    }
}

/// Why the kernel refused an image.
pub fn load(error: &LoadError) -> String {
    match error {
        LoadError::Rpc(error) => error.to_string(),
        LoadError::NotAnImage => String::from("it is not a domain image"),
        LoadError::WrongLength => String::from("it is shorter or longer than its header says"),
        LoadError::Malformed(what) => format!("it is malformed: {what}"),
        LoadError::WrongFingerprint => {
            String::from("it was built against other interfaces or by another compiler")
        }
        LoadError::BadSignature => {
            String::from("its signature does not fit: it was altered, or signed by another key")
        }
    }
}

/// Why a domain did not start.
pub fn start(error: &StartError) -> String {
    match error {
        StartError::Rpc(error) => error.to_string(),
        StartError::MissingGrant(port) => format!("it lacks the grant `{port}`"),
        StartError::WrongGrant(port) => {
            format!("the grant `{port}` is of another interface than it wants")
        }
        StartError::ExtraGrant => String::from("it is granted more than it wants"),
        StartError::Failed(error) => format!("its start function failed: {error}"),
        StartError::Crashed => String::from("it crashed while it started"),
    }
}

/// Why a resource of the machine was not given.
pub fn hardware(error: &HardwareError) -> String {
    match error {
        HardwareError::Rpc(error) => error.to_string(),
        HardwareError::NoSuchResource => String::from("the machine does not have it"),
        HardwareError::Sensitive => String::from("the kernel keeps it for itself"),
        HardwareError::InUse => String::from("another domain has it"),
    }
}

/// Why the PCI domain did not give a function.
pub fn pci(error: &PciError) -> String {
    match error {
        PciError::Rpc(error) => error.to_string(),
        PciError::NoSuchDevice => String::from("there is no such device"),
        PciError::InUse => String::from("another driver has it"),
        PciError::Resource(error) => hardware(error),
    }
}

/// Why a program did not run.
pub fn program(error: &Errno) -> String {
    match error {
        Errno::Rpc(error) => error.to_string(),
        Errno::Fs(FsError::NotFound) => String::from("not found"),
        Errno::Fs(error) => format!("{error:?}"),
        Errno::BadImage(error) => load(error),
        Errno::NoStart(error) => start(error),
        other => format!("{other:?}"),
    }
}
