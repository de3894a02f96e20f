//! Sockets of Linux programs, and what they wait for: what is right, the host says, which runs the
//! same programs on Linux; what a user may take of them is this system's own.

use std::process::Command;

use anyhow::{Result, ensure};
use trefoil_gate::tool;

use super::linux::{compiled, debian_disk, machine, put};
use super::{Case, case};
use crate::bench::{Bench, LIMIT};

pub(super) const CASES: &[Case] = &[
    case("linux-sockets-say-what-they-say-on-linux", same),
    case("linux-sockets-have-limits-and-leave-nothing", limits),
];

/// Runs programs of `lab/peers/linux-sockets`, one after the other; what they print here, and on
/// the host.
fn run(bench: &Bench<'_>, names: &[&str], processors: u32) -> Result<[String; 2]> {
    let disk = debian_disk(bench)?;
    let (mut lines, mut right) = (Vec::new(), String::new());
    for name in names {
        let program = compiled(bench, &format!("linux-sockets/{name}.c"))?;
        put(bench, &disk, name, &std::fs::read(&program)?, "0100755")?;
        // On Linux limits of this system's own would be others.
        if *name != "limits" {
            right += &tool::output(&mut Command::new(program))?;
        }
        lines.push(format!("/{name}"));
    }
    let mut machine = machine(bench, &disk)?;
    machine.processors = processors;
    let answer = bench.exec_within(5 * LIMIT, machine, &lines.join("; "))?;
    let said = answer.status(0)?.silently()?.stdout;
    bench.expect_clean(&disk)?;
    Ok([said, right])
}

fn same(bench: &Bench<'_>) -> Result<()> {
    for processors in [1, 4] {
        let [said, right] = run(bench, &["local", "sets"], processors)?;
        let pairs = said.lines().zip(right.lines());
        let other: Vec<_> = pairs.filter(|(one, other)| one != other).collect();
        ensure!(said == right, "{other:#?}\n{said}");
    }
    Ok(())
}

/// What a user's programs meet who take all that they can.
const LIMITS: &str = "some full 1, no memory 1, other 0
socket: ENFILE
counter: ENFILE
set: ENFILE
item: ENOSPC
pipe: done
after a read: done
in messages: 1000 ETOOMANYREFS
again: done
into itself: ETOOMANYREFS
one into the other: done
and back: ETOOMANYREFS
own end: done
when it is taken out: done
deep: 900, the last: done
held: EAGAIN
let go: 0
killed
as much again: 1
";

fn limits(bench: &Bench<'_>) -> Result<()> {
    let [said, _] = run(bench, &["limits"], 2)?;
    ensure!(said == LIMITS, "{said}");
    Ok(())
}
