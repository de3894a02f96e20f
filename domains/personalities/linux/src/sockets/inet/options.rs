//! What programs set of a socket, and are told of it.

use super::{Inet, TCP};
use crate::errno::{EINVAL, ENOPROTOOPT, Error};
use crate::sockets::network::why;
use linux::socket::AF_INET;
use linux::socket::options::{self, Value};

type Result<T> = core::result::Result<T, Error>;

/// The level of options of IP, and `TCP_NODELAY`.
const IP: u64 = 0;
const NO_DELAY: u64 = 1;

/// Whether an option is one that programs set to help, and that need not: kinds of service, times
/// of life signs, and when what is acknowledged or accepted.
fn is_hint(level: u64, option: u64) -> bool {
    matches!((level, option), (IP, 1 | 2) | (TCP, 3..=6 | 9 | 12 | 18))
}

impl Inet {
    /// An option that is about what happens here.
    pub fn option(&self, option: u64) -> Option<Value> {
        let mut state = self.state.lock();
        match option {
            options::SO_ERROR => {
                self.look(&mut state);
                let error = state.error.take();
                Some(Value::number(error.map_or(0, |error| error.0 as u32)))
            }
            options::SO_ACCEPTCONN => Some(Value::number(u32::from(state.listens.is_some()))),
            options::SO_DOMAIN => Some(Value::number(AF_INET.into())),
            options::SO_PROTOCOL => Some(Value::number(TCP as u32)),
            _ => None,
        }
    }

    /// An option of IP's or TCP's. Of what else there is than `TCP_NODELAY`, all is as at first.
    pub fn deep_option(&self, level: u64, option: u64) -> Result<Value> {
        match (level, option) {
            (TCP, NO_DELAY) => Ok(Value::number(u32::from(self.state.lock().hurries))),
            _ if is_hint(level, option) => Ok(Value::number(0)),
            _ => Err(ENOPROTOOPT),
        }
    }

    /// Sets such an option. Hints are taken, and change nothing.
    pub fn set_deep_option(&self, level: u64, option: u64, bytes: &[u8]) -> Result<()> {
        let number = u32::from_le_bytes(*bytes.first_chunk().ok_or(EINVAL)?);
        match (level, option) {
            (TCP, NO_DELAY) => self.hurry(number != 0),
            _ if is_hint(level, option) => Ok(()),
            _ => Err(ENOPROTOOPT),
        }
    }

    /// Whether small pieces are sent at once.
    fn hurry(&self, hurries: bool) -> Result<()> {
        let mut state = self.state.lock();
        state.hurries = hurries;
        match &state.line {
            Some(line) => line.socket.hurry(hurries).map_err(why),
            None => Ok(()),
        }
    }
}
