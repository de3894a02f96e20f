//! The shell's language and the programs, each as a line, what it prints and its status.

use anyhow::{Result, ensure};
use trefoil_gate::build;

use super::{Case, case};
use crate::bench::Bench;

pub(super) const CASES: &[Case] = &[
    case("shell-lists-and-conditions", lists),
    case("shell-pipes", pipes),
    case("shell-redirections", redirections),
    case("shell-quoting-and-variables", quoting),
    case("shell-background-and-wait", background),
    case("shell-errors", errors),
    case("programs-text", text_programs),
    case("programs-files", file_programs),
    case("programs-processes", process_programs),
    case("programs-every-one-starts", every_program),
    case("programs-that-use-up-memory", hungry),
];

/// A line, what it prints, and its status.
type Line = (&'static str, &'static str, i32);

/// Runs all lines in one boot, each in a shell of its own, with separators between.
fn check(bench: &Bench<'_>, lines: &[Line]) -> Result<()> {
    let disk = bench.disk()?;
    let quoted = |line: &str| line.replace('\'', "'\\''");
    let script: Vec<_> = lines
        .iter()
        .map(|(line, ..)| format!("sh -c '{}'; echo \"=$?=\"", quoted(line)))
        .collect();
    let answer = bench.exec(&disk, &script.join("\n"))?.status(0)?;
    let mut rest = answer.stdout.as_str();
    for (line, printed, status) in lines {
        let expected = format!("{printed}={status}=\n");
        let Some(next) = rest.strip_prefix(expected.as_str()) else {
            let came = rest.split_inclusive("=\n").next().unwrap_or_default();
            anyhow::bail!(
                "`{line}`: expected {expected:?}, got {came:?}; errors: {}",
                answer.stderr
            );
        };
        rest = next;
    }
    ensure!(rest.is_empty(), "unexpected at the end: {rest:?}");
    bench.expect_clean(&disk)
}

fn lists(bench: &Bench<'_>) -> Result<()> {
    check(
        bench,
        &[
            ("true; false", "", 1),
            ("true && echo a || echo b", "a\n", 0),
            ("false && echo a || echo b", "b\n", 0),
            ("false; echo $?", "1\n", 0),
            ("if true; then echo yes; else echo no; fi", "yes\n", 0),
            ("for i in 1 2 3; do echo $i; done", "1\n2\n3\n", 0),
        ],
    )
}

fn pipes(bench: &Bench<'_>) -> Result<()> {
    check(
        bench,
        &[
            ("seq 1 100 | grep 7 | wc -l", "19\n", 0),
            ("yes | head -n 3", "y\ny\ny\n", 0),
            ("cat /text/a.txt | cat | cat | wc -l", "5000\n", 0),
            ("true | false", "", 1),
            ("false | true", "", 0),
            ("seq 1 100000 | head -n 1", "1\n", 0),
        ],
    )
}

fn redirections(bench: &Bench<'_>) -> Result<()> {
    check(
        bench,
        &[
            ("ls /nope 2> /dev/null; echo gone > /dev/null", "", 0),
            ("cat /dev/null; head -c 5 /dev/zero | wc -c", "5\n", 0),
            ("echo one > /r; echo two >> /r; cat < /r", "one\ntwo\n", 0),
            ("echo three > /r; cat /r", "three\n", 0),
            ("ls /nothing 2> /e; wc -l < /e", "1\n", 2),
            ("cat < /nothing", "", 2),
        ]
        .map(|(line, printed, status)| {
            (line, printed, if line.contains("2>") { 0 } else { status })
        }),
    )
}

fn quoting(bench: &Bench<'_>) -> Result<()> {
    check(
        bench,
        &[
            ("echo 'a  b' \"c  d\" e\\ f", "a  b c  d e f\n", 0),
            ("x='1 2'; echo \"$x\" $x", "1 2 1 2\n", 0),
            ("echo '$x' \"a;b|c\"", "$x a;b|c\n", 0),
            ("echo a # b", "a\n", 0),
            ("echo \"é\"", "é\n", 0),
        ],
    )
}

fn background(bench: &Bench<'_>) -> Result<()> {
    check(
        bench,
        &[
            ("sleep 1 & wait; echo done", "done\n", 0),
            (
                "{ until [ -e /tmp/go ]; do sleep 0.05; done; echo late; } & echo soon; echo > /tmp/go; wait",
                "soon\nlate\n",
                0,
            ),
            ("sleep 100 & kill $!; wait; echo over", "over\n", 0),
        ],
    )
}

fn errors(bench: &Bench<'_>) -> Result<()> {
    let disk = bench.disk()?;
    bench
        .exec(&disk, "no-such-command")?
        .status(127)?
        .complains("no-such-command: command not found")?;
    bench.exec(&disk, "echo 'open")?.complains("sh:")?;
    bench
        .exec(&disk, "cat /text/missing")?
        .status(1)?
        .complains("/text/missing")?;
    bench
        .exec(&disk, "/text/a.txt")?
        .status(126)?
        .complains("/text/a.txt")?;
    Ok(())
}

fn text_programs(bench: &Bench<'_>) -> Result<()> {
    check(
        bench,
        &[
            ("head -n 2 /text/b.txt | wc -l", "2\n", 0),
            ("grep -c nothing-like-this /text/a.txt", "0\n", 1),
            ("wc -l < /text/a.txt", "5000\n", 0),
            ("seq 3", "1\n2\n3\n", 0),
            (
                "echo abc | sha256sum",
                "edeaaff3f1774ad2888673770c6d64097e391bc362d7d6fb34982ddf0efd18cb  -\n",
                0,
            ),
            (
                "sha256sum < /empty",
                "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  -\n",
                0,
            ),
        ],
    )
}

fn file_programs(bench: &Bench<'_>) -> Result<()> {
    check(
        bench,
        &[
            (
                "mkdir /d && cp /text/b.txt /d/x && mv /d/x /d/y && ls /d",
                "y\n",
                0,
            ),
            ("wc -l < /d/y", "7\n", 0),
            ("cat /link | wc -l", "7\n", 0),
            ("rm /d/y && ls /d", "", 0),
            (
                "uname; uname -sm; uname -a",
                "Trefoil\nTrefoil x86_64\nTrefoil trefoil 0.1.0 x86_64\n",
                0,
            ),
            ("rm -r /d && ls / | grep -c '^d$'", "0\n", 1),
            (
                "cp /text/a.txt /copy && sha256sum < /text/a.txt > /s1 && sha256sum < /copy > /s2 && cat /s1 /s2 | wc -l",
                "2\n",
                0,
            ),
        ],
    )
}

fn process_programs(bench: &Bench<'_>) -> Result<()> {
    let disk = bench.disk()?;
    let answer = bench.exec(&disk, "ps; free; uptime; domains")?.status(0)?;
    for text in ["ps", "Mem:", "virtio-blk", "ext2", "rv6", "init"] {
        ensure!(
            answer.stdout.contains(text),
            "expected {text:?} in\n{}",
            answer.stdout
        );
    }
    bench.exec(&disk, "dmesg | grep -c virtio-blk")?.status(0)?;
    // What is not understood is said, and the status is 2.
    let line = "for p in calls dmesg domains free ps uptime top lsblk; do $p more > /out; echo $p $?; done; cat /out";
    let answer = bench.exec(&disk, line)?.status(0)?;
    let answer =
        answer.prints("calls 2\ndmesg 2\ndomains 2\nfree 2\nps 2\nuptime 2\ntop 2\nlsblk 2\n")?;
    answer.complains("lsblk: `more` is not understood")?;
    Ok(())
}

/// Every program of the archive starts, ends with status 0 and says how it is used; these do what
/// they are known for instead: name, output, status.
const NO_USAGE: &[Line] = &[("echo", "--help\n", 0), ("false", "", 1), ("true", "", 0)];

fn every_program(bench: &Bench<'_>) -> Result<()> {
    let line = "cd /boot/bin; for name in *; do echo \"begin $name\"; ./$name --help; echo \"end $?\"; done";
    let answer = bench.exec_on(bench.machine(), line)?.status(0)?;
    let programs = build::files_below(&bench.site.project.images().join("boot/bin"))?;
    ensure!(programs.len() > 50, "only {} programs", programs.len());
    let mut rest = answer.stdout.as_str();
    for program in &programs {
        let name = program.file_name().unwrap_or_default().to_string_lossy();
        let known = NO_USAGE.iter().find(|(known, ..)| *known == name);
        let (begin, end) = match known {
            Some((_, printed, status)) => (printed.to_string(), format!("end {status}\n")),
            None => (format!("usage: {name}"), "end 0\n".to_string()),
        };
        let printed = rest
            .strip_prefix(&format!("begin {name}\n"))
            .and_then(|text| text.strip_prefix(begin.as_str()))
            .and_then(|text| text.split_once(end.as_str()));
        let Some((_, behind)) = printed else {
            anyhow::bail!("{name}: expected {begin:?} and {end:?}: {}", answer.stdout);
        };
        rest = behind;
    }
    ensure!(rest.is_empty(), "unexpected at the end: {rest:?}");
    Ok(())
}

/// A line without end does not fit into memory: the program says so, and all goes on.
fn hungry(bench: &Bench<'_>) -> Result<()> {
    let disk = bench.disk()?;
    let mut machine = bench.machine_with(&disk);
    machine.memory = "64M".into();
    let line = "grep x /dev/zero; echo $?; grep x /dev/zero & grep x /dev/zero & wait; wc -l < /text/a.txt";
    let answer = bench
        .exec_on(machine, line)?
        .status(0)?
        .prints("2\n5000\n")?;
    answer.complains("memory")?;
    bench.expect_clean(&disk)
}
