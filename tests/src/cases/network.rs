//! The network: an address by DHCP, echoes, frames that lie, and a driver and a stack that crash.
//!
//! No test touches the host's network: what leads to the system is a port of the loopback address
//! by QEMU's user network, which leads nowhere else; a pair of Unix sockets; or a tap interface in
//! a network namespace of its own.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

use anyhow::{Context, Result, bail, ensure};
use machine::disk;
use machine::network::{Forward, Network};
use machine::qemu::Machine;
use machine::session::Session;
use trefoil_gate::tool;

use super::recovery::{MANY_RESTARTS, cell, expect_no_restart, expect_restarts, with_limits};
use super::{Case, case};
use crate::bench::{Bench, LIMIT};

pub(super) const CASES: &[Case] = &[
    case("network-dhcp-and-echo-by-a-forwarded-port", forwarded),
    case("network-connections-survive-driver-crashes", driver),
    case("network-goes-on-after-the-stack-is-killed", stack),
    case("network-hostile-frames-are-dropped", hostile),
    case("network-linux-pings-and-echoes-over-a-tap", tapped),
];

/// The port of the echo service.
const ECHO: u16 = 7;
/// The address that QEMU's user network gives, as the log says it.
pub(super) const LEASED: &str = "net: address 10.0.2.15/24";
/// The system's address where it is fixed, and that of its peer.
const OWN: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);
const PEER: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);

/// A machine behind QEMU's user network, and where its echo service is.
fn user(bench: &Bench<'_>, manifest: Option<&str>) -> Result<(Machine, SocketAddr)> {
    let mut machine = match manifest {
        Some(text) => bench.machine_by(text)?,
        None => bench.machine(),
    };
    machine.disk = Some(bench.disk()?);
    // Free now; whoever takes it meanwhile keeps QEMU from starting.
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
    machine.network = Some(Network::User {
        is_open: false,
        forwards: vec![Forward {
            host: free.port(),
            guest: ECHO,
        }],
    });
    Ok((machine, free))
}

/// Waits until the kernel's log has `text` `times` times.
pub(super) fn logged(session: &Session, text: &str, times: usize) -> Result<()> {
    let deadline = Instant::now() + LIMIT;
    loop {
        let log = session.guest.log();
        if log.matches(text).count() >= times {
            return Ok(());
        }
        ensure!(
            Instant::now() < deadline,
            "{text:?} is not {times} times in the log:\n{log}"
        );
        thread::sleep(Duration::from_millis(20));
    }
}

/// A connection on which nothing is waited for longer than for a machine.
pub(super) fn connect(address: SocketAddr) -> Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, LIMIT)?;
    stream.set_read_timeout(Some(LIMIT))?;
    stream.set_write_timeout(Some(LIMIT))?;
    Ok(stream)
}

/// Sends `data` and compares what comes back, up to the end that follows our own. After each of
/// `strikes` equal parts `strike` is called; what has not come back by then, and fits into no
/// buffer of the system, has still to pass its driver both ways.
pub(super) fn echo(
    stream: &TcpStream,
    data: &[u8],
    strikes: usize,
    mut strike: impl FnMut() -> Result<()>,
) -> Result<()> {
    thread::scope(|scope| {
        let sender = scope.spawn(move || {
            let mut out = stream;
            out.write_all(data)?;
            stream.shutdown(Shutdown::Write)
        });
        let mut back = vec![0; 64 << 10];
        let (mut at, mut struck, mut from) = (0, 0, stream);
        let received = loop {
            let count = match from.read(&mut back) {
                Ok(0) => break Ok(()),
                Ok(count) => count,
                Err(error) => break Err(error).with_context(|| format!("after {at} bytes")),
            };
            if data.get(at..at + count) != Some(&back[..count]) {
                break Err(anyhow::anyhow!("wrong bytes after {at}"));
            }
            at += count;
            if struck < strikes && at > data.len() / (strikes + 1) * (struck + 1) {
                struck += 1;
                strike()?;
            }
        };
        // Whoever still sends is not waited for in vain.
        if received.is_err() {
            let _ = stream.shutdown(Shutdown::Both);
        }
        let sent = sender.join();
        received?;
        sent.map_err(|_| anyhow::anyhow!("the sender panicked"))??;
        ensure!(at == data.len(), "{at} of {} bytes came back", data.len());
        ensure!(struck == strikes, "{struck} strikes of {strikes}");
        Ok(())
    })
}

fn forwarded(bench: &Bench<'_>) -> Result<()> {
    let (machine, address) = user(bench, None)?;
    let mut session = bench.session(&machine)?;
    logged(&session, LEASED, 1)?;
    let table = session.run("domains -q", LIMIT)?;
    expect_no_restart(&table, "virtio-net")?;
    expect_no_restart(&table, "net")?;
    // More at once than there are connections: the others wait for their turn.
    let data = disk::noise(1 << 20, 7);
    thread::scope(|scope| {
        let all = (0..4).map(|number| {
            let data = &data;
            scope.spawn(move || {
                let stream = connect(address)?;
                echo(&stream, data, 0, || Ok(())).with_context(|| format!("connection {number}"))
            })
        });
        let all: Vec<_> = all.collect();
        for one in all {
            one.join().map_err(|_| anyhow::anyhow!("it panicked"))??;
        }
        Ok::<(), anyhow::Error>(())
    })?;
    // Each has left its place: 40 one after the other find one.
    for number in 0..40 {
        let stream = connect(address)?;
        echo(&stream, b"again", 0, || Ok(())).with_context(|| format!("number {number}"))?;
    }
    power_off(session)
}

fn power_off(mut session: Session) -> Result<()> {
    session.type_line(b"poweroff")?;
    session.end(LIMIT)?;
    Ok(())
}

/// The driver dies in the middle of a transfer, again and again.
fn driver(bench: &Bench<'_>) -> Result<()> {
    let manifest = with_limits(bench, &["virtio-net"], MANY_RESTARTS)?;
    let (machine, address) = user(bench, Some(&manifest))?;
    let mut session = bench.session(&machine)?;
    logged(&session, LEASED, 1)?;
    let data = disk::noise(8 << 20, 11);
    let idle = connect(address)?;
    let stream = connect(address)?;
    let mut strikes = 0;
    echo(&stream, &data, 5, || {
        session.run("crash virtio-net", LIMIT)?;
        strikes += 1;
        // The next strike is for the next instance.
        logged(
            &session,
            &format!(": restart {strikes} after {strikes} crashes"),
            1,
        )
    })?;
    let table = session.run("domains -q", LIMIT)?;
    expect_restarts(&table, "virtio-net", 5)?;
    expect_no_restart(&table, "net")?;
    // One that was idle meanwhile is there, too, also when the driver dies while nobody sends.
    session.run("crash virtio-net", LIMIT)?;
    echo(&idle, b"still here", 0, || Ok(()))?;
    power_off(session)
}

/// Connections end with the stack, and new ones are served.
fn stack(bench: &Bench<'_>) -> Result<()> {
    let manifest = with_limits(bench, &["net", "virtio-net"], MANY_RESTARTS)?;
    let (machine, address) = user(bench, Some(&manifest))?;
    let mut session = bench.session(&machine)?;
    for round in 1..=3 {
        logged(&session, LEASED, round)?;
        let stream = connect(address)?;
        echo(&stream, b"before the end", 0, || Ok(()))?;
        session.run("kill-domain net", LIMIT)?;
        let table = session.run("domains -q", LIMIT)?;
        expect_no_restart(&table, "virtio-net")?;
    }
    logged(&session, LEASED, 4)?;
    let stream = connect(address)?;
    echo(&stream, &disk::noise(1 << 20, 5), 0, || Ok(()))?;
    session.run("kill-domain virtio-net; kill-domain net", LIMIT)?;
    logged(&session, LEASED, 5)?;
    let stream = connect(address)?;
    echo(&stream, b"both were gone", 0, || Ok(()))?;
    power_off(session)
}

/// The hardware addresses of the peer and of QEMU's first device.
const PEER_HARDWARE: [u8; 6] = [2, 0, 0, 0, 0, 1];
const OWN_HARDWARE: [u8; 6] = [0x52, 0x54, 0, 0x12, 0x34, 0x56];

/// Sends frames that lie in every way, between pings that are answered.
fn hostile(bench: &Bench<'_>) -> Result<()> {
    let mut machine = bench.machine_with(&bench.disk()?);
    // The name of a Unix socket is short.
    let folder = tempfile(bench)?;
    let (device, peer) = (folder.join("device"), folder.join("peer"));
    let socket = UnixDatagram::bind(&peer)?;
    socket.set_read_timeout(Some(Duration::from_millis(200)))?;
    machine.network = Some(Network::Wire {
        device: device.clone(),
        peer,
    });
    machine.words.push(format!("address={OWN}/24"));
    let mut session = bench.session(&machine)?;
    logged(&session, &format!("net: address {OWN}/24"), 1)?;
    let wire = Wire {
        socket,
        device: &device,
    };
    wire.ping(1)?;
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    for round in 0..40 {
        for _ in 0..100 {
            wire.send(&lie(&mut random))?;
        }
        wire.ping(2 + round)?;
    }
    let table = session.run("domains -q", LIMIT)?;
    expect_no_restart(&table, "virtio-net")?;
    expect_no_restart(&table, "net")?;
    let _ = fs::remove_dir_all(folder);
    power_off(session)
}

/// A folder with a short name.
fn tempfile(bench: &Bench<'_>) -> Result<std::path::PathBuf> {
    let name = bench.folder.file_name().unwrap_or_default();
    let folder = std::env::temp_dir().join(format!("trefoil-{}", std::process::id()));
    fs::create_dir_all(&folder).with_context(|| name.display().to_string())?;
    Ok(folder)
}

/// Xorshift: the same frames each time.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}

/// The peer's end.
struct Wire<'a> {
    socket: UnixDatagram,
    device: &'a Path,
}

impl Wire<'_> {
    fn send(&self, frame: &[u8]) -> Result<()> {
        Ok(self.socket.send_to(frame, self.device).map(|_| ())?)
    }

    /// Asks for an echo until the answer comes, and answers who asks for our hardware address.
    fn ping(&self, number: u16) -> Result<()> {
        let deadline = Instant::now() + LIMIT;
        let mut buffer = [0; 2048];
        while Instant::now() < deadline {
            self.send(&ping(number))?;
            while let Ok(length) = self.socket.recv(&mut buffer) {
                let frame = &buffer[..length];
                if is_question(frame) {
                    self.send(&answer())?;
                }
                if is_pong(frame, number) {
                    return Ok(());
                }
            }
        }
        bail!("no answer to echo request {number}")
    }
}

fn ethernet(kind: u16, body: &[u8]) -> Vec<u8> {
    let parts: [&[u8]; 4] = [&OWN_HARDWARE, &PEER_HARDWARE, &kind.to_be_bytes(), body];
    parts.concat()
}

/// "We have that address."
fn answer() -> Vec<u8> {
    let fixed: [u8; 8] = [0, 1, 8, 0, 6, 4, 0, 2];
    let parts: [&[u8]; 5] = [
        &fixed,
        &PEER_HARDWARE,
        &PEER.octets(),
        &OWN_HARDWARE,
        &OWN.octets(),
    ];
    ethernet(0x0806, &parts.concat())
}

fn is_question(frame: &[u8]) -> bool {
    frame.get(12..14) == Some(&[8, 6])
        && frame.get(20..22) == Some(&[0, 1])
        && frame.get(38..42) == Some(&PEER.octets())
}

fn sum(bytes: &[u8]) -> [u8; 2] {
    let words = bytes.chunks(2);
    let mut sum: u32 = words
        .map(|word| u32::from(word[0]) << 8 | u32::from(*word.get(1).unwrap_or(&0)))
        .sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    (!(sum as u16)).to_be_bytes()
}

/// An IPv4 packet of `protocol` with this body.
fn packet(protocol: u8, body: &[u8]) -> Vec<u8> {
    let length = (20 + body.len()) as u16;
    let [high, low] = length.to_be_bytes();
    let mut header = vec![0x45, 0, high, low, 0, 1, 0, 0, 64, protocol, 0, 0];
    header.extend(PEER.octets());
    header.extend(OWN.octets());
    let check = sum(&header);
    header[10..12].copy_from_slice(&check);
    header.extend(body);
    header
}

fn ping(number: u16) -> Vec<u8> {
    let mut body = vec![8, 0, 0, 0, 0x74, 0x72];
    body.extend(number.to_be_bytes());
    body.extend(b"how are you?");
    let check = sum(&body);
    body[2..4].copy_from_slice(&check);
    ethernet(0x0800, &packet(1, &body))
}

fn is_pong(frame: &[u8], number: u16) -> bool {
    frame.get(12..14) == Some(&[8, 0])
        && frame.get(26..30) == Some(&OWN.octets())
        && frame.get(34..36) == Some(&[0, 0])
        && frame.get(40..42) == Some(&number.to_be_bytes())
        && frame.get(42..54) == Some(b"how are you?")
}

/// A frame in which something is not as it says: of any length, with any bytes, or a right one with
/// some of them changed or its end cut off.
fn lie(random: &mut Random) -> Vec<u8> {
    let mut body = vec![0; random.below(1500)];
    for byte in &mut body {
        *byte = random.next() as u8;
    }
    let mut frame = match random.below(6) {
        0 => body,
        1 => ethernet(random.next() as u16, &body),
        2 => ethernet(0x0806, &body),
        3 => ethernet(0x0800, &body),
        4 => ethernet(
            0x0800,
            &packet([1, 6, 17][random.below(3)], &body[..body.len().min(80)]),
        ),
        _ => ping(random.next() as u16 | 0x8000),
    };
    for _ in 0..random.below(4) {
        if let Some(last) = frame.len().checked_sub(14).filter(|length| *length > 0) {
            let at = 14 + random.below(last.min(48));
            frame[at] = random.next() as u8;
        }
    }
    if random.below(4) == 0 {
        frame.truncate(random.below(frame.len() + 1).max(1));
    }
    if frame.is_empty() {
        frame.push(0);
    }
    frame
}

/// A network namespace, which goes with this.
struct Namespace(Child);

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Namespace {
    /// One with a tap interface, whose address is the peer's; `None` if it cannot be had here.
    fn with_tap() -> Option<Self> {
        let unshare = tool::find("unshare")?;
        let mut command = Command::new(unshare);
        command.args(["--net", "sh", "-c", "echo there; exec sleep 3600"]);
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut namespace = Namespace(command.spawn().ok()?);
        let mut word = [0; 6];
        let mut out = namespace.0.stdout.take()?;
        out.read_exact(&mut word).ok()?;
        let line = format!(
            "ip tuntap add dev tap0 mode tap && ip addr add {PEER}/24 dev tap0 && ip link set tap0 up"
        );
        let made = namespace.run(&line).ok()?;
        made.0.then_some(namespace)
    }

    /// Runs a line of bash inside: whether it went well, and what it printed.
    fn run(&self, line: &str) -> Result<(bool, String)> {
        let namespace = format!("--net=/proc/{}/ns/net", self.0.id());
        let mut command = Command::new(tool::need("nsenter", "util-linux")?);
        command.args([&namespace, "bash", "-c", line]);
        let output = command.stdin(Stdio::null()).output()?;
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text).into_owned();
        Ok((output.status.success(), text))
    }
}

/// Linux's own TCP and ping are the peers, while the driver dies.
fn tapped(bench: &Bench<'_>) -> Result<()> {
    let Some(namespace) = Namespace::with_tap().filter(|_| tool::find("ping").is_some()) else {
        eprintln!("network-linux-pings-and-echoes-over-a-tap: not run: no tap, or no ping");
        return Ok(());
    };
    let manifest = with_limits(bench, &["virtio-net"], MANY_RESTARTS)?;
    let mut machine = bench.machine_by(&manifest)?;
    machine.disk = Some(bench.disk()?);
    machine.network = Some(Network::Tap {
        name: "tap0".into(),
        namespace: Some(namespace.0.id()),
    });
    machine.words.push(format!("address={OWN}/24"));
    let mut session = bench.session(&machine)?;
    logged(&session, &format!("net: address {OWN}/24"), 1)?;
    let (_, said) = namespace.run(&format!("ping -c 10 -i 0.2 -W 20 -s 1400 {OWN}"))?;
    ensure!(said.contains(" 10 received"), "{said}");
    let file = bench.folder.join("sent");
    fs::write(&file, disk::noise(8 << 20, 13))?;
    let line = format!(
        "exec 3<>/dev/tcp/{OWN}/{ECHO}; cat {0} >&3 & head -c {1} <&3 | cmp - {0} && echo same; kill %1 2>/dev/null; wait",
        file.display(),
        8 << 20
    );
    thread::scope(|scope| {
        let transfer = scope.spawn(|| namespace.run(&line));
        while !transfer.is_finished() {
            session.run("crash virtio-net", LIMIT)?;
            thread::sleep(Duration::from_millis(500));
        }
        let (_, said) = transfer
            .join()
            .map_err(|_| anyhow::anyhow!("it panicked"))??;
        ensure!(said.contains("same"), "{said}");
        Ok::<(), anyhow::Error>(())
    })?;
    let table = session.run("domains -q", LIMIT)?;
    expect_no_restart(&table, "net")?;
    let strikes = cell(&table, "virtio-net", "RESTARTS").context("it is there")?;
    ensure!(strikes != "0", "{table}");
    // The driver dies at a ping as well; what it has then is lost, and what comes later is
    // answered.
    session.run("crash virtio-net", LIMIT)?;
    let (_, said) = namespace.run(&format!("ping -c 3 -i 0.2 -W 5 {OWN}"))?;
    ensure!(!said.contains(" 0 received"), "{said}");
    let (_, said) = namespace.run(&format!("ping -c 3 -i 0.2 -W 20 {OWN}"))?;
    ensure!(said.contains(" 3 received"), "{said}");
    power_off(session)
}
