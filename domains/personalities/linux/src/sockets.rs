//! Sockets of programs: what all kinds have in common, and which kinds there are.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`local`] | sockets of this machine (`unix(7)`) |
//! | [`names`] | the names that those have |
//! | [`connecting`], [`sending`] | how they get names and connections, and send |
//! | [`rights`] | descriptors in messages, and what messages cost |
//! | [`inet`], [`network`] | sockets of the network (`tcp(7)`), and the way to its stack |
//!
//! A further family is a further [`Backend`], which answers what is asked here.

mod connecting;
pub mod inet;
pub mod local;
pub mod names;
pub mod network;
pub mod rights;
mod sending;

use crate::bells::Bell;
use crate::errno::{EAFNOSUPPORT, ENETDOWN, EOPNOTSUPP, EPROTONOSUPPORT, ESOCKTNOSUPPORT, Error};
use crate::files::Open;
use crate::task::Task;
use crate::users::{Held, User};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use domain_rt::sync::Mutex;
use domain_rt::time;
use inet::Inet;
use linux::files::{Attributes, SOCKET};
use linux::socket::inbox::{How, Taken};
use linux::socket::options::{self, Options, Value};
use linux::socket::{AF_INET, AF_UNIX, Kind, MSG_DONTWAIT, NOBODY, Sender};
use local::Local;
use rights::{Paid, Right};

/// What a socket costs its user: about what it takes of memory.
const COST: u64 = 1024;
/// Sockets are on a device of their own, and have numbers there.
const DEVICE: u64 = 0x9;
static NEXT: AtomicU64 = AtomicU64::new(1);

/// How a family does what programs ask for.
pub enum Backend {
    Local(Local),
    Inet(Arc<Inet>),
}

/// A socket.
pub struct Socket {
    pub kind: Kind,
    /// By which programs tell it from others.
    number: u64,
    never_waits: AtomicBool,
    options: Mutex<Options>,
    pub backend: Backend,
    _held: Held,
}

/// How long a call waits.
#[derive(Clone, Copy)]
pub struct Patience {
    /// What would wait is an error.
    pub never_waits: bool,
    /// When it ends.
    pub deadline: Option<u64>,
}

/// A message that is to be sent.
pub struct Sending<'a> {
    pub bytes: &'a [u8],
    /// The address that it goes to; nothing: to the other side.
    pub to: &'a [u8],
    pub rights: Vec<Right>,
    /// Whom it is said to be from.
    pub sender: Option<Sender>,
}

impl Socket {
    /// A socket of a user's.
    ///
    /// # Errors
    /// `ENFILE`: the user has too much already.
    pub fn new(user: &Arc<User>, kind: Kind, backend: Backend) -> Result<Self, Error> {
        Ok(Socket {
            kind,
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            never_waits: AtomicBool::new(false),
            options: Mutex::default(),
            backend,
            _held: user.hold(COST)?,
        })
    }

    /// A socket as `socket` is asked for it.
    ///
    /// # Errors
    /// `EAFNOSUPPORT`, `ESOCKTNOSUPPORT`, `EPROTONOSUPPORT`: there is no such family, type or
    /// protocol. `ENETDOWN`: there is no network. `ENFILE`.
    pub fn of_family(task: &Task, family: u64, kind: Kind, protocol: u64) -> Result<Self, Error> {
        let user = &task.process.owner.user();
        match u16::try_from(family).unwrap_or(0) {
            AF_UNIX if protocol as u32 > 1 => Err(EPROTONOSUPPORT),
            AF_UNIX => Self::new(user, kind, Backend::Local(Local::new(kind))),
            AF_INET if kind != Kind::Stream => Err(ESOCKTNOSUPPORT),
            AF_INET if !matches!(protocol, 0 | inet::TCP) => Err(EPROTONOSUPPORT),
            AF_INET => {
                let network = task.process.system.network.as_ref().ok_or(ENETDOWN)?;
                Self::new(user, kind, Backend::Inet(Inet::new(network)))
            }
            _ => Err(EAFNOSUPPORT),
        }
    }

    /// Two sockets that are connected to each other.
    ///
    /// # Errors
    /// `ENFILE`.
    pub fn pair(task: &Task, kind: Kind) -> Result<[Self; 2], Error> {
        let user = task.process.owner.user();
        let [one, other] = Local::pair(task, kind).map(Backend::Local);
        let one = Self::new(&user, kind, one)?;
        Ok([one, Self::new(&user, kind, other)?])
    }

    /// The options.
    pub fn options(&self) -> Options {
        *self.options.lock()
    }

    /// Sets an option of those that every socket has.
    ///
    /// # Errors
    /// Linux's.
    pub fn set_option(&self, task: &Task, option: u64, bytes: &[u8]) -> Result<(), Error> {
        let is_root = task.process.cred().is_root();
        let mut options = self.options.lock();
        options.set(option, bytes, is_root)?;
        match &self.backend {
            Backend::Local(local) => local.tell_senders(options.tells_sender()),
            Backend::Inet(_) => {}
        }
        Ok(())
    }

    /// What an option is.
    ///
    /// # Errors
    /// `ENOPROTOOPT`: there is no such option.
    pub fn option(&self, option: u64) -> Result<Value, Error> {
        let own = match &self.backend {
            _ if option == options::SO_TYPE => Some(Value::number(self.kind.number())),
            Backend::Local(_) if option == options::SO_PROTOCOL => Some(Value::number(0)),
            Backend::Local(_) if option == options::SO_DOMAIN => {
                Some(Value::number(AF_UNIX.into()))
            }
            Backend::Local(local) => local.option(option),
            Backend::Inet(inet) => inet.option(option),
        };
        own.map_or_else(|| self.options.lock().get(option), Ok)
    }

    /// An option of the protocols below, by their level.
    ///
    /// # Errors
    /// `EOPNOTSUPP`, `ENOPROTOOPT`: there is no such option.
    pub fn deep_option(&self, level: u64, option: u64) -> Result<Value, Error> {
        match &self.backend {
            Backend::Local(_) => Err(EOPNOTSUPP),
            Backend::Inet(inet) => inet.deep_option(level, option),
        }
    }

    /// Sets such an option.
    ///
    /// # Errors
    /// Likewise; `EINVAL`.
    pub fn set_deep_option(&self, level: u64, option: u64, bytes: &[u8]) -> Result<(), Error> {
        match &self.backend {
            Backend::Local(_) => Err(EOPNOTSUPP),
            Backend::Inet(inet) => inet.set_deep_option(level, option, bytes),
        }
    }

    /// How long a call waits with these flags, to receive or to send.
    pub fn patience(&self, flags: u64, receives: bool) -> Patience {
        let options = self.options.lock();
        let wait = if receives {
            options.receive_wait
        } else {
            options.send_wait
        };
        Patience {
            never_waits: flags & MSG_DONTWAIT != 0 || self.never_waits(),
            deadline: (wait > 0).then(|| time::now().saturating_add(wait)),
        }
    }

    /// Receives some bytes, or a message.
    ///
    /// # Errors
    /// Linux's.
    pub fn receive(
        &self,
        task: &Task,
        to: &mut [u8],
        how: How,
        (least, patience): (usize, Patience),
    ) -> Result<Taken<Right, Paid>, Error> {
        match &self.backend {
            Backend::Local(local) => local.receive(task, to, how, (least, patience)),
            Backend::Inet(inet) => {
                let count = inet.receive(task, to, how.looks, (least, patience))?;
                Ok(Taken {
                    count,
                    whole: count,
                    from: None,
                    sender: NOBODY,
                    rights: Vec::new(),
                    charge: None,
                })
            }
        }
    }

    /// Puts back what was received and could not be handed over.
    pub fn give_back(&self, bytes: &[u8], taken: &mut Taken<Right, Paid>) {
        match &self.backend {
            Backend::Local(local) => local.give_back(bytes, taken),
            Backend::Inet(inet) => inet.give_back(bytes),
        }
    }

    /// Sends; how many bytes.
    ///
    /// # Errors
    /// Linux's.
    pub fn send(
        &self,
        task: &Task,
        message: Sending<'_>,
        patience: Patience,
    ) -> Result<usize, Error> {
        let options = self.options();
        match &self.backend {
            Backend::Local(local) => local.send(task, message, &options, patience),
            Backend::Inet(inet) => inet.send(task, message.bytes, patience),
        }
    }

    /// Gives it a name.
    ///
    /// # Errors
    /// Linux's.
    pub fn bind(&self, task: &Task, address: &[u8]) -> Result<(), Error> {
        match &self.backend {
            Backend::Local(local) => local.bind(task, address),
            Backend::Inet(inet) => inet.bind(task, address),
        }
    }

    /// Connects it.
    ///
    /// # Errors
    /// Linux's.
    pub fn connect(&self, task: &Task, address: &[u8]) -> Result<(), Error> {
        let patience = self.patience(0, false);
        match &self.backend {
            Backend::Local(local) => local.connect(task, address, patience),
            Backend::Inet(inet) => inet.connect(task, address, patience),
        }
    }

    /// Has others connect to it, of whom so many may wait.
    ///
    /// # Errors
    /// Linux's.
    pub fn listen(&self, task: &Task, backlog: u32) -> Result<(), Error> {
        match &self.backend {
            Backend::Local(local) => local.listen(task, backlog),
            Backend::Inet(inet) => inet.listen(backlog),
        }
    }

    /// The next one that has connected to it.
    ///
    /// # Errors
    /// Linux's.
    pub fn accept(&self, task: &Task) -> Result<Socket, Error> {
        let patience = self.patience(0, true);
        // Nobody waits for what there is no room for.
        let held = task.process.owner.user().hold(COST)?;
        let backend = match &self.backend {
            Backend::Local(local) => {
                let local = local.accept(task, patience)?;
                local.tell_senders(self.options().tells_sender());
                Backend::Local(local)
            }
            Backend::Inet(inet) => Backend::Inet(inet.accept(task, patience)?),
        };
        Ok(Socket {
            kind: self.kind,
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            never_waits: AtomicBool::new(false),
            options: Mutex::new(Options::default()),
            backend,
            _held: held,
        })
    }

    /// Ends one direction, or both.
    ///
    /// # Errors
    /// Linux's.
    pub fn shut(&self, receives: bool, sends: bool) -> Result<(), Error> {
        match &self.backend {
            Backend::Local(local) => local.shut(receives, sends),
            Backend::Inet(inet) => inet.shut(receives, sends),
        }
    }

    /// Its own address (`of_peer`: that of the other side).
    ///
    /// # Errors
    /// `ENOTCONN`: there is no other side. `ENOMEM`.
    pub fn address(&self, of_peer: bool) -> Result<Vec<u8>, Error> {
        match &self.backend {
            Backend::Local(local) => local.address(of_peer),
            Backend::Inet(inet) => inet.address(of_peer),
        }
    }

    /// Bytes that can be received (`FIONREAD`), and that the other side has not yet
    /// (`SIOCOUTQ`).
    ///
    /// # Errors
    /// `EINVAL`: it has connections, not bytes.
    pub fn waiting(&self) -> Result<[usize; 2], Error> {
        match &self.backend {
            Backend::Local(local) => local.waiting(),
            Backend::Inet(inet) => inet.waiting(),
        }
    }

    /// What can be done without waiting, as `poll` says it; `bell` hears of a change.
    pub fn ready(&self, bell: &Bell) -> u64 {
        let options = self.options();
        match &self.backend {
            Backend::Local(local) => local.ready(bell, &options),
            Backend::Inet(inet) => inet.ready(bell),
        }
    }

    /// Whether what would wait is an error.
    pub fn never_waits(&self) -> bool {
        self.never_waits.load(Ordering::Relaxed)
    }

    /// Sets whether what would wait is an error.
    pub fn set_never_waits(&self, never_waits: bool) {
        self.never_waits.store(never_waits, Ordering::Relaxed);
    }

    /// The number by which programs tell it from others.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// What `stat` tells of it.
    pub fn attributes(&self) -> Attributes {
        Attributes {
            device: DEVICE,
            inode: self.number,
            ..Attributes::new(SOCKET | 0o777, 0)
        }
    }
}

/// The socket that something is.
///
/// # Errors
/// `ENOTSOCK`: it is something else.
pub fn socket_of(open: &Open) -> Result<&Socket, Error> {
    match open {
        Open::Socket(socket) => Ok(socket),
        _ => Err(crate::errno::ENOTSOCK),
    }
}
