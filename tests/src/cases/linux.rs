//! Debian's own programs on a disk of Debian's packages: bash, coreutils and others, unmodified and
//! dynamically linked; also while what is below them crashes. What is right, the host says, which
//! runs the same programs on Linux.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use machine::qemu::Machine;
use machine::session::Session;
use machine::{debian, disk};
use trefoil_gate::tool;

use super::{Case, case};
use crate::bench::{Bench, LIMIT};

pub(super) const CASES: &[Case] = &[
    case("linux-runs-debians-bash", shell),
    case("linux-programs-say-what-they-say-on-linux", programs),
    case("linux-handlers-leave-programs-as-they-were", handlers),
    case("linux-programs-go-on-while-all-below-crashes", crashes),
    case("linux-shell-has-jobs-and-keys", terminal),
    case("linux-is-told-of-the-machine", told),
    case("linux-refuses-programs-that-are-none", refused),
];

const CTRL_C: &[u8] = &[3];
const CTRL_Z: &[u8] = &[26];

/// A disk of Debian's packages of this test's own.
pub(super) fn debian_disk(bench: &Bench<'_>) -> Result<PathBuf> {
    let original = debian::default(&bench.site.project)?;
    let copy = bench.folder.join("debian.img");
    let mut copied = Command::new("cp");
    copied.arg("--sparse=always").arg(original).arg(&copy);
    tool::output(&mut copied)?;
    Ok(copy)
}

/// The machine of `run --linux`.
pub(super) fn machine(bench: &Bench<'_>, disk: &Path) -> Result<Machine> {
    machine_by(bench, disk, &manifest(bench)?)
}

/// The manifest of Debian's programs.
pub(super) fn manifest(bench: &Bench<'_>) -> Result<String> {
    let file = bench.site.project.root.join("images/linux.toml");
    Ok(std::fs::read_to_string(file)?)
}

/// As [`machine`], by another manifest.
pub(super) fn machine_by(bench: &Bench<'_>, disk: &Path, manifest: &str) -> Result<Machine> {
    let mut machine = bench.machine_by(manifest)?;
    machine.disk = Some(disk.to_path_buf());
    machine.memory = "1G".into();
    Ok(machine)
}

fn shell(bench: &Bench<'_>) -> Result<()> {
    let disk = debian_disk(bench)?;
    let line = "ls -l / | sort | tail -3 | wc -l; bash -c 'echo ${BASH_VERSION%%.*}'; exit 7";
    let answer = bench.exec_on(machine(bench, &disk)?, line)?;
    answer.status(7)?.silently()?.prints("3\n5\n")?;
    bench.expect_clean(&disk)
}

/// Lines that a shell runs in an empty folder. All that they print is the same on every Linux.
const LINES: &[&str] = &[
    "seq 20000 | sort -R --random-source=/dev/zero | sort -n | md5sum",
    "for i in 1 2 3; do echo $i; done | awk '{ s += $1 } END { print s, NR }'",
    "printf 'b 2\\na 1\\n' > f; sort f; sed -n 's/\\(.\\) \\(.\\)/\\2\\1/p' f; grep -c . f; tac f; rev f",
    "mkdir -p d/e; touch d/e/x; find d | sort; tar cf t.tar d; tar tf t.tar; gzip -k t.tar; gzip -dc t.tar.gz | cmp - t.tar && echo same",
    "echo hello | xz -c | xz -dc; echo hello | tr a-z A-Z; cut -d: -f1,7 /etc/passwd | head -1; expr 6 \\* 7",
    "bash -c 'a=(x y z); echo ${#a[@]} ${a[1]^}; diff <(echo 1) <(echo 2); [[ abc =~ b(.) ]] && echo ${BASH_REMATCH[1]}'",
    "bash -c 'exec 5< <(echo left); sleep 0.3; cat /dev/fd/5; cat <(echo soon)'",
    "bash -c 'set -e -o pipefail; trap \"echo end\" EXIT; false | true; echo never'; echo $?",
    "cat <<END | perl -ne 'print scalar reverse'\nabc\nEND\nperl -e 'printf \"%.3f %s\\n\", 22 / 7, join \",\", map { $_ * $_ } 1 .. 5'",
    "(sleep 0.1; echo late) & echo early; wait; trap 'echo trapped' TERM; kill -TERM $$; echo on",
    "head -c 3000000 /dev/zero | wc -c; dd if=/dev/zero bs=64k count=64 2>/dev/null | md5sum; yes | head -n 100000 | md5sum",
    "ln -s nowhere l; readlink l; stat -c '%F %a' l; test -e l || echo broken; chmod 640 f 2>/dev/null; umask 027; touch g; stat -c %a g",
    "timeout 0.2 sleep 5; echo $?; bash -c 'kill -9 $$'; echo $?; (exit 3); echo $?; nosuch 2>/dev/null; echo $?",
    "printf '#!/bin/sh\\necho \"$0\" \"$@\"\\n' > s; chmod +x s; ./s a 'b c'; printf 'echo plain $1\\n' > p; chmod +x p; ./p q; od -An -tx1 s | head -1",
];

/// What a line prints on the host, in an empty folder, and its status.
fn there(bench: &Bench<'_>, line: &str) -> Result<(String, Option<i32>)> {
    let folder = bench.folder.join("host");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder)?;
    let mut host = Command::new("/bin/sh");
    host.args(["-c", &format!("umask 022; {line}")]);
    host.current_dir(folder).env("LC_ALL", "C");
    let output = host.output().context("no shell on the host")?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok((said, output.status.code()))
}

fn programs(bench: &Bench<'_>) -> Result<()> {
    let disk = debian_disk(bench)?;
    let mut script = String::from("export LC_ALL=C\n");
    let mut right = String::new();
    for (number, line) in LINES.iter().enumerate() {
        let (said, status) = there(bench, line)?;
        let status = status.unwrap_or(-1);
        right += &format!("== {number}\n{said}== ends with {status}\n");
        let quoted = line.replace('\'', "'\\''");
        script += &format!(
            "rm -rf /tmp/here; mkdir /tmp/here; cd /tmp/here; echo '== {number}'\n\
             sh -c 'umask 022; {quoted}'; echo \"== ends with $?\"\n"
        );
    }
    put(bench, &disk, "lines.sh", script.as_bytes(), "0100644")?;
    let answer = bench.exec_on(machine(bench, &disk)?, "sh /lines.sh")?;
    let answer = answer.status(0)?;
    for (seen, right) in answer.stdout.lines().zip(right.lines()) {
        ensure!(
            seen == right,
            "{seen:?} in place of {right:?}:\n{}",
            answer.stdout
        );
    }
    answer.prints(&right)?;
    bench.expect_clean(&disk)
}

/// Puts a file into the root of a disk.
pub(super) fn put(
    bench: &Bench<'_>,
    disk: &Path,
    name: &str,
    content: &[u8],
    mode: &str,
) -> Result<()> {
    let file = bench.folder.join(name);
    std::fs::write(&file, content)?;
    let file = file.display();
    disk::change(
        disk,
        &format!("write \"{file}\" {name}\nset_inode_field {name} mode {mode}\n"),
    )
}

/// A program of the peers, made by the host's compiler.
pub(super) fn compiled(bench: &Bench<'_>, source: &str) -> Result<PathBuf> {
    let program = bench.folder.join("program");
    let mut compiler = Command::new("gcc");
    compiler.args(["-O1", "-pthread", "-o"]).arg(&program);
    compiler
        .arg(bench.site.project.root.join("lab/peers").join(source))
        .arg("-lm");
    tool::output(&mut compiler)?;
    Ok(program)
}

fn handlers(bench: &Bench<'_>) -> Result<()> {
    let program = compiled(bench, "linux-signals/signals.c")?;
    let right = tool::output(&mut Command::new(&program))?;
    let disk = debian_disk(bench)?;
    put(
        bench,
        &disk,
        "signals",
        &std::fs::read(&program)?,
        "0100755",
    )?;
    for processors in [1, 4] {
        let mut machine = machine(bench, &disk)?;
        machine.processors = processors;
        bench
            .exec_on(machine, "/signals")?
            .status(0)?
            .prints(&right)?;
    }
    Ok(())
}

/// Each file of each package is read and compared while driver, file system and file service are
/// struck in turn, and a shell makes processes all the while.
const UNDER_CRASHES: &str = "cd /; \
    (while [ ! -e /tmp/done ]; do for x in virtio-blk ext2 vfs; do trefoil crash $x >/dev/null; sleep 0.4; done; done) & \
    for i in 1 2 3; do cat /var/lib/dpkg/info/*.md5sums | md5sum --quiet -c || echo wrong; done; \
    for i in $(seq 200); do echo $i | cat; done | md5sum; \
    touch /tmp/done; wait; echo all; grep -c 'asked to crash' /sys/kernel/trefoil/log >&2";

fn crashes(bench: &Bench<'_>) -> Result<()> {
    let disk = debian_disk(bench)?;
    let mut machine = machine(bench, &disk)?;
    machine.processors = 2;
    let answer = bench.exec_within(4 * LIMIT, machine, UNDER_CRASHES)?;
    let answer = answer.status(0)?;
    let sum = there(bench, "for i in $(seq 200); do echo $i; done | md5sum")?.0;
    let struck = answer.stderr.trim().parse::<u32>();
    let struck = struck.with_context(|| format!("it complains: {}", answer.stderr))?;
    ensure!(struck >= 6, "only {struck} crashes");
    answer.prints(&format!("{sum}all\n"))?;
    bench.expect_clean(&disk)
}

/// What the shell prints for a line.
fn expect(session: &mut Session, line: &str, text: &str) -> Result<()> {
    let printed = session.run(line, LIMIT)?;
    ensure!(
        printed.contains(text),
        "{line}: {printed:?} in place of {text:?}\n{}",
        session.report()
    );
    Ok(())
}

/// Begins a program that runs until it gets a key, once it is there to get it; where the screen
/// ends then.
fn begin(session: &mut Session) -> Result<usize> {
    let from = session.printed();
    session.type_line(b"sh -c 'echo is''there; exec sleep 1000'")?;
    session.wait_for(from, "isthere\r\n", LIMIT)
}

fn terminal(bench: &Bench<'_>) -> Result<()> {
    let disk = debian_disk(bench)?;
    let mut session = Session::start(&machine(bench, &disk)?, false)?;
    session.wait_for(0, "root@trefoil:~# ", LIMIT)?;
    // The tests' prompt, which is not the end of what is typed at any moment.
    session.type_line(b"PS1=$'\\x24 '; bind 'set enable-bracketed-paste off'")?;
    session.prompt(LIMIT)?;
    expect(&mut session, "pwd; echo $0 $-", "/root\n-bash himBHs\n")?;
    let from = begin(&mut session)?;
    session.guest.send(CTRL_C)?;
    let from = session.wait_for(from, "^C", LIMIT)?;
    session.wait_for(from, "$ ", LIMIT)?;
    expect(&mut session, "echo $?", "130\n")?;
    let from = begin(&mut session)?;
    session.guest.send(CTRL_Z)?;
    let from = session.wait_for(from, "Stopped", LIMIT)?;
    session.wait_for(from, "$ ", LIMIT)?;
    expect(&mut session, "jobs", "Stopped                 sh -c")?;
    expect(&mut session, "bg; jobs", "Running                 sh -c")?;
    expect(&mut session, "kill %1; wait; jobs; echo done", "done\n")?;
    expect(
        &mut session,
        "trefoil crash ext2; ls /etc/hostname",
        "/etc/hostname\n",
    )?;
    expect(
        &mut session,
        "exec 3>/tmp/x; echo text >&3; cat /tmp/x; tty",
        "text\n/dev/tty\n",
    )?;
    session.type_line(b"poweroff")?;
    session.end(LIMIT)?;
    bench.expect_clean(&disk)
}

fn told(bench: &Bench<'_>) -> Result<()> {
    let disk = debian_disk(bench)?;
    let line = "uname -sm; nproc; cat /proc/self/comm; readlink /proc/self/exe; head -1 /proc/meminfo | cut -c1-9; \
                ps -o comm= | grep -c '^ps$'; [ -c /dev/null ] && ls /dev/fd/0 >/dev/null && echo dev; \
                free | awk '/Mem/ { print ($2 > 900000) }'; ls /sys/kernel/trefoil | sort | head -1; cd /proc/self && ls comm; \
                readlink /proc/$$/exe; stat -c '%F %t,%T' /dev/tty /dev/console; \
                (: </dev/tty) 2>&1 | grep -o 'No such device.*'";
    let mut machine = machine(bench, &disk)?;
    machine.processors = 2;
    let answer = bench.exec_on(machine, line)?.status(0)?;
    answer.prints(
        "Linux x86_64\n2\ncat\n/usr/bin/readlink\nMemTotal:\n1\ndev\n1\ncalls\ncomm\n\
                 /usr/bin/dash\ncharacter special file 5,0\ncharacter special file 5,1\n\
                 No such device or address\n",
    )?;
    Ok(())
}

/// Files that look like programs and are none, interpreters that are not there, and scripts without
/// end: an error for the caller, and nothing else.
fn refused(bench: &Bench<'_>) -> Result<()> {
    let disk = debian_disk(bench)?;
    let line = "cd /tmp; try() { chmod +x $1; ./$1 2>/dev/null; echo $?; }; \
        head -c 60 /bin/ls > short; try short; \
        printf '#!/nowhere\\n' > script; try script; printf '#!/tmp/loop\\n' > loop; try loop; \
        mkdir d; ./d 2>/dev/null; echo $?; touch plain; ./plain 2>/dev/null; echo $?; \
        sed 's,/lib64/ld-linux,/lib64/xx-linux,' /bin/ls > other; try other; echo alive";
    let answer = bench.exec_on(machine(bench, &disk)?, line)?.status(0)?;
    let right = there(bench, line)?.0;
    answer.prints(&right)?;
    Ok(())
}
