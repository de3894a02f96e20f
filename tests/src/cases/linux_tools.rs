//! What a visitor of Debian's programs sees: `run` without flags, the command `trefoil`, the
//! demonstration.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::linux::{debian_disk, machine, machine_by, manifest};
use super::{Case, case};
use crate::bench::{Bench, LIMIT};

pub(super) const CASES: &[Case] = &[
    case("linux-tools-run-begins-with-bash", run),
    case("linux-tools-refuse-disks-without-a-shell", refused),
    case("linux-tools-strike-and-tell-how-long", strikes),
    case("linux-tools-replace-what-serves", updates),
    case("linux-tools-are-there-by-grant", grants),
    case("linux-tools-demo-shows-crashes", demo),
    case("linux-tools-image-boots-by-its-script", image),
];

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// `run` with these options.
fn tool(bench: &Bench<'_>, disk: &Path, options: &[&str]) -> Result<Command> {
    let mut command = bench.tool("run")?;
    command.arg("--disk").arg(disk).args(options);
    Ok(command)
}

fn expect(output: &Output, status: i32, printed: &str) -> Result<()> {
    let (seen, errors) = (text(&output.stdout), text(&output.stderr));
    ensure!(
        output.status.code() == Some(status) && seen.contains(printed),
        "{:?} in place of {status}, and {printed:?} in {seen:?}; {errors}",
        output.status
    );
    Ok(())
}

/// Without a flag a line is run by Debian's shell, and lines that are typed by bash.
fn run(bench: &Bench<'_>) -> Result<()> {
    let disk = debian_disk(bench)?;
    let line = "ls -l / | sort | tail -3 | wc -l; . /etc/os-release; echo $ID; exit 7";
    let ended = tool(bench, &disk, &["--exec", line])?.output()?;
    expect(&ended, 7, "3\ndebian\n")?;
    let mut typed = tool(bench, &disk, &[])?;
    let piped = typed.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut typed = piped.stderr(Stdio::piped()).spawn()?;
    let mut input = typed.stdin.take().context("it has an input")?;
    input.write_all(b"echo $0 in $PWD has $((6 * 7))\n")?;
    drop(input);
    let ended = typed.wait_with_output()?;
    expect(&ended, 0, "-bash in /root has 42")
}

/// A disk of Trefoil's own programs.
fn refused(bench: &Bench<'_>) -> Result<()> {
    let disk = bench.disk()?;
    let ended = tool(bench, &disk, &["--exec", "true"])?.output()?;
    let errors = text(&ended.stderr);
    ensure!(
        ended.status.code() == Some(1) && errors.contains("/bin/sh"),
        "{:?}, {errors}",
        ended.status
    );
    let ended = tool(bench, &disk, &["--rv6", "--exec", "echo here"])?.output()?;
    expect(&ended, 0, "here\n")
}

/// What the command says of crashes, of calls, and of what it cannot do.
const STRIKES: &str = "trefoil domains | grep -c 'linux .*running'; \
    trefoil crash ext2 files virtio-blk | sed 's/ [0-9.]* ms$/ N ms/' | sort; \
    trefoil crash nobody 2>&1; echo $?; \
    trefoil calls on; find /etc | wc -l | sed 's/[0-9]*/some/'; trefoil calls off; \
    trefoil calls | awk '$1 == \"linux\" && $2 == \"vfs\" && $4 > 0 { n++ } END { print (n > 0) }'; \
    trefoil calls maybe 2>&1; echo $?; trefoil nothing >/dev/null 2>&1; echo $?; \
    dmesg | grep -c 'asked to crash'; trefoil log | grep -c 'asked to crash'";

const TOLD: &str = "1\n\
    ext2 crashed and was away for N ms\n\
    vfs crashed and was away for N ms\n\
    virtio-blk crashed and was away for N ms\n\
    trefoil: there is no domain nobody; `trefoil domains` lists them\n1\n\
    some\n1\ntrefoil: calls: on, timed, off or reset, and not maybe\n2\n2\n3\n3\n";

fn strikes(bench: &Bench<'_>) -> Result<()> {
    let disk = debian_disk(bench)?;
    let answer = bench.exec_on(machine(bench, &disk)?, STRIKES)?;
    answer.status(0)?.prints(TOLD)?.silently()?;
    bench.expect_clean(&disk)
}

/// The file system, the file service and the disk's driver are replaced under programs that read;
/// what cannot be is refused, as is whoever is not root.
const UPDATES: &str = "cd /sys/kernel/trefoil; find /usr/bin /usr/lib -type f | sort | xargs md5sum >/tmp/before; \
    (find /usr/bin /usr/lib -type f | sort | xargs md5sum | cmp - /tmp/before && echo the same) & \
    for name in ext2 files virtio-blk; do trefoil update $name | sed 's/instance.*/served/'; done; \
    cp updates/ext2-2 /tmp/image && trefoil update ext2 /tmp/image | sed 's/instance.*/served/'; wait; \
    for name in nobody linux; do trefoil update $name updates/ext2-2 2>&1; done; \
    for file in /bin/true updates/vfs-shadow-2 nothing; do trefoil update ext2 $file 2>&1 >/dev/null | \
    sed 's/replaced: ..*/replaced: why/'; done; trefoil update nobody 2>&1; echo $?; trefoil update; echo $?; \
    setpriv --reuid=1000 --regid=1000 --clear-groups sh -c 'echo ext2 3 >update' 3</tmp/image || echo no; \
    printf 'ext2 77' >update || echo no; printf ext2 >update || echo no; \
    trefoil domains | grep -c '\\(ext2\\|vfs\\|virtio-blk\\) .*running'";

const REPLACED: &str = "ext2: updated to image ext2-2, served\n\
    vfs: updated to image vfs-shadow-2, served\n\
    virtio-blk: updated to image virtio-blk-2, served\n\
    ext2: updated to image ext2-2, served\nthe same\n\
    trefoil: nobody is not replaced: there is no such domain\n\
    trefoil: linux is not replaced: no shadow stands in front of it\n\
    trefoil: ext2 is not replaced: why\ntrefoil: ext2 is not replaced: why\n\
    trefoil: nothing cannot be read\n\
    trefoil: no image for nobody came with the system; name a file\n1\n2\nno\nno\nno\n3\n";

fn updates(bench: &Bench<'_>) -> Result<()> {
    let disk = debian_disk(bench)?;
    let answer = bench.exec_on(machine(bench, &disk)?, UPDATES)?;
    answer.status(0)?.prints(REPLACED)?;
    bench.expect_clean(&disk)
}

/// A manifest that grants nothing of this.
fn grants(bench: &Bench<'_>) -> Result<()> {
    let disk = debian_disk(bench)?;
    let mut manifest = manifest(bench)?;
    for (grant, source) in [
        ("monitor", "kernel.monitor"),
        ("control", "kernel.control"),
        ("updater", "init.updater"),
        ("power", "kernel.power"),
    ] {
        let line = format!("    {grant} = \"{source}\",\n");
        ensure!(manifest.contains(&line), "no {line:?}");
        manifest = manifest.replace(&line, "");
    }
    let line = "ls /sys/kernel/trefoil; trefoil crash ext2 2>&1; trefoil log 2>&1; trefoil update ext2 2>&1; \
        (echo ext2 >/sys/kernel/trefoil/strike) 2>/dev/null || echo no; dmesg >/dev/null 2>&1 || echo none";
    let none = "trefoil: the manifest of this system does not grant that\n";
    let answer = bench.exec_on(machine_by(bench, &disk, &manifest)?, line)?;
    answer
        .status(0)?
        .prints(&format!("{none}{none}{none}no\nnone\n"))?;
    Ok(())
}

/// The file of `image`, unpacked into an empty folder, boots there by its script.
fn image(bench: &Bench<'_>) -> Result<()> {
    let disk = debian_disk(bench)?;
    let file = bench.folder.join("image.tar");
    let mut made = bench.tool("image")?;
    let made = made.arg(&file).arg("--disk").arg(&disk).output()?;
    ensure!(made.status.success(), "{}", text(&made.stderr));
    let folder = bench.folder.join("empty");
    std::fs::create_dir(&folder)?;
    let line = "tar xf ../image.tar && rm ../image.tar && cd trefoil && sha256sum --check --quiet SHA256SUMS";
    let mut unpack = Command::new("sh");
    unpack.args(["-c", line]).current_dir(&folder);
    expect(&unpack.output()?, 0, "")?;
    let mut script = Command::new("sh");
    script.arg(folder.join("trefoil/run.sh")).env("KVM", "0");
    let piped = script.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut machine = Killed(piped.stderr(Stdio::piped()).spawn()?);
    let mut input = machine.0.stdin.take().context("it has an input")?;
    let output = machine.0.stdout.take().context("it has an output")?;
    let screen = screen(output);
    wait_for(&screen, "root@trefoil:~# ")?;
    input.write_all(b"echo it has $((6 * 7)); poweroff\n")?;
    wait_for(&screen, "it has 42")?;
    let deadline = Instant::now() + LIMIT;
    while machine.0.try_wait()?.is_none() {
        ensure!(Instant::now() < deadline, "it goes on after poweroff");
        thread::sleep(Duration::from_millis(100));
    }
    bench.expect_clean(&folder.join("trefoil/disk.img"))
}

/// A machine that ends with the test.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What comes out of a machine, piece by piece.
fn screen(mut output: ChildStdout) -> Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = [0; 1024];
        while let Ok(count) = output.read(&mut bytes) {
            if count == 0 || sender.send(bytes[..count].to_vec()).is_err() {
                break;
            }
        }
    });
    receiver
}

fn wait_for(screen: &Receiver<Vec<u8>>, wanted: &str) -> Result<()> {
    let mut seen = String::new();
    while !seen.contains(wanted) {
        match screen.recv_timeout(LIMIT) {
            Ok(bytes) => seen += &text(&bytes),
            Err(_) => bail!("{wanted:?} did not come: {seen:?}"),
        }
    }
    Ok(())
}

fn demo(bench: &Bench<'_>) -> Result<()> {
    let ended = bench.tool("demo")?.output()?;
    expect(&ended, 0, "All files are right: yes.")
}
