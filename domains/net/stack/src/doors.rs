//! Sockets as objects that others call.
//!
//! A call of another domain does its work on the end of the network itself, under its lock, and
//! rings the thread that has the packets: what is to be sent is sent there, and what else comes of
//! it. That one raises the events of sockets of which there is more to see. The stack makes these
//! events, so what is raised is always the kernel's.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::SocketAddrV4;
use core::sync::atomic::{AtomicBool, Ordering};

use domain_rt::sync::{Mutex, MutexGuard};
use domain_rt::time;
use endpoint::{Endpoint, Failure, Id, Look, MOST, Next, Phase, Refusal};
use interfaces::{
    Event, Events, Handle, NewEvent, NewSocket, Place, RVec, Raiser, RpcResult, SocketError,
    SocketFailure, SocketPhase, SocketState, Sockets, TcpSocket,
};

/// What the lock guards.
pub struct Core {
    pub endpoint: Endpoint,
    /// How the owner of each socket is told, by the socket's number.
    raisers: Vec<Option<Handle<dyn Raiser>>>,
}

/// See the module.
pub struct Stack {
    core: Mutex<Core>,
    events: Handle<dyn Events>,
    bell: Handle<dyn Raiser>,
    /// The bell was rung, and its thread has not begun a turn since.
    is_rung: AtomicBool,
}

impl Stack {
    /// A stack, and the event of its bell.
    ///
    /// # Errors
    /// Those of the call.
    pub fn new(
        endpoint: Endpoint,
        events: Handle<dyn Events>,
    ) -> RpcResult<(Arc<Self>, Handle<dyn Event>)> {
        let NewEvent { raiser, event } = events.event()?;
        let mut raisers = Vec::new();
        raisers.resize_with(MOST, || None);
        let core = Mutex::new(Core { endpoint, raisers });
        let stack = Stack {
            core,
            events,
            bell: raiser,
            is_rung: AtomicBool::new(false),
        };
        Ok((Arc::new(stack), event))
    }

    /// The end of the network, which is locked meanwhile.
    pub fn core(&self) -> MutexGuard<'_, Core> {
        self.core.lock()
    }

    /// Does what there is to do, and tells the owners of sockets.
    pub fn turn(&self) -> Next {
        self.is_rung.store(false, Ordering::SeqCst);
        let mut core = self.core.lock();
        let next = core.endpoint.turn(time::now());
        let Core { endpoint, raisers } = &mut *core;
        endpoint.changes(|id| {
            if let Some(Some(raiser)) = raisers.get(id.number()) {
                // It fails only if nobody listens.
                let _ = raiser.raise();
            }
        });
        next
    }

    /// Has the thread with the packets make a turn.
    fn ring(&self) {
        if !self.is_rung.swap(true, Ordering::SeqCst) {
            // The event is held for as long as the stack lives.
            let _ = self.bell.raise();
        }
    }
}

/// The stack as others see it.
pub struct Entrance(pub Arc<Stack>);

impl Sockets for Entrance {
    fn open(&self, at: Place) -> Result<NewSocket, SocketError> {
        let NewEvent { raiser, event } = self.0.events.event()?;
        let at = SocketAddrV4::new(at.address.into(), at.port);
        let id = self.0.core().endpoint.open(at).map_err(refused)?;
        Ok(NewSocket {
            socket: Door::hand_out(&self.0, id, raiser)?,
            event,
        })
    }

    fn address(&self) -> Result<Option<([u8; 4], u8)>, SocketError> {
        let address = self.0.core().endpoint.address();
        Ok(address.map(|it| (it.address.octets(), it.prefix)))
    }
}

/// A socket. It is closed when this goes.
struct Door {
    stack: Arc<Stack>,
    id: Id,
}

impl Door {
    /// A handle to the socket. Without memory for the handle the socket is closed.
    fn hand_out(
        stack: &Arc<Stack>,
        id: Id,
        raiser: Handle<dyn Raiser>,
    ) -> RpcResult<Handle<dyn TcpSocket>> {
        let door = Door {
            stack: stack.clone(),
            id,
        };
        if let Some(place) = stack.core().raisers.get_mut(id.number()) {
            *place = Some(raiser);
        }
        Handle::new(door)
    }

    /// Does something with the end of the network.
    fn act<T>(
        &self,
        act: impl FnOnce(&mut Endpoint, Id) -> Result<T, Refusal>,
    ) -> Result<T, SocketError> {
        act(&mut self.stack.core().endpoint, self.id).map_err(refused)
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        let mut core = self.stack.core();
        core.endpoint.close(self.id, time::now());
        let raiser = core.raisers.get_mut(self.id.number());
        let raiser = raiser.and_then(Option::take);
        drop(core);
        drop(raiser);
        self.stack.ring();
    }
}

impl TcpSocket for Door {
    fn connect(&self, to: Place) -> Result<(), SocketError> {
        let to = SocketAddrV4::new(to.address.into(), to.port);
        self.act(|endpoint, id| endpoint.connect(id, to, time::now()))?;
        self.stack.ring();
        Ok(())
    }

    fn listen(&self, backlog: u32) -> Result<(), SocketError> {
        self.act(|endpoint, id| endpoint.listen(id, backlog as usize))?;
        self.stack.ring();
        Ok(())
    }

    fn accept(&self) -> Result<Option<NewSocket>, SocketError> {
        let look = self.stack.core().endpoint.look(self.id);
        if look.is_some_and(|look| look.phase == Phase::Listening && look.readable == 0) {
            return Ok(None);
        }
        let NewEvent { raiser, event } = self.stack.events.event()?;
        let accepted = self.act(|endpoint, id| endpoint.accept(id))?;
        let Some(id) = accepted else {
            return Ok(None);
        };
        let socket = Door::hand_out(&self.stack, id, raiser)?;
        // Another one may come in its place now.
        self.stack.ring();
        Ok(Some(NewSocket { socket, event }))
    }

    fn look(&self) -> Result<SocketState, SocketError> {
        let look = self.stack.core().endpoint.look(self.id);
        look.map(state).ok_or(SocketError::Wrong)
    }

    fn receive(&self, mut room: RVec<u8>, only_shows: bool) -> Result<RVec<u8>, SocketError> {
        let count = self.act(|endpoint, id| endpoint.read(id, &mut room, only_shows))?;
        if count > 0 && !only_shows {
            // The peer may send more.
            self.stack.ring();
        }
        Ok(room.truncated(count))
    }

    fn send(&self, bytes: &RVec<u8>) -> Result<u32, SocketError> {
        let count = self.act(|endpoint, id| endpoint.write(id, bytes))?;
        if count > 0 {
            self.stack.ring();
        }
        Ok(count as u32)
    }

    fn finish(&self) -> Result<(), SocketError> {
        self.act(|endpoint, id| endpoint.finish(id))?;
        self.stack.ring();
        Ok(())
    }

    fn hurry(&self, hurries: bool) -> Result<(), SocketError> {
        self.act(|endpoint, id| endpoint.hurry(id, hurries))
    }
}

fn refused(refusal: Refusal) -> SocketError {
    match refusal {
        Refusal::Full | Refusal::NoMemory => SocketError::Full,
        Refusal::InUse => SocketError::InUse,
        Refusal::NotOurs => SocketError::NotOurs,
        Refusal::Unreachable => SocketError::Unreachable,
        Refusal::Wrong => SocketError::Wrong,
    }
}

fn place(place: SocketAddrV4) -> Place {
    Place {
        address: place.ip().octets(),
        port: place.port(),
    }
}

fn state(look: Look) -> SocketState {
    SocketState {
        phase: match look.phase {
            Phase::Idle => SocketPhase::Idle,
            Phase::Opening => SocketPhase::Opening,
            Phase::Open => SocketPhase::Open,
            Phase::Over => SocketPhase::Over,
            Phase::Listening => SocketPhase::Listening,
        },
        readable: look.readable as u32,
        room: look.room as u32,
        is_roomy: look.is_roomy(),
        has_ended: look.has_ended,
        failure: look.failure.map(|failure| match failure {
            Failure::Refused => SocketFailure::Refused,
            Failure::Reset => SocketFailure::Reset,
            Failure::TimedOut => SocketFailure::TimedOut,
            Failure::Unreachable => SocketFailure::Unreachable,
            Failure::NoMemory => SocketFailure::NoMemory,
        }),
        own: place(look.own),
        peer: place(look.peer),
    }
}
