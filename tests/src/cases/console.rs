//! The terminal: editing, Ctrl-C, Ctrl-D, and a prompt that always comes back.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use machine::qemu::Ended;
use machine::session::Session;

use super::{Case, case};
use crate::bench::{Bench, LIMIT};

pub(super) const CASES: &[Case] = &[
    case("console-typed-lines-run", typed),
    case("console-ctrl-c-ends-a-program", interrupt),
    case("console-ctrl-c-while-a-program-starts", interrupt_at_once),
    case("console-ctrl-d-ends-input", end_of_input),
    case("console-erase-key", erase),
    case("console-bad-input-gives-the-prompt-back", bad_input),
    case("console-lines-are-edited", edited),
    case("console-typed-ahead-is-not-lost", typed_ahead),
    case("console-ctrl-z-stops-and-fg-resumes", stopped),
    case("console-kill-ends-a-whole-job", whole_jobs),
    case("console-history-outlives-a-reboot", history),
    case("console-first-minutes", first_minutes),
    case("console-what-follows-a-file-ends-by-a-key", followers),
];

const CTRL_C: &[u8] = &[3];
const CTRL_D: &[u8] = &[4];

fn typed(bench: &Bench<'_>) -> Result<()> {
    let mut session = bench.session(&bench.machine())?;
    ensure!(
        session.run("echo one", LIMIT)? == "one\n",
        "{}",
        session.report()
    );
    ensure!(
        session.run("seq 1 3", LIMIT)? == "1\n2\n3\n",
        "{}",
        session.report()
    );
    session.type_line(b"poweroff")?;
    let ended = session.end(LIMIT)?;
    ensure!(
        matches!(ended, Ended::Status(0) | Ended::Off),
        "poweroff ended with {ended:?}"
    );
    Ok(())
}

/// What somebody tries who has just booted it: the greeting, help, the size of the terminal, and
/// pictures that fit it.
fn first_minutes(bench: &Bench<'_>) -> Result<()> {
    let disk = bench.small_disk("8M", &[], |root| {
        std::fs::create_dir(root.join("etc"))?;
        Ok(std::fs::write(root.join("etc/motd"), "Good morning.\n")?)
    })?;
    let mut machine = bench.machine_with(&disk);
    machine.words.push("terminal=100x30".into());
    let mut session = bench.session(&machine)?;
    ensure!(
        session.screen().contains("Good morning.\n"),
        "{}",
        session.report()
    );
    let mut run = |line: &str| session.run(line, LIMIT);
    ensure!(run("echo $COLUMNS $LINES")? == "100 30\n", "the size");
    let help = run("help")?;
    ensure!(
        help.contains("history") && help.contains("/boot/bin"),
        "{help}"
    );
    ensure!(run("history")?.contains("  help\n"), "the history");
    ensure!(run("which cat cd")?.contains("/boot/bin/cat\n"), "which");
    for (line, most) in [("domains", 100), ("COLUMNS=80", 80), ("domains", 80)] {
        let picture = run(line)?;
        ensure!(widest(&picture) <= most, "`{line}`:\n{picture}");
    }
    let before = session.screen().len();
    let from = session.printed();
    session.type_line(b"top")?;
    session.wait_for(from, "%CPU", LIMIT)?;
    session.settle(Duration::from_millis(700));
    let screen = session.screen();
    let picture = screen.get(before..).unwrap_or_default();
    ensure!(
        picture.contains("% busy") && picture.contains("%CPU") && widest(picture) <= 80,
        "`top`:\n{picture}"
    );
    let from = session.printed();
    session.guest.send(b"xq")?;
    session.wait_for(from, "$ ", LIMIT)?;
    let printed = session.run("echo back", LIMIT)?;
    ensure!(printed.ends_with("back\n"), "after `top`: {printed:?}");
    Ok(())
}

/// Columns of the widest line, without what steers the terminal: ESC, `[`, and all up to a letter.
fn widest(picture: &str) -> usize {
    let width = |line: &str| {
        let mut parts = line.split('\x1b');
        let first = parts.next().unwrap_or_default().chars().count();
        let shown = |part: &str| {
            let end = part.find(|letter: char| letter.is_ascii_alphabetic());
            end.map_or(0, |at| part[at + 1..].chars().count())
        };
        first + parts.map(shown).sum::<usize>()
    };
    picture.lines().map(width).max().unwrap_or(0)
}

/// `dmesg -w` and `tail -f` show what comes, until Ctrl-C.
fn followers(bench: &Bench<'_>) -> Result<()> {
    let disk = bench.disk()?;
    let mut session = bench.session(&bench.machine_with(&disk))?;
    session.run("echo first > /grows", LIMIT)?;
    for (line, expected) in [
        (
            "(sleep 0.5; echo second >> /grows) & tail -f /grows",
            "second",
        ),
        (
            "(sleep 0.5; wc /grows > /dev/null) & dmesg -w",
            "wc: domain ",
        ),
    ] {
        let from = session.printed();
        session.type_line(line.as_bytes())?;
        let from = session.wait_for(from, "\n", LIMIT)?;
        session.wait_for(from, expected, LIMIT)?;
        session.guest.send(CTRL_C)?;
        let from = session.wait_for(from, "^C", LIMIT)?;
        session.wait_for(from, "$ ", LIMIT)?;
        let printed = session.run("echo back", LIMIT)?;
        ensure!(printed.contains("back\n"), "{line}: {printed:?}");
    }
    Ok(())
}

fn interrupt(bench: &Bench<'_>) -> Result<()> {
    let mut session = bench.session(&bench.machine())?;
    for line in ["sleep 1000", "yes > /dev-null-or-nothing", "cat"] {
        session.type_line(line.as_bytes())?;
        session.settle(Duration::from_millis(500));
        let from = session.printed();
        session.guest.send(CTRL_C)?;
        // There may have been a prompt before: that behind the key is meant.
        let from = session.wait_for(from, "^C", LIMIT)?;
        session.wait_for(from, "$ ", LIMIT)?;
        let printed = session.run("echo back", LIMIT)?;
        ensure!(
            printed.ends_with("back\n"),
            "after `{line}`: {printed:?}\n{}",
            session.report()
        );
    }
    Ok(())
}

/// The key comes at all moments of a start: before the shell has read the line, while it looks for
/// the program, while its image is read and verified (which is done once), while it is loaded, when
/// it runs.
fn interrupt_at_once(bench: &Bench<'_>) -> Result<()> {
    let endless = [
        "sleep 1000",
        "cat",
        "wc",
        "sort",
        "tail",
        "head",
        "tr a b",
        "uniq",
        "cut -c 1",
        "grep x",
        "hexdump",
        "sha256sum",
        "tee",
        "xargs",
        "tail | cat",
    ];
    for round in 0..4 {
        let mut session = bench.session(&bench.machine())?;
        for (number, line) in endless.iter().enumerate() {
            session.type_line(line.as_bytes())?;
            std::thread::sleep(Duration::from_millis(number as u64 * 2 + round));
            let from = session.printed();
            session.guest.send(CTRL_C)?;
            let from = session.wait_for(from, "^C", LIMIT)?;
            session.wait_for(from, "$ ", LIMIT)?;
            let printed = session.run("echo back $((500 + 7))", LIMIT)?;
            ensure!(
                printed.ends_with("back 507\n"),
                "`{line}`: {printed:?}\n{}",
                session.report()
            );
        }
    }
    Ok(())
}

/// Arrow keys, Home, Ctrl-K, completion, search: each line is checked by what it prints.
fn edited(bench: &Bench<'_>) -> Result<()> {
    let mut session = bench.session(&bench.machine())?;
    for (keys, expected) in [
        ("echo two\x1b[D\x1b[D\x1b[Done \x05!", "one two!\n"),
        ("xx\x1b[H\x0becho \x19", "xx\n"),
        ("echo ä\x7fö\x1b[Dü\x1b[F.", "üö.\n"),
        ("\x1b[A", "üö.\n"),
        ("\x1b[A\x1b[A\x1b[A\x1b[B", "xx\n"),
        ("\x12one", "one two!\n"),
        ("basena\t /a/b/c", "c\n"),
        ("ls -d /boot/bi\t", "/boot/bin/\n"),
        ("echo /boot/bin/basena\t.", "/boot/bin/basename .\n"),
        ("false dropped\x15echo $?", "0\n"),
    ] {
        let printed = session.run(keys, LIMIT)?;
        ensure!(
            printed == expected,
            "{keys:?}: expected {expected:?}, got {printed:?}\n{}",
            session.report()
        );
    }
    let long = format!("echo {}", "0123456789".repeat(400));
    let printed = session.run(&long, LIMIT)?;
    ensure!(
        printed == format!("{}\n", &long[5..]),
        "a line of 4,000 characters: {printed:?}"
    );
    Ok(())
}

/// What is typed before the shell or a program asks for it reaches who is next.
fn typed_ahead(bench: &Bench<'_>) -> Result<()> {
    let mut session = bench.session(&bench.machine())?;
    for round in 0..10 {
        let from = session.printed();
        let lines = format!(
            "\x03echo a$((500 + {round}))\ntr a-z A-Z\nround {round}\n\x04echo b$((700 + {round}))\n"
        );
        session.guest.send(lines.as_bytes())?;
        // What is echoed meanwhile may stand in between, but only between whole texts.
        let mut at = session.wait_for(from, &format!("a{}", 500 + round), LIMIT)?;
        at = session.wait_for(at, &format!("ROUND {round}\r\n"), LIMIT)?;
        at = session.wait_for(at, &format!("b{}", 700 + round), LIMIT)?;
        session.wait_for(at, "$ ", LIMIT)?;
    }
    Ok(())
}

/// `kill %1` ends all processes of a job: of a pipeline, of a list, of programs that start others,
/// also when those are nobody's children any more, and while they start more and more.
fn whole_jobs(bench: &Bench<'_>) -> Result<()> {
    const JOBS: [&str; 6] = [
        "sleep 500 | sleep 501",
        "(sleep 500; sleep 501)",
        "sleep 500 && sleep 501 || sleep 502",
        "sh -c 'sleep 500 & sleep 501 | sleep 502; :'",
        "sh -c 'sh -c \"sleep 500 & :\"; sleep 501; :'",
        "sh -c 'while :; do sleep 500 & done'",
    ];
    let mut session = bench.session(&bench.machine())?;
    for job in JOBS {
        session.run("sleep 700 &", LIMIT)?;
        session.run(&format!("{job} &"), LIMIT)?;
        // The other job is the first, and lives on.
        session.run("sleep 1; kill %2; wait %2", LIMIT)?;
        expect_sleepers(&mut session, 1).context(job)?;
        session.run("kill %1; wait", LIMIT)?;
    }
    // A shell in a shell has no jobs of its own: it ends what descends from the one that is named.
    let nested = "sh -c 'sh -c \"sleep 500 & sleep 501; :\" & sleep 1; kill %1; wait; echo on'";
    ensure!(
        session.run(nested, LIMIT)? == "on\n",
        "{}",
        session.report()
    );
    expect_sleepers(&mut session, 0).context(nested)
}

/// Waits until there are so many processes of `sleep`; those that were ended may need a moment.
fn expect_sleepers(session: &mut Session, expected: u32) -> Result<()> {
    let mut seen = String::new();
    for _ in 0..50 {
        seen = session.run("ps | grep -c sleep", LIMIT)?;
        if seen == format!("{expected}\n") {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    bail!("{seen:?} in place of {expected}\n{}", session.report())
}

fn stopped(bench: &Bench<'_>) -> Result<()> {
    let mut session = bench.session(&bench.machine())?;
    let from = session.printed();
    // When the line is printed, both are there to be stopped.
    session.type_line(
        b"seq 1 1000000000 | sh -c 'read x; echo all $((70 + x)); while read x; do :; done'; echo not reached",
    )?;
    let from = session.wait_for(from, "all 71", LIMIT)?;
    session.guest.send(b"\x1a")?;
    let from = session.wait_for(from, "[1] Stopped", LIMIT)?;
    session.wait_for(from, "$ ", LIMIT)?;
    let checks = [
        ("echo $?", "148"),
        ("jobs", "[1] Stopped"),
        ("bg", "[1] seq"),
        ("jobs", "[1] Running"),
        ("kill %1; wait %1; echo $?; jobs", "143\n"),
        ("sleep 0.5 & fg; echo $?", "sleep 0.5\n0\n"),
        ("ps | grep -c 'seq'", "0\n"),
    ];
    for (line, expected) in checks {
        let printed = session.run(line, LIMIT)?;
        ensure!(
            printed.contains(expected),
            "{line}: expected {expected:?}, got {printed:?}\n{}",
            session.report()
        );
    }
    let from = session.printed();
    session.type_line(b"cat")?;
    session.guest.send(b"once\n")?;
    let from = session.wait_for(from, "once\r\nonce\r\n", LIMIT)?;
    session.guest.send(b"\x1a")?;
    let from = session.wait_for(from, "$ ", LIMIT)?;
    session.type_line(b"fg")?;
    // It says what goes on.
    let from = session.wait_for(from, "fg\r\ncat\r\n", LIMIT)?;
    session.guest.send(b"again\n\x04")?;
    let from = session.wait_for(from, "again\r\nagain\r\n", LIMIT)?;
    session.wait_for(from, "$ ", LIMIT).map(drop)
}

fn history(bench: &Bench<'_>) -> Result<()> {
    let disk = bench.disk()?;
    let machine = bench.machine_with(&disk);
    let mut session = bench.session(&machine)?;
    session.run("echo kept over a reboot", LIMIT)?;
    session.type_line(b"poweroff")?;
    session.end(LIMIT)?;
    let mut session = bench.session(&machine)?;
    let printed = session.run("\x1b[A\x1b[A", LIMIT)?;
    ensure!(
        printed == "kept over a reboot\n",
        "{printed:?}\n{}",
        session.report()
    );
    session.type_line(b"poweroff")?;
    session.end(LIMIT)?;
    bench.expect_clean(&disk)
}

fn end_of_input(bench: &Bench<'_>) -> Result<()> {
    let mut session = bench.session(&bench.machine())?;
    session.type_line(b"wc -l")?;
    session.guest.send(b"a\nb\n")?;
    session.guest.send(CTRL_D)?;
    let from = session.printed();
    session.wait_for(from, "2\r\n", LIMIT)?;
    session.prompt(LIMIT)
}

fn erase(bench: &Bench<'_>) -> Result<()> {
    let mut session = bench.session(&bench.machine())?;
    let printed = session.run("echo wronx\x7fg", LIMIT)?;
    ensure!(printed == "wrong\n", "expected wrong: {printed:?}");
    Ok(())
}

fn bad_input(bench: &Bench<'_>) -> Result<()> {
    let mut session = bench.session(&bench.machine())?;
    let long = "x".repeat(3000);
    for line in [
        "no-such-command",
        "echo )",
        "| |",
        "\u{1}\u{2}\u{7}\u{1b}[A",
        long.as_str(),
    ] {
        session.run(line, LIMIT)?;
    }
    ensure!(
        session.run("echo fine", LIMIT)? == "fine\n",
        "{}",
        session.report()
    );
    Ok(())
}
