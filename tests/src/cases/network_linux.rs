//! Sockets of Linux programs: with themselves, with the host, and while driver and stack crash.
//!
//! What the programs reach of the host are ports of its loopback address at which the test itself
//! listens.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use anyhow::{Context, Result, ensure};
use machine::disk;
use machine::network::{Forward, Network};
use machine::qemu::Machine;
use machine::session::{ROOT_PROMPT, Session};
use trefoil_gate::tool;

use super::linux::{compiled, debian_disk, machine, put};
use super::network::{LEASED, connect, echo, logged};
use super::{Case, case};
use crate::bench::{Bench, LIMIT};

pub(super) const CASES: &[Case] = &[
    case("network-linux-sockets-are-as-on-linux", own),
    case("network-linux-programs-connect-and-serve", both),
];

/// The port of the program that serves.
const SERVED: u16 = 8080;
/// Bytes that go to the host and come back.
const MUCH: usize = 10 << 20;

/// A disk with the program of the peers, and that program on the host.
fn prepared(bench: &Bench<'_>) -> Result<(PathBuf, PathBuf)> {
    let program = compiled(bench, "linux-network/sockets.c")?;
    let disk = debian_disk(bench)?;
    let content = std::fs::read(&program)?;
    put(bench, &disk, "sockets", &content, "0100755")?;
    Ok((program, disk))
}

fn own(bench: &Bench<'_>) -> Result<()> {
    let (program, disk) = prepared(bench)?;
    let right = tool::output(&mut Command::new(program))?;
    for processors in [1, 4] {
        let mut machine = machine(bench, &disk)?;
        machine.processors = processors;
        machine.network = Some(Network::User {
            is_open: false,
            forwards: Vec::new(),
        });
        let answer = bench.exec_on(machine, "/sockets")?;
        answer.status(0)?.prints(&right)?;
    }
    // Without a device there is no network, and all else is as before.
    let line = "exec 3<>/dev/tcp/127.0.0.1/7; echo $?";
    let answer = bench.exec_on(machine(bench, &disk)?, &format!("bash -c '{line}' 2>&1"))?;
    answer.shows("Network is down")?.shows("1\n")?;
    Ok(())
}

/// A machine whose port is served to the host, and where.
fn served(bench: &Bench<'_>, disk: &Path) -> Result<(Machine, SocketAddr)> {
    let mut machine = machine(bench, disk)?;
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
    machine.network = Some(Network::User {
        is_open: true,
        forwards: vec![Forward {
            host: free.port(),
            guest: SERVED,
        }],
    });
    Ok((machine, free))
}

/// Gives back what comes by each of `count` connections.
fn give_back(listener: &TcpListener, count: usize) -> Result<()> {
    for _ in 0..count {
        let (mut stream, _) = listener.accept()?;
        let mut room = vec![0; 64 << 10];
        loop {
            let count = stream.read(&mut room)?;
            if count == 0 {
                break;
            }
            stream.write_all(&room[..count])?;
        }
    }
    Ok(())
}

fn both(bench: &Bench<'_>) -> Result<()> {
    let (_, disk) = prepared(bench)?;
    let much = disk::noise(MUCH, 21);
    put(bench, &disk, "much", &much, "0100644")?;
    let (machine, address) = served(bench, &disk)?;
    let mut session = Session::start(&machine, false)?.with_prompt(ROOT_PROMPT);
    session.prompt(LIMIT)?;
    logged(&session, LEASED, 1)?;
    let host = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let port = host.local_addr()?.port();
    // Bash's own connections: a word, and 10 MB while the driver dies.
    let peer = thread::spawn(move || give_back(&host, 2));
    let said = session.run(
        &format!("exec 3<>/dev/tcp/10.0.2.2/{port}; echo a word >&3; head -n 1 <&3; exec 3>&-"),
        LIMIT,
    )?;
    ensure!(said.contains("a word"), "{said}");
    let line = format!(
        "exec 3<>/dev/tcp/10.0.2.2/{port}; cat /much >&3 & \
         for i in 1 2 3; do sleep 0.3; trefoil crash virtio-net; done > /dev/null & \
         head -c {MUCH} <&3 | cmp - /much && echo all of it; exec 3>&-; wait"
    );
    let said = session.run(&line, LIMIT)?;
    ensure!(said.contains("all of it"), "{said}");
    peer.join()
        .map_err(|_| anyhow::anyhow!("it panicked"))?
        .context("the host's end")?;
    serve(&mut session, address)
}

/// The program serves the host, also when the stack has died.
fn serve(session: &mut Session, address: SocketAddr) -> Result<()> {
    session.run(&format!("/sockets {SERVED} 4 > /served & sleep 1"), LIMIT)?;
    let said = session.run("cat /served", LIMIT)?;
    ensure!(said.contains("listening"), "{said}");
    let data = disk::noise(1 << 20, 3);
    for _ in 0..2 {
        echo(&connect(address)?, &data, 0, || Ok(()))?;
    }
    let open = connect(address)?;
    // It dies in its next call, which is that of the shell.
    session.run(
        "trefoil crash net; bash -c ': 3<>/dev/tcp/127.0.0.1/9'; sleep 1",
        LIMIT,
    )?;
    logged(session, LEASED, 2)?;
    ensure!(ends(open), "a connection has outlived its stack");
    let stream = connect(address)?;
    echo(&stream, &data, 0, || Ok(())).context("behind the next stack")?;
    session.type_line(b"poweroff")?;
    session.end(LIMIT)?;
    Ok(())
}

/// Whether a connection is over.
fn ends(mut stream: TcpStream) -> bool {
    let sent = stream.write_all(b"are you there?");
    sent.is_err() || !matches!(stream.read(&mut [0; 9]), Ok(1..))
}
