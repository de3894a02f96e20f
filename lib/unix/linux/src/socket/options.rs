//! What `setsockopt` sets and `getsockopt` tells of every socket (`socket(7)`).

use crate::errno::{EDOM, EINVAL, ENOPROTOOPT, EPERM, Error};

/// What is told of a socket and not set.
pub const SO_TYPE: u64 = 3;
/// See [`SO_TYPE`].
pub const SO_ERROR: u64 = 4;
/// See [`SO_TYPE`].
pub const SO_PEERCRED: u64 = 17;
/// See [`SO_TYPE`].
pub const SO_ACCEPTCONN: u64 = 30;
/// See [`SO_TYPE`].
pub const SO_PROTOCOL: u64 = 38;
/// See [`SO_TYPE`].
pub const SO_DOMAIN: u64 = 39;

const SO_REUSEADDR: u64 = 2;
const SO_SNDBUF: u64 = 7;
const SO_RCVBUF: u64 = 8;
const SO_PRIORITY: u64 = 12;
const SO_LINGER: u64 = 13;
const SO_PASSCRED: u64 = 16;
const SO_RCVLOWAT: u64 = 18;
const SO_SNDLOWAT: u64 = 19;
const SO_RCVTIMEO: u64 = 20;
const SO_SNDTIMEO: u64 = 21;
const SO_SNDBUFFORCE: u64 = 32;
const SO_RCVBUFFORCE: u64 = 33;
/// Options that are on or off: debugging, addresses used again, no routing, broadcasts, life signs,
/// urgent data in line, ports used again, credentials with messages.
const SWITCHES: [u64; 8] = [1, SO_REUSEADDR, 5, 6, 9, 10, 15, SO_PASSCRED];

/// Bytes of a buffer at the beginning, and of what may be asked for: at least, and at most.
const BUFFER: u32 = 212_992;
const LEAST: u32 = 4608;
const LEAST_RECEIVED: u32 = 2304;
const MOST: u32 = 212_992;
/// The highest priority that everybody may have.
const MOST_PRIORITY: u32 = 6;
/// Nanoseconds of a second and of a microsecond.
const SECOND: u64 = 1_000_000_000;
const MICRO: u64 = 1_000;

/// The options of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    switches: u32,
    /// Bytes that it may have sent and the other side not received.
    pub send_buffer: u32,
    /// What it says that it takes.
    pub receive_buffer: u32,
    /// How long it waits to receive, in nanoseconds; 0: for ever.
    pub receive_wait: u64,
    /// How long it waits to send, likewise.
    pub send_wait: u64,
    /// Whether `close` waits, and for how many seconds.
    linger: [u32; 2],
    /// How many bytes are worth waking somebody for.
    pub low_water: u32,
    priority: u32,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            switches: 0,
            send_buffer: BUFFER,
            receive_buffer: BUFFER,
            receive_wait: 0,
            send_wait: 0,
            linger: [0; 2],
            low_water: 1,
            priority: 0,
        }
    }
}

/// What an option is, as it is told: its bytes, and how many there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Value([u8; 16], usize);

impl Value {
    /// A number of 32 bits.
    pub fn number(number: u32) -> Self {
        Self::of(&number.to_le_bytes())
    }

    /// Some bytes, of which 16 at most are kept.
    pub fn of(from: &[u8]) -> Self {
        let mut bytes = [0; 16];
        let count = from.len().min(bytes.len());
        for (to, from) in bytes.iter_mut().zip(from) {
            *to = *from;
        }
        Value(bytes, count)
    }

    /// Its bytes, cut to so many.
    pub fn bytes(&self, room: usize) -> &[u8] {
        self.0.get(..self.1.min(room)).unwrap_or_default()
    }
}

fn pair(words: [u64; 2]) -> Value {
    let mut bytes = [0; 16];
    for (place, word) in bytes.as_chunks_mut().0.iter_mut().zip(words) {
        *place = word.to_le_bytes();
    }
    Value(bytes, 16)
}

fn bit(option: u64) -> Option<u32> {
    let at = SWITCHES.iter().position(|it| *it == option)?;
    Some(1 << at)
}

/// A `struct timeval`, as nanoseconds; 0: for ever.
fn wait(bytes: &[u8]) -> Result<u64, Error> {
    let words: &[u8; 16] = bytes.first_chunk().ok_or(EINVAL)?;
    let ([seconds, micros], _) = words.as_chunks() else {
        return Err(EINVAL);
    };
    let [seconds, micros] = [seconds, micros].map(|it| i64::from_le_bytes(*it));
    let micros = u64::try_from(micros).map_err(|_| EDOM)?;
    if micros >= SECOND / MICRO {
        return Err(EDOM);
    }
    // A time that has gone is the shortest that there is.
    let Ok(seconds) = u64::try_from(seconds) else {
        return Ok(1);
    };
    Ok(seconds
        .saturating_mul(SECOND)
        .saturating_add(micros * MICRO))
}

impl Options {
    /// Whether its messages say who has sent them.
    pub fn tells_sender(&self) -> bool {
        bit(SO_PASSCRED).is_some_and(|bit| self.switches & bit != 0)
    }

    /// Whether an address may be used that was used a moment ago.
    pub fn uses_again(&self) -> bool {
        bit(SO_REUSEADDR).is_some_and(|bit| self.switches & bit != 0)
    }

    /// Sets an option from these bytes; `is_root`: it is the system's own user that asks.
    ///
    /// # Errors
    /// `ENOPROTOOPT`: there is no such option, or it cannot be set. `EINVAL`, `EDOM`, `EPERM`.
    pub fn set(&mut self, option: u64, bytes: &[u8], is_root: bool) -> Result<(), Error> {
        let number = u32::from_le_bytes(*bytes.first_chunk().ok_or(EINVAL)?);
        if let Some(bit) = bit(option) {
            self.switches &= !bit;
            self.switches |= if number != 0 { bit } else { 0 };
            return Ok(());
        }
        let most = match option {
            SO_SNDBUFFORCE | SO_RCVBUFFORCE if !is_root => return Err(EPERM),
            // More than that nobody gets: memory of this machine is not without end.
            _ => MOST,
        };
        match option {
            SO_SNDBUF | SO_SNDBUFFORCE => self.send_buffer = (2 * number.min(most)).max(LEAST),
            SO_RCVBUF | SO_RCVBUFFORCE => {
                self.receive_buffer = (2 * number.min(most)).max(LEAST_RECEIVED);
            }
            SO_PRIORITY if number > MOST_PRIORITY && !is_root => return Err(EPERM),
            SO_PRIORITY => self.priority = number,
            SO_LINGER => {
                let second = bytes.get(4..).and_then(|it| it.first_chunk());
                let seconds = u32::from_le_bytes(*second.ok_or(EINVAL)?);
                let is_on = u32::from(number != 0);
                self.linger = [is_on, if is_on == 0 { self.linger[1] } else { seconds }];
            }
            SO_RCVLOWAT => {
                let most = i32::MAX as u32;
                self.low_water = number.clamp(1, most);
                if number > most {
                    self.low_water = most;
                }
            }
            SO_RCVTIMEO => self.receive_wait = wait(bytes)?,
            SO_SNDTIMEO => self.send_wait = wait(bytes)?,
            _ => return Err(ENOPROTOOPT),
        }
        Ok(())
    }

    /// What an option is.
    ///
    /// # Errors
    /// `ENOPROTOOPT`: there is no such option, or not here.
    pub fn get(&self, option: u64) -> Result<Value, Error> {
        if let Some(bit) = bit(option) {
            return Ok(Value::number(u32::from(self.switches & bit != 0)));
        }
        let time = |wait: u64| match wait {
            1 => pair([0, 0]),
            wait => pair([wait / SECOND, wait % SECOND / MICRO]),
        };
        Ok(match option {
            SO_SNDBUF => Value::number(self.send_buffer),
            SO_RCVBUF => Value::number(self.receive_buffer),
            SO_PRIORITY => Value::number(self.priority),
            SO_LINGER => {
                let [is_on, seconds] = self.linger.map(u64::from);
                Value::of(&(is_on | seconds << 32).to_le_bytes())
            }
            SO_RCVLOWAT => Value::number(self.low_water),
            SO_SNDLOWAT => Value::number(1),
            SO_RCVTIMEO => time(self.receive_wait),
            SO_SNDTIMEO => time(self.send_wait),
            _ => return Err(ENOPROTOOPT),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(options: &Options, option: u64) -> u32 {
        let value = options.get(option).unwrap();
        u32::from_le_bytes(*value.bytes(9).first_chunk().unwrap())
    }

    #[test]
    fn buffers_are_doubled_and_bounded() {
        let mut options = Options::default();
        let mut set = |option, number: u32, is_root| {
            let result = options.set(option, &number.to_le_bytes(), is_root);
            (result, number_of(&options))
        };
        fn number_of(options: &Options) -> [u32; 2] {
            [number(options, SO_SNDBUF), number(options, SO_RCVBUF)]
        }
        assert_eq!(set(SO_SNDBUF, 10_000, false), (Ok(()), [20_000, 212_992]));
        assert_eq!(set(SO_SNDBUF, 1, false), (Ok(()), [4608, 212_992]));
        assert_eq!(
            set(SO_SNDBUF, u32::MAX, false),
            (Ok(()), [425_984, 212_992])
        );
        assert_eq!(set(SO_RCVBUF, 0, false), (Ok(()), [425_984, 2304]));
        assert_eq!(set(SO_SNDBUFFORCE, 9, false).0, Err(EPERM));
        assert_eq!(set(SO_SNDBUFFORCE, 9000, true).1, [18_000, 2304]);
    }

    #[test]
    fn switches_and_times_come_back_as_they_were_set() {
        let mut options = Options::default();
        for option in SWITCHES {
            assert_eq!(number(&options, option), 0);
            options.set(option, &7_u32.to_le_bytes(), false).unwrap();
            assert_eq!(number(&options, option), 1);
        }
        assert!(options.tells_sender() && options.uses_again());
        let time = |seconds: i64, micros: i64| pair([seconds as u64, micros as u64]);
        let mut set = |value: Value| {
            let result = options.set(SO_RCVTIMEO, value.bytes(16), false);
            result.map(|()| (options.receive_wait, options.get(SO_RCVTIMEO).unwrap()))
        };
        assert_eq!(set(time(1, 500_000)), Ok((1_500_000_000, time(1, 500_000))));
        assert_eq!(set(time(0, 0)), Ok((0, time(0, 0))));
        assert_eq!(set(time(-1, 0)), Ok((1, time(0, 0))));
        assert_eq!(set(time(0, 1_000_000)), Err(EDOM));
        assert_eq!(set(time(0, -1)), Err(EDOM));
        assert_eq!(set(time(i64::MAX, 0)).unwrap().0, u64::MAX);
        assert_eq!(options.set(SO_RCVTIMEO, &[0; 15], false), Err(EINVAL));
        assert_eq!(options.set(SO_REUSEADDR, &[0; 3], false), Err(EINVAL));
        assert_eq!(options.set(99, &[0; 4], true), Err(ENOPROTOOPT));
        assert_eq!(options.set(SO_TYPE, &[0; 4], true), Err(ENOPROTOOPT));
        assert_eq!(options.get(99), Err(ENOPROTOOPT));
        options
            .set(SO_RCVLOWAT, &0_u32.to_le_bytes(), false)
            .unwrap();
        assert_eq!(number(&options, SO_RCVLOWAT), 1);
    }
}
