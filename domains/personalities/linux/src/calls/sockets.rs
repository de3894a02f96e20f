//! Sockets: making, names, connections, options (`socket(2)`, `unix(7)`). What is sent and received
//! is in `messages`.

use super::{AT_FDCWD, Result};
use crate::errno::{
    EAFNOSUPPORT, ECONNREFUSED, EINVAL, ENOENT, ENOMEM, ENOTTY, EOPNOTSUPP, EPROTONOSUPPORT,
};
use crate::files::Open;
use crate::memory;
use crate::sockets::local::End;
use crate::sockets::{Socket, socket_of};
use crate::task::Task;
use crate::walk::Node;
use alloc::sync::Arc;
use alloc::vec::Vec;
use interfaces::FileKind;
use linux::cred::WRITE;
use linux::socket::address::LONGEST;
use linux::socket::message::SOL_SOCKET;
use linux::socket::{AF_INET, AF_UNIX, Kind, SOCK_CLOEXEC, SOCK_NONBLOCK};

/// `ioctl`: what can be read, what is on its way, whether calls wait.
const FIONREAD: u64 = 0x541b;
const SIOCOUTQ: u64 = 0x5411;
const FIONBIO: u64 = 0x5421;
/// The most bytes of an option that are read.
const MOST_OPTION: usize = 64;

impl Task {
    /// Places a new socket as its flags say.
    fn place_socket(&mut self, socket: Socket, flags: u64) -> Result<u64> {
        socket.set_never_waits(flags & SOCK_NONBLOCK != 0);
        let open = Arc::new(Open::Socket(socket));
        self.place(open, 0, flags & SOCK_CLOEXEC != 0)
    }

    /// `socket`.
    pub(super) fn socket(&mut self, family: u64, kind: u64, protocol: u64) -> Result<u64> {
        let (kind, flags) = Kind::of(kind & 0xffff_ffff)?;
        let socket = Socket::of_family(self, family & 0xffff_ffff, kind, protocol)?;
        self.place_socket(socket, flags)
    }

    /// `socketpair`.
    pub(super) fn socket_pair(
        &mut self,
        family: u64,
        kind: u64,
        protocol: u64,
        at: u64,
    ) -> Result<u64> {
        let (kind, flags) = Kind::of(kind & 0xffff_ffff)?;
        match u16::try_from(family).unwrap_or(0) {
            AF_UNIX if protocol as u32 > 1 => return Err(EPROTONOSUPPORT),
            AF_UNIX => {}
            AF_INET => return Err(EOPNOTSUPP),
            _ => return Err(EAFNOSUPPORT),
        }
        let [one, other] = Socket::pair(self, kind)?;
        let one = self.place_socket(one, flags)?;
        let other = self.place_socket(other, flags);
        let other = other.or_else(|why| self.close(one).and(Err(why)))?;
        self.put(at, &[one | other << 32]).inspect_err(|_| {
            // Nobody knows of them.
            let _ = [one, other].map(|it| self.close(it));
        })
    }

    /// Does something with the socket that a descriptor leads to.
    fn with_socket<T>(&self, descriptor: u64, act: impl FnOnce(&Socket) -> Result<T>) -> Result<T> {
        let open = self.opened(descriptor)?;
        act(socket_of(&open)?)
    }

    /// An address in the program's memory.
    pub(super) fn address(&self, at: u64, length: u64) -> Result<Vec<u8>> {
        let length = usize::try_from(length as i32).map_err(|_| EINVAL)?;
        if length > LONGEST {
            return Err(EINVAL);
        }
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(length).map_err(|_| ENOMEM)?;
        bytes.resize(length, 0);
        memory::read(&self.program.mm.space, at, &mut bytes)?;
        Ok(bytes)
    }

    /// Puts as much of an address as there is room for at a place, and how many bytes it has where
    /// that room is said.
    pub(super) fn put_address(&self, bytes: &[u8], (at, length_at): (u64, u64)) -> Result<()> {
        let space = &self.program.mm.space;
        let mut room = [0; 4];
        memory::read(space, length_at, &mut room)?;
        let room = usize::try_from(i32::from_le_bytes(room)).map_err(|_| EINVAL)?;
        memory::write(space, at, &bytes[..bytes.len().min(room)])?;
        let length = bytes.len() as u32;
        memory::write(space, length_at, &length.to_le_bytes())
    }

    /// `bind`.
    pub(super) fn bind(&self, descriptor: u64, at: u64, length: u64) -> Result<u64> {
        self.with_socket(descriptor, |socket| {
            let address = self.address(at, length)?;
            socket.bind(self, &address).map(|()| 0)
        })
    }

    /// `connect`.
    pub(super) fn connect(&self, descriptor: u64, at: u64, length: u64) -> Result<u64> {
        self.with_socket(descriptor, |socket| {
            let address = self.address(at, length)?;
            socket.connect(self, &address).map(|()| 0)
        })
    }

    /// `listen`.
    pub(super) fn listen(&self, descriptor: u64, backlog: u64) -> Result<u64> {
        self.with_socket(descriptor, |socket| {
            socket.listen(self, backlog as u32).map(|()| 0)
        })
    }

    /// `accept4`.
    pub(super) fn accept(
        &mut self,
        descriptor: u64,
        at: u64,
        length_at: u64,
        flags: u64,
    ) -> Result<u64> {
        if flags & !(SOCK_NONBLOCK | SOCK_CLOEXEC) != 0 {
            return Err(EINVAL);
        }
        let accepted = self.with_socket(descriptor, |socket| socket.accept(self))?;
        if at != 0 {
            let address = accepted.address(true).unwrap_or_default();
            self.put_address(&address, (at, length_at))?;
        }
        self.place_socket(accepted, flags)
    }

    /// `shutdown`.
    pub(super) fn shut(&self, descriptor: u64, how: u64) -> Result<u64> {
        self.with_socket(descriptor, |socket| match how as u32 {
            0 => socket.shut(true, false),
            1 => socket.shut(false, true),
            2 => socket.shut(true, true),
            _ => Err(EINVAL),
        })?;
        Ok(0)
    }

    /// `getsockname`, `getpeername`.
    pub(super) fn put_address_of(
        &self,
        descriptor: u64,
        to: (u64, u64),
        of_peer: bool,
    ) -> Result<u64> {
        let address = self.with_socket(descriptor, |socket| socket.address(of_peer))?;
        self.put_address(&address, to).map(|()| 0)
    }

    /// `setsockopt`: socket, level, option, where it stands, its bytes.
    pub(super) fn set_option(&self, a: [u64; 5]) -> Result<u64> {
        let length = usize::try_from(a[4] as i32).map_err(|_| EINVAL)?;
        self.with_socket(a[0], |socket| {
            let mut bytes = [0; MOST_OPTION];
            let bytes = &mut bytes[..length.min(MOST_OPTION)];
            memory::read(&self.program.mm.space, a[3], bytes)?;
            match a[1] == u64::from(SOL_SOCKET) {
                true => socket.set_option(self, a[2], bytes)?,
                false => socket.set_deep_option(a[1], a[2], bytes)?,
            }
            Ok(0)
        })
    }

    /// `getsockopt`: socket, level, option, where it goes to, and where the room is said.
    pub(super) fn put_option(&self, a: [u64; 5]) -> Result<u64> {
        let space = &self.program.mm.space;
        self.with_socket(a[0], |socket| {
            let mut room = [0; 4];
            memory::read(space, a[4], &mut room)?;
            let room = usize::try_from(i32::from_le_bytes(room)).map_err(|_| EINVAL)?;
            let value = match a[1] == u64::from(SOL_SOCKET) {
                true => socket.option(a[2])?,
                false => socket.deep_option(a[1], a[2])?,
            };
            let bytes = value.bytes(room);
            memory::write(space, a[3], bytes)?;
            let length = bytes.len() as u32;
            memory::write(space, a[4], &length.to_le_bytes()).map(|()| 0)
        })
    }

    /// `ioctl`.
    pub(super) fn control_socket(&self, socket: &Socket, what: u64, at: u64) -> Result<u64> {
        let space = &self.program.mm.space;
        let number = match what {
            FIONREAD => socket.waiting()?[0],
            SIOCOUTQ => socket.waiting()?[1],
            FIONBIO => {
                let mut word = [0; 4];
                memory::read(space, at, &mut word)?;
                socket.set_never_waits(word != [0; 4]);
                return Ok(0);
            }
            _ => return Err(ENOTTY),
        };
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        memory::write(space, at, &number.to_le_bytes()).map(|()| 0)
    }

    /// The socket that has a path.
    ///
    /// # Errors
    /// Linux's: of the way there; `EACCES`: it may not be written to; `ECONNREFUSED`: nobody has
    /// it, or it is something else.
    pub fn find_socket(&self, path: &[u8]) -> Result<Arc<End>> {
        let path = self.path_of_text(path.to_vec(), AT_FDCWD)?;
        self.walked(&path, true, |view, led, _| {
            let node = led.node.as_ref().ok_or(ENOENT)?;
            view.cred.check(&view.attributes(node)?, WRITE)?;
            match node {
                Node::Disk(node) if node.kind() == FileKind::Socket => {
                    self.disk()?.sockets.find(node.inode())
                }
                _ => Err(ECONNREFUSED),
            }
        })
    }
}
