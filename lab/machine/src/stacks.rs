//! Where a machine stands that says nothing any more: the stacks of all its threads, as gdb reads
//! them through QEMU's stub with the script in `lab/gdb`; without gdb, the registers of its
//! processors.

use std::fmt::Write as _;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use trefoil_gate::tool;

/// How long gdb may take: it reads the symbols of all that is loaded.
const PATIENCE: Duration = Duration::from_secs(90);
/// Bytes of a socket's name that fit everywhere.
const LONGEST_SOCKET: usize = 100;
/// How long QEMU may take to answer.
const ANSWER: Duration = Duration::from_secs(10);

/// The script that makes gdb know the system.
pub fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../gdb/start.py")
}

/// A socket of its own, for the stub of one more machine or what else listens.
pub(crate) fn socket() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("trefoil-stub-{}-{number}", std::process::id()))
}

/// Where the gdb of a person finds the machine that `cargo xtask run` has started, with what it
/// builds in `out`. A socket's name must be short.
pub fn meeting(out: &Path) -> PathBuf {
    let usual = out.join("gdb.socket");
    if usual.as_os_str().len() < LONGEST_SOCKET {
        return usual;
    }
    let mut hasher = DefaultHasher::new();
    out.hash(&mut hasher);
    std::env::temp_dir().join(format!("trefoil-gdb-{:016x}", hasher.finish()))
}

/// Whether a machine listens there. To connect would stop it.
pub fn is_taken(socket: &Path) -> bool {
    let sockets = fs::read_to_string("/proc/net/unix").unwrap_or_default();
    let name = socket.display().to_string();
    sockets
        .lines()
        .any(|line| line.split(' ').next_back() == Some(&name))
}

/// Has `command`, which is a gdb, load the script, and no other: files with symbols may bring some
/// along, and who wrote a domain has made its file.
pub fn with_script(command: &mut Command) -> &mut Command {
    command.args(["-nx", "-q", "-iex", "set auto-load no", "-x"]);
    command.arg(script())
}

/// gdb with the script, for the machine whose stub is behind `socket` and which runs `kernel`.
pub fn debugger(gdb: &Path, socket: &Path, kernel: &Path) -> Command {
    let mut command = Command::new(gdb);
    with_script(&mut command).arg(kernel);
    command.arg("-ex");
    command.arg(format!("target remote {}", socket.display()));
    command
}

/// gdb with the script, for the dump in `file` of a machine that ran `kernel`.
pub fn reader(gdb: &Path, file: &Path, kernel: &Path) -> Command {
    let mut command = Command::new(gdb);
    with_script(&mut command);
    // Dumps have the form that Linux gives them.
    command.args(["-ex", "set osabi GNU/Linux"]).arg(kernel);
    command
        .arg("-ex")
        .arg(format!("core-file {}", file.display()));
    // Nothing stops when a file is opened, so the symbols are looked for here.
    command.args(["-ex", "info domains"]);
    command
}

/// The stacks of all threads of the machine whose stub is behind `socket` and which runs `kernel`,
/// in lines for people; if they cannot be had, why, and what there is instead.
pub fn of(socket: &Path, kernel: &Path) -> String {
    let why = match tool::find("gdb") {
        None => "no gdb (apt-get install gdb)".into(),
        Some(gdb) => match by_gdb(&gdb, socket, kernel) {
            Ok(stacks) => return tool::plain(&stacks).into_owned(),
            Err(error) => format!("{error:#}"),
        },
    };
    let registers = match registers(socket) {
        Ok(registers) => registers,
        Err(error) => format!("nor registers: {error:#}\n"),
    };
    format!("no stacks: {why}\n{registers}")
}

fn by_gdb(gdb: &Path, socket: &Path, kernel: &Path) -> Result<String> {
    let mut command = debugger(gdb, socket, kernel);
    command.args(["-batch", "-ex", "trefoil stacks"]);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().context("gdb does not start")?;
    let out = collected(child.stdout.take());
    let errors = collected(child.stderr.take());
    let end = Instant::now() + PATIENCE;
    let has_ended = loop {
        if child.try_wait()?.is_some() {
            break true;
        }
        if Instant::now() > end {
            child.kill().and_then(|()| child.wait())?;
            break false;
        }
        thread::sleep(Duration::from_millis(20));
    };
    let joined = |text: thread::JoinHandle<String>| text.join().unwrap_or_default();
    let (mut text, errors) = (joined(out), joined(errors));
    if !has_ended {
        writeln!(text, "(gdb was ended after {} s)", PATIENCE.as_secs())?;
    }
    match text.find("processor 0") {
        Some(at) => {
            let stacks = text.split_off(at);
            let end = stacks.rfind("[Inferior 1").unwrap_or(stacks.len());
            Ok(stacks[..end].to_string())
        }
        None => bail!("gdb says: {}", errors.trim()),
    }
}

/// What comes from `pipe`, read in the background.
fn collected(pipe: Option<impl Read + Send + 'static>) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // What was read before an error counts.
            let _ = pipe.read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// The registers of all processors, as QEMU's monitor prints them.
fn registers(socket: &Path) -> Result<String> {
    let mut stream = UnixStream::connect(socket).context("QEMU's stub is not there")?;
    stream.set_read_timeout(Some(ANSWER))?;
    let digits = |byte: u8| format!("{byte:02x}");
    let command: String = b"info registers -a".iter().copied().map(digits).collect();
    let body = format!("qRcmd,{command}");
    let sum = body.bytes().fold(0, |sum: u8, byte| sum.wrapping_add(byte));
    stream.write_all(format!("+${body}#{sum:02x}").as_bytes())?;
    let (mut seen, mut buffer) = (String::new(), [0; 4096]);
    let end = Instant::now() + ANSWER;
    while !seen.contains("$OK#") && Instant::now() < end {
        let length = stream.read(&mut buffer)?;
        if length == 0 {
            bail!("QEMU's stub hung up");
        }
        stream.write_all(b"+")?;
        seen += &String::from_utf8_lossy(&buffer[..length]);
    }
    Ok(said(&seen))
}

/// The text in the packets `seen` that carry what a monitor's command prints.
fn said(seen: &str) -> String {
    let packets = seen
        .split('$')
        .skip(1)
        .filter_map(|rest| rest.split('#').next());
    let texts = packets.filter_map(|packet| packet.strip_prefix('O').and_then(bytes));
    texts
        .map(|text| String::from_utf8_lossy(&text).into_owned())
        .collect()
}

/// The bytes that `text` gives in hexadecimal digits.
fn bytes(text: &str) -> Option<Vec<u8>> {
    let pairs = text.as_bytes().chunks(2);
    pairs
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_monitor_prints_is_read_from_packets() {
        let seen = "+$T05thread:01;#07$O435055#8b+$O2330#1e$OK#9a";
        assert_eq!(said(seen), "CPU#0");
        assert_eq!(said("+$OK#9a"), "");
    }

    #[test]
    fn a_machine_that_is_not_there_is_said_so() {
        let text = of(
            Path::new("/nonexistent/stub"),
            Path::new("/nonexistent/kernel"),
        );
        assert!(text.starts_with("no stacks: "), "{text}");
        assert!(
            text.contains("nor registers: QEMU's stub is not there"),
            "{text}"
        );
    }

    /// Rust's programs name a script that gdb is to load for them, and gdb looks for it in the
    /// folder that it runs in. Here gdb is allowed to load whatever it finds.
    #[test]
    fn scripts_in_files_with_symbols_stay_where_they_are() {
        let Some(gdb) = tool::find("gdb") else {
            return;
        };
        let folder = std::env::temp_dir().join(format!("trefoil-script-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("made");
        let mark = folder.join("mark");
        let script = format!("open({:?}, 'w').close()\n", mark.display().to_string());
        fs::write(folder.join("gdb_load_rust_pretty_printers.py"), script).expect("written");
        let is_run = |command: &mut Command| {
            command.args(["-iex", "set auto-load safe-path /", "-batch"]);
            command.arg(std::env::current_exe().expect("there is one"));
            tool::captured(command.current_dir(&folder)).expect("gdb runs");
            fs::remove_file(&mark).is_ok()
        };
        let any = is_run(Command::new(&gdb).arg("-nx"));
        assert!(any, "gdb does not load the script for anybody");
        assert!(!is_run(with_script(&mut Command::new(&gdb))));
        fs::remove_dir_all(folder).expect("it is ours");
    }

    #[test]
    fn each_machine_has_a_socket_of_its_own() {
        assert_ne!(socket(), socket());
        let socket = socket();
        assert!(!is_taken(&socket));
        let listener = std::os::unix::net::UnixListener::bind(&socket).expect("a new name");
        assert!(is_taken(&socket));
        drop(listener);
        fs::remove_file(&socket).expect("it was made here");
        assert!(!is_taken(&socket));
        assert!(meeting(Path::new(&"/long".repeat(30))).as_os_str().len() < LONGEST_SOCKET);
        assert!(script().is_file());
    }
}
