//! A disk for one machine, over the protocol of network block devices on a Unix socket: enough of
//! it for QEMU.
//!
//! All writes and flushes are recorded ([`Tape`]). A flush covers the writes that had been answered
//! when it arrived; those that were still under way it may or may not reach.
//!
//! Format reference: the NBD project's `doc/proto.md`, cited as "proto".

use std::io::{self, BufReader, Read, Write};
use std::ops::Range;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};

/// "proto", newstyle negotiation.
const GREETING: &[u8; 16] = b"NBDMAGICIHAVEOPT";
const OPTION: u64 = u64::from_be_bytes(*b"IHAVEOPT");
const FIXED_NEWSTYLE: u16 = 1;
const NO_ZEROES: u16 = 2;
const OPTION_REPLY: u64 = 0x0003_e889_0455_65a9;
const OPT_EXPORT_NAME: u32 = 1;
const OPT_ABORT: u32 = 2;
const OPT_INFO: u32 = 6;
const OPT_GO: u32 = 7;
const REP_ACK: u32 = 1;
const REP_INFO: u32 = 3;
const REP_UNSUPPORTED: u32 = (1 << 31) + 1;
/// "proto", transmission: there are flags, and flushes can be sent.
const TRANSMISSION: u16 = 1 | 4;
const REQUEST: u32 = 0x2560_9513;
const REPLY: u32 = 0x6744_6698;
const READ: u16 = 0;
const WRITE: u16 = 1;
const DISCONNECT: u16 = 2;
const FLUSH: u16 = 3;
const INVALID: u32 = 22;
const IO: u32 = 5;
/// Longest option or request that is accepted.
const LONGEST: u32 = 64 << 20;

/// What happened to a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// These bytes were written there.
    Write {
        /// The first byte.
        offset: usize,
        /// The bytes.
        data: Vec<u8>,
    },
    /// The first so many writes are on the medium.
    Flush {
        /// How many.
        writes: usize,
    },
}

/// What a disk held at first, and all that happened to it.
#[derive(Clone, Debug, Default)]
pub struct Tape {
    /// The content at first.
    pub base: Vec<u8>,
    /// What happened, in order.
    pub events: Vec<Event>,
}

#[derive(Default)]
struct State {
    tape: Tape,
    /// The content now.
    now: Vec<u8>,
    /// Writes that were answered.
    answered: usize,
    /// How long the next write is to take.
    stall: Option<Duration>,
    /// Reads that touch these bytes are kept back; how many are.
    kept: Vec<Range<usize>>,
    kept_back: usize,
    /// Reads that touch these bytes fail.
    broken: Vec<Range<usize>>,
}

/// A disk that is being served.
pub struct Server {
    state: Arc<Mutex<State>>,
    /// Where it can be reached.
    pub socket: PathBuf,
}

impl Server {
    /// Serves a disk with the content `base` at `socket`, a path of fewer than 100 bytes.
    ///
    /// # Errors
    /// If the socket cannot be made.
    pub fn start(base: Vec<u8>, socket: &Path) -> Result<Self> {
        // One may be left from a run that was interrupted.
        let _ = std::fs::remove_file(socket);
        let listener =
            UnixListener::bind(socket).with_context(|| format!("socket {}", socket.display()))?;
        let state = Arc::new(Mutex::new(State {
            now: base.clone(),
            tape: Tape {
                base,
                events: Vec::new(),
            },
            ..State::default()
        }));
        let shared = state.clone();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(io::Result::ok) {
                // A client that goes away or breaks the protocol ends its connection, nothing else.
                let _ = serve(stream, &shared);
            }
        });
        Ok(Server {
            state,
            socket: socket.to_path_buf(),
        })
    }

    /// Has the next write take so long, once.
    pub fn stall(&self, how_long: Duration) {
        lock(&self.state).stall = Some(how_long);
    }

    /// Has reads that touch these bytes kept back until [`let_go`](Self::let_go); all others are
    /// answered meanwhile.
    pub fn keep_back(&self, bytes: Range<usize>) {
        lock(&self.state).kept.push(bytes);
    }

    /// How many reads are kept back now.
    pub fn kept_back(&self) -> usize {
        lock(&self.state).kept_back
    }

    /// Has reads that touch these bytes fail from now on, those that are kept back, too.
    pub fn spoil(&self, bytes: Range<usize>) {
        lock(&self.state).broken.push(bytes);
    }

    /// Has all reads answered that are kept back, and keeps none back any more.
    pub fn let_go(&self) {
        lock(&self.state).kept.clear();
    }

    /// What it holds now.
    pub fn content(&self) -> Vec<u8> {
        lock(&self.state).now.clone()
    }

    /// How many events there were.
    pub fn position(&self) -> usize {
        lock(&self.state).tape.events.len()
    }

    /// All events so far.
    pub fn tape(&self) -> Tape {
        lock(&self.state).tape.clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The thread waits for another client until we end; nobody finds it any more.
        let _ = std::fs::remove_file(&self.socket);
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Request {
    kind: u16,
    cookie: [u8; 8],
    offset: u64,
    length: u32,
    data: Vec<u8>,
    /// For a flush: the writes that were answered when it arrived.
    covered: usize,
}

fn serve(stream: UnixStream, state: &Arc<Mutex<State>>) -> io::Result<()> {
    let mut output = stream.try_clone()?;
    let mut input = BufReader::new(stream);
    let size = lock(state).now.len() as u64;
    if !negotiate(&mut input, &mut output, size)? {
        return Ok(());
    }
    let (sender, requests) = mpsc::channel();
    let shared = state.clone();
    let worker = thread::spawn(move || answer(&requests, &mut output, &shared));
    let result = receive(&mut input, &sender, state);
    drop(sender);
    // Its only errors are those of a client that has gone.
    let _ = worker.join();
    result
}

fn number<const N: usize>(input: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    input.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn bytes(input: &mut impl Read, length: u32) -> io::Result<Vec<u8>> {
    if length > LONGEST {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut bytes = vec![0; length as usize];
    input.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Agrees on the export; whether the client wants it.
fn negotiate(input: &mut impl Read, output: &mut impl Write, size: u64) -> io::Result<bool> {
    output.write_all(GREETING)?;
    output.write_all(&(FIXED_NEWSTYLE | NO_ZEROES).to_be_bytes())?;
    let flags = u32::from_be_bytes(number(input)?);
    let export = [&size.to_be_bytes()[..], &TRANSMISSION.to_be_bytes()].concat();
    loop {
        if u64::from_be_bytes(number(input)?) != OPTION {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let option = u32::from_be_bytes(number(input)?);
        let length = u32::from_be_bytes(number(input)?);
        bytes(input, length)?;
        match option {
            OPT_EXPORT_NAME => {
                output.write_all(&export)?;
                if flags & u32::from(NO_ZEROES) == 0 {
                    output.write_all(&[0; 124])?;
                }
                return Ok(true);
            }
            OPT_INFO | OPT_GO => {
                // Information 0: the export.
                reply(output, option, REP_INFO, &[&[0; 2][..], &export].concat())?;
                reply(output, option, REP_ACK, &[])?;
                if option == OPT_GO {
                    return Ok(true);
                }
            }
            OPT_ABORT => {
                reply(output, option, REP_ACK, &[])?;
                return Ok(false);
            }
            _ => reply(output, option, REP_UNSUPPORTED, &[])?,
        }
    }
}

fn reply(output: &mut impl Write, option: u32, kind: u32, data: &[u8]) -> io::Result<()> {
    let mut message = OPTION_REPLY.to_be_bytes().to_vec();
    for word in [option, kind, data.len() as u32] {
        message.extend(word.to_be_bytes());
    }
    message.extend(data);
    output.write_all(&message)
}

/// Takes requests as they come, until the client disconnects.
fn receive(
    input: &mut impl Read,
    requests: &Sender<Request>,
    state: &Mutex<State>,
) -> io::Result<()> {
    loop {
        if u32::from_be_bytes(number(input)?) != REQUEST {
            return Err(io::ErrorKind::InvalidData.into());
        }
        number::<2>(input)?;
        let kind = u16::from_be_bytes(number(input)?);
        let cookie = number(input)?;
        let offset = u64::from_be_bytes(number(input)?);
        let length = u32::from_be_bytes(number(input)?);
        let data = match kind {
            WRITE => bytes(input, length)?,
            DISCONNECT => return Ok(()),
            _ => Vec::new(),
        };
        let covered = lock(state).answered;
        let request = Request {
            kind,
            cookie,
            offset,
            length,
            data,
            covered,
        };
        if requests.send(request).is_err() {
            return Ok(());
        }
    }
}

/// How often it is looked whether what is kept back may go.
const LOOK: Duration = Duration::from_millis(10);

/// Does what is asked for, in order, but for what is kept back.
fn answer(
    requests: &Receiver<Request>,
    output: &mut impl Write,
    state: &Mutex<State>,
) -> io::Result<()> {
    let mut kept = Vec::new();
    loop {
        let next = match requests.recv_timeout(LOOK) {
            Ok(request) => Some(request),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        };
        let mut now = lock(state);
        let (later, due): (Vec<_>, Vec<_>) = kept
            .into_iter()
            .chain(next)
            .partition(|request| now.is_kept(request));
        kept = later;
        now.kept_back = kept.len();
        drop(now);
        for request in due {
            answer_one(request, output, state)?;
        }
    }
}

fn answer_one(request: Request, output: &mut impl Write, state: &Mutex<State>) -> io::Result<()> {
    let cookie = request.cookie;
    let stall = match request.kind {
        WRITE => lock(state).stall.take(),
        _ => None,
    };
    if let Some(how_long) = stall {
        thread::sleep(how_long);
    }
    let (error, data) = lock(state).perform(request);
    let mut message = REPLY.to_be_bytes().to_vec();
    message.extend(error.to_be_bytes());
    message.extend(cookie);
    message.extend(data);
    output.write_all(&message)
}

/// Whether it reads one of these bytes.
fn reads(request: &Request, some: &[Range<usize>]) -> bool {
    let start = usize::try_from(request.offset).unwrap_or(usize::MAX);
    let end = start.saturating_add(request.length as usize);
    let touches = |bytes: &Range<usize>| start < bytes.end && bytes.start < end;
    request.kind == READ && some.iter().any(touches)
}

impl State {
    fn is_kept(&self, request: &Request) -> bool {
        reads(request, &self.kept)
    }

    /// An error number, and what was read.
    fn perform(&mut self, request: Request) -> (u32, Vec<u8>) {
        let length = request.length as usize;
        let start = usize::try_from(request.offset).unwrap_or(usize::MAX);
        let range = start..start.saturating_add(length);
        match request.kind {
            READ if reads(&request, &self.broken) => (IO, Vec::new()),
            READ => match self.now.get(range) {
                Some(found) => (0, found.to_vec()),
                None => (INVALID, Vec::new()),
            },
            WRITE => match self.now.get_mut(range) {
                Some(place) => {
                    place.copy_from_slice(&request.data);
                    let (offset, data) = (start, request.data);
                    self.tape.events.push(Event::Write { offset, data });
                    self.answered += 1;
                    (0, Vec::new())
                }
                None => (INVALID, Vec::new()),
            },
            FLUSH => {
                let writes = request.covered;
                self.tape.events.push(Event::Flush { writes });
                (0, Vec::new())
            }
            _ => (INVALID, Vec::new()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(stream: &mut UnixStream, kind: u16, offset: u64, length: u32, data: &[u8]) {
        let mut message = REQUEST.to_be_bytes().to_vec();
        message.extend([0, 0]);
        message.extend(kind.to_be_bytes());
        message.extend(7u64.to_be_bytes());
        message.extend(offset.to_be_bytes());
        message.extend(length.to_be_bytes());
        message.extend(data);
        stream.write_all(&message).expect("sent");
    }

    fn expect_answer(stream: &mut UnixStream, error: u32, length: usize) -> Vec<u8> {
        assert_eq!(u32::from_be_bytes(number(stream).expect("magic")), REPLY);
        assert_eq!(u32::from_be_bytes(number(stream).expect("error")), error);
        assert_eq!(u64::from_be_bytes(number(stream).expect("cookie")), 7);
        bytes(stream, length as u32).expect("data")
    }

    fn connected(name: &str) -> (Server, UnixStream) {
        let name = format!("trefoil-{name}-{}", std::process::id());
        let socket = std::env::temp_dir().join(name);
        let server = Server::start(vec![0; 4096], &socket).expect("served");
        let mut stream = UnixStream::connect(&socket).expect("connected");
        let greeting: [u8; 18] = number(&mut stream).expect("greeting");
        assert_eq!(greeting[..16], GREETING[..]);
        stream.write_all(&3u32.to_be_bytes()).expect("sent");
        let mut option = OPTION.to_be_bytes().to_vec();
        option.extend(OPT_EXPORT_NAME.to_be_bytes());
        option.extend(0u32.to_be_bytes());
        stream.write_all(&option).expect("sent");
        assert_eq!(u64::from_be_bytes(number(&mut stream).expect("size")), 4096);
        number::<2>(&mut stream).expect("flags");
        (server, stream)
    }

    #[test]
    fn what_is_written_is_read_and_recorded() {
        let (server, mut stream) = connected("nbd-1");
        ask(&mut stream, WRITE, 512, 3, b"abc");
        expect_answer(&mut stream, 0, 0);
        ask(&mut stream, FLUSH, 0, 0, &[]);
        expect_answer(&mut stream, 0, 0);
        ask(&mut stream, READ, 511, 5, &[]);
        assert_eq!(expect_answer(&mut stream, 0, 5), b"\0abc\0");
        let data = b"abc".to_vec();
        let offset = 512;
        let write = Event::Write { offset, data };
        assert_eq!(server.tape().events, [write, Event::Flush { writes: 1 }]);
    }

    #[test]
    fn what_is_outside_is_refused() {
        let (server, mut stream) = connected("nbd-2");
        ask(&mut stream, WRITE, 4095, 2, b"ab");
        expect_answer(&mut stream, INVALID, 0);
        ask(&mut stream, READ, u64::MAX, 2, &[]);
        expect_answer(&mut stream, INVALID, 0);
        assert_eq!(server.position(), 0);
    }

    #[test]
    fn reads_are_kept_back_and_fail_as_told() {
        let (server, mut stream) = connected("nbd-3");
        server.keep_back(512..1024);
        ask(&mut stream, READ, 1000, 100, &[]);
        ask(&mut stream, READ, 0, 512, &[]);
        ask(&mut stream, WRITE, 1000, 3, b"abc");
        expect_answer(&mut stream, 0, 512);
        expect_answer(&mut stream, 0, 0);
        while server.kept_back() != 1 {
            thread::sleep(LOOK);
        }
        server.let_go();
        assert_eq!(&expect_answer(&mut stream, 0, 100)[..4], b"abc\0");
        server.spoil(1000..1001);
        ask(&mut stream, READ, 999, 2, &[]);
        expect_answer(&mut stream, IO, 0);
        ask(&mut stream, READ, 1001, 2, &[]);
        assert_eq!(expect_answer(&mut stream, 0, 2), b"bc");
        assert_eq!(&server.content()[1000..1003], b"abc");
    }
}
