//! `bench ring3`: what a static program asks of its kernel, answered by the personality `linux` and
//! by Debian's kernel.
//!
//! The same program, `lab/peers/ring3/work.c`, runs in the same machine with one processor: once
//! with a clock that counts the guest's instructions (`-icount shift=0`), where the peer is asked
//! with its default mitigations and with none, and then in turns by the host's clock.
//!
//! By that clock it counts where code lies. QEMU finds what it has translated in a table of 64
//! places for a page, which pages share whose numbers are alike; two pieces that run in turns and
//! have one place there cost some hundred ticks each time. Debian's kernel lies elsewhere at each
//! boot, and so does `linux` in each round: there are some idle domains before it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, ensure};
use machine::qemu::{Machine, exec_word};
use machine::session::Session;
use trefoil_gate::project::Project;
use trefoil_gate::{build, tool};

use super::figure::Figure;
use super::side::{counting, peer_words, write_rows};
use crate::peer;

const LIMIT: Duration = Duration::from_secs(240);
/// What the program prints before each figure, and when it is done.
const MARK: &str = "ring3 ";
const DONE: &str = "ring3 done";
/// What the peer prints at its end.
const END: &str = "ring3-ended";
const SCRIPT: &str = "$bb mkdir /proc && $bb mount -t proc proc /proc && /program";
const MANIFEST: &str = "images/static.toml";
/// What the mean of all ratios is held against.
const MEAN: f64 = 0.7;
/// By the clock, these rows are held against the peer's time, the others against a bit more.
const STRICT: [&str; 4] = ["null", "read", "signal", "page fault"];
const SLACK: f64 = 1.15;

/// A row: what it is, and what it took; `None` if it was refused.
type Row = (String, Option<f64>);

/// Measures, and writes a list of the rows.
///
/// # Errors
/// If one of the systems does not do the work.
pub fn ring3(project: &Project, rounds: usize) -> Result<Vec<Figure>> {
    let folder = project.out.join("bench-ring3");
    fs::create_dir_all(&folder)?;
    let program = fs::read(compiled(project, &folder)?)?;
    let place = |round| ours(project, &folder, &program, round);
    let ours = place(0)?;
    let theirs = theirs(project, &folder, &program)?;
    let mut bare = theirs.clone();
    bare.words.push("mitigations=off".into());
    tool::step("counting what linux takes");
    let own = measure(&ours)?;
    tool::step("counting what Debian's kernel takes, with its mitigations and without");
    let [with, without] = [measure(&theirs)?, measure(&bare)?];
    let peers = [("Debian", with), ("without mitigations", without)];
    let mut figures = beside("instructions", &own, &peers);
    figures.extend(mean(&figures));
    figures.extend(timed(place, &theirs, rounds)?);
    write_rows(project, "ring3", &figures)?;
    Ok(figures)
}

/// The program.
fn compiled(project: &Project, folder: &Path) -> Result<PathBuf> {
    let program = folder.join("work");
    let mut command = Command::new(tool::need("gcc", "gcc")?);
    command
        .args(["-O2", "-Wall", "-static", "-nostdlib", "-ffreestanding"])
        .args(["-fno-stack-protector", "-fno-pie", "-no-pie", "-o"])
        .arg(&program)
        .arg(project.root.join("lab/peers/ring3/work.c"));
    tool::run(&mut command)?;
    Ok(program)
}

/// `linux` with the program in the place of busybox, behind so many idle domains.
fn ours(project: &Project, folder: &Path, program: &[u8], idle: usize) -> Result<Machine> {
    let manifest = project.root.join(MANIFEST);
    let built = build::build(project, Some(&manifest))?;
    let archive = folder.join("static.cpio");
    let text = behind(&fs::read_to_string(manifest)?, idle);
    let packed = build::packed_with(project, text.as_bytes(), &[("busybox", program)])?;
    fs::write(&archive, packed)?;
    let mut machine = counting(&built.kernel, folder, archive);
    machine.words.extend([exec_word("-"), "panic=off".into()]);
    Ok(machine)
}

/// The manifest with so many idle domains before all others.
fn behind(manifest: &str, idle: usize) -> String {
    let block = |number| {
        format!(
            "[domain.idle-{number}]\nimage = \"template\"\n\
             grants = {{ random = \"kernel.random\" }}\n\n"
        )
    };
    let blocks: String = (0..idle).map(block).collect();
    let first = manifest.find("[domain.").unwrap_or(manifest.len());
    format!("{}{blocks}{}", &manifest[..first], &manifest[first..])
}

fn theirs(project: &Project, folder: &Path, program: &[u8]) -> Result<Machine> {
    let peer = peer::debian(project)?;
    let archive = folder.join("peer.cpio");
    fs::write(&archive, peer.script_with(program, SCRIPT, END)?)?;
    let mut machine = counting(&peer.kernel, folder, archive);
    machine.words = peer_words();
    Ok(machine)
}

/// The rows of one run.
fn measure(machine: &Machine) -> Result<Vec<Row>> {
    let mut session = Session::start(machine, false)?;
    session.end(LIMIT)?;
    let screen = session.screen();
    ensure!(
        screen.contains(DONE),
        "the program did not come to its end\n{}",
        session.report()
    );
    Ok(screen.lines().filter_map(row).collect())
}

/// The row that a line tells.
fn row(line: &str) -> Option<Row> {
    let (value, name) = line.trim().strip_prefix(MARK)?.split_once(' ')?;
    match value {
        "-" => Some((name.into(), None)),
        _ => Some((name.into(), Some(value.parse().ok()?))),
    }
}

/// A figure for each row of ours. One that was refused is a miss.
fn beside(unit: &str, own: &[Row], peers: &[(&str, Vec<Row>)]) -> Vec<Figure> {
    let figure = |(name, value): &Row| {
        let mut figure = Figure::new("ring3", name, value.unwrap_or(f64::NAN), None, unit);
        for (peer, rows) in peers {
            let found = rows.iter().find(|(other, _)| other == name);
            if let Some(value) = found.and_then(|(_, value)| *value) {
                figure = figure.beside(peer, value);
            }
        }
        match figure.peers.first() {
            Some((_, most)) => {
                let most = *most;
                let ratio = figure.best / most;
                figure.at_most(most).beside("ratio", ratio)
            }
            None => figure,
        }
    };
    own.iter().map(figure).collect()
}

/// The geometric mean of the ratios of the rows that both have.
fn mean(figures: &[Figure]) -> Option<Figure> {
    let ratio = |figure: &Figure| Some(figure.best / figure.peers.first()?.1);
    let ratios = figures.iter().filter_map(ratio);
    let logarithms: Vec<f64> = ratios.filter(|it| it.is_finite()).map(f64::ln).collect();
    if logarithms.is_empty() {
        return None;
    }
    let mean = (logarithms.iter().sum::<f64>() / logarithms.len() as f64).exp();
    Some(Figure::new("ring3", "geometric mean of the ratios", mean, None, "").at_most(MEAN))
}

/// The same by the host's clock, in turns: the least of all rounds. `place` makes our machine.
fn timed(
    place: impl Fn(usize) -> Result<Machine>,
    theirs: &Machine,
    rounds: usize,
) -> Result<Vec<Figure>> {
    let by_clock = |machine: &Machine| Machine {
        count_instructions: false,
        ..machine.clone()
    };
    let theirs = by_clock(theirs);
    let (mut own, mut other) = (Vec::new(), Vec::new());
    for round in 1..=rounds {
        tool::step(format!(
            "both by the host's clock, round {round} of {rounds}"
        ));
        keep_least(&mut own, measure(&by_clock(&place(round - 1)?))?);
        keep_least(&mut other, measure(&theirs)?);
    }
    let mut figures = beside("ticks", &own, &[("Debian", other)]);
    for figure in &mut figures {
        let strict = STRICT.iter().any(|name| figure.name.starts_with(name));
        if let Some((_, peer)) = figure.peers.first().filter(|_| !strict) {
            *figure = figure.clone().at_most((peer * SLACK).round());
        }
    }
    Ok(figures)
}

/// Keeps the lesser value of each row.
fn keep_least(least: &mut Vec<Row>, rows: Vec<Row>) {
    if least.is_empty() {
        *least = rows;
        return;
    }
    for ((_, least), (_, value)) in least.iter_mut().zip(rows) {
        *least = least.zip(value).map(|(one, other)| one.min(other));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_rows() {
        let text = "boot\nring3 87 null call\r\nring3 - threads\nring3 done\nring3 x y\n";
        let rows: Vec<_> = text.lines().filter_map(row).collect();
        let names: Vec<_> = rows.iter().map(|(name, value)| (&**name, *value)).collect();
        assert_eq!(names, [("null call", Some(87.0)), ("threads", None)]);
    }

    #[test]
    fn ratios_are_by_name_and_what_was_refused_is_missed() {
        let rows = |values: [Option<f64>; 2]| ["a", "b"].map(String::from).into_iter().zip(values);
        let own: Vec<_> = rows([Some(50.0), None]).collect();
        let other: Vec<_> = rows([Some(100.0), Some(8.0)]).collect();
        let figures = beside("instructions", &own, &[("Debian", other)]);
        assert_eq!((figures[0].met, figures[1].met), (Some(true), Some(false)));
        let mean = mean(&figures).expect("one row has a ratio");
        assert!((mean.best - 0.5).abs() < 1e-9, "{mean:?}");
    }

    #[test]
    fn idle_domains_come_before_all_others() {
        let manifest = "# some\n[boot]\nx = 1\n\n[domain.a]\n";
        assert_eq!(behind(manifest, 0), manifest);
        let two = behind(manifest, 2);
        let places = ["[boot]", "[domain.idle-0]", "[domain.idle-1]", "[domain.a]"];
        let places = places.map(|block| two.find(block).expect(block));
        assert!(places.is_sorted(), "{two}");
    }

    #[test]
    fn of_all_rounds_the_least_counts() {
        let row = |value| vec![("a".to_string(), value)];
        let mut least = Vec::new();
        for value in [3.0, 2.0, 4.0] {
            keep_least(&mut least, row(Some(value)));
        }
        assert_eq!(least, row(Some(2.0)));
        keep_least(&mut least, row(None));
        assert_eq!(least, row(None));
    }
}
