//! The personality `first`, and `docs/guide/write-a-personality.md`, which explains it: its code is
//! the code that is built, what it says to run works, and programs that do what they must not harm
//! nobody.

use std::fs;
use std::process::{Command, Output};

use anyhow::{Context, Result, ensure};
use machine::qemu::Machine;
use trefoil_gate::{build, setup};

use super::guide::{blocks, manifest as changed_manifest, read, shown};
use super::{Case, case};
use crate::bench::{Answer, Bench};

pub(super) const CASES: &[Case] = &[
    case("first-guide-shows-the-files-that-are-built", verbatim),
    case("first-is-short", short),
    case("first-guide-runs", guide_runs),
    case("first-programs-as-on-linux", same),
    case("first-hostile-programs-end", hostile),
];

const GUIDE: &str = "docs/guide/write-a-personality.md";
const FOLDER: &str = "domains/personalities/first/";
const SOURCES: [&str; 3] = ["src/lib.rs", "src/program.rs", "src/calls.rs"];
/// The most lines that the example may have, without those that are blank or comments.
const MOST_LINES: usize = 330;
const RUN: &str = "/boot/testing/run-linux";

/// Every block that names a file is that file, and all of the example is among them.
fn verbatim(bench: &Bench<'_>) -> Result<()> {
    let shown = shown(bench, GUIDE)?;
    for source in SOURCES.iter().chain(&["Cargo.toml", "first.idl"]) {
        let path = format!("{FOLDER}{source}");
        let is_shown = shown.contains(&path);
        ensure!(is_shown, "{GUIDE} does not show {path}");
    }
    Ok(())
}

/// The guide says some 300 lines.
fn short(bench: &Bench<'_>) -> Result<()> {
    let folder = bench.site.project.root.join(FOLDER).join("src");
    let files = fs::read_dir(folder)?.count();
    ensure!(files == SOURCES.len(), "{files} files of sources");
    let mut lines = 0;
    for source in SOURCES {
        let text = read(bench, &format!("{FOLDER}{source}"))?;
        let code = text.lines().map(str::trim);
        lines += code
            .filter(|line| !line.is_empty() && !line.starts_with("//"))
            .count();
    }
    ensure!(lines <= MOST_LINES, "{lines} lines");
    Ok(())
}

/// The default manifest with what the guide adds.
fn manifest(bench: &Bench<'_>) -> Result<String> {
    changed_manifest(bench, &read(bench, GUIDE)?)
}

/// Commands of the guide's consoles with what they print. `first.toml` and the program are named by
/// words of the shell that the guide is for.
fn commands(text: &str) -> Vec<(String, String)> {
    let consoles = blocks(text).into_iter().filter(|it| it.0 == "console");
    let mut found: Vec<(String, String)> = Vec::new();
    for line in consoles.flat_map(|(_, block)| block.lines().map(String::from).collect::<Vec<_>>())
    {
        match (line.strip_prefix("$ "), found.last_mut()) {
            (Some(command), _) => found.push((command.to_string(), String::new())),
            (None, Some((_, printed))) => *printed += &(line + "\n"),
            (None, None) => {}
        }
    }
    found
}

/// By the tool, as the guide says, with its manifest. Lines of several processes come in any order.
fn guide_runs(bench: &Bench<'_>) -> Result<()> {
    let text = read(bench, GUIDE)?;
    let manifest_file = bench.folder.join("first.toml");
    fs::write(&manifest_file, manifest(bench)?)?;
    let busybox = setup::busybox()?.display().to_string();
    let commands = commands(&text);
    ensure!(commands.len() == 5, "{} commands, not 5", commands.len());
    for (command, printed) in commands {
        let (before, line) = command.split_once(" --exec '").context("no line is run")?;
        let line = line.strip_suffix('\'').context("the line does not end")?;
        let mut tool = bench.tool("run")?;
        let words = before.strip_prefix("cargo xtask run ").context("not run")?;
        for word in words.split(' ').filter(|word| *word != "-v") {
            match word {
                "first.toml" => tool.arg(&manifest_file),
                "\"$(command" => tool.arg(&busybox),
                "busybox)\"" => &mut tool,
                word => tool.arg(word),
            };
        }
        expect(&tool.args(["--exec", line]).output()?, line, &printed)?;
    }
    Ok(())
}

/// What a line printed has all these lines, and nothing that it must not have.
fn expect(output: &Output, line: &str, printed: &str) -> Result<()> {
    let [seen, errors] = [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it));
    for wanted in printed.lines() {
        let is_there = seen.lines().chain(errors.lines()).any(|it| it == wanted);
        ensure!(
            is_there,
            "{line}: {wanted:?} is not in {seen:?}, {errors:?}"
        );
    }
    ensure!(!seen.contains("lost\n"), "{line}: {seen:?}");
    Ok(())
}

/// A machine with these files besides busybox.
fn machine(bench: &Bench<'_>, files: &[(&str, &[u8])]) -> Result<Machine> {
    let project = &bench.site.project;
    let busybox = fs::read(setup::busybox()?)?;
    let mut programs = vec![("busybox", &busybox[..])];
    programs.extend(files);
    let manifest = manifest(bench)?;
    let archive = bench.folder.join("archive.cpio");
    fs::write(
        &archive,
        build::packed_with(project, manifest.as_bytes(), &programs)?,
    )?;
    let mut machine = bench.machine();
    machine.archive = Some(archive);
    Ok(machine)
}

/// Files in a folder of their own, and in one below that.
const FILES: [(&str, &[u8]); 4] = [
    ("texts/one", b"one line\n"),
    ("texts/two words", b"no end of line"),
    ("texts/below/empty", b""),
    ("texts/long", &[b'x'; 200_000]),
];

/// Words for busybox, each line a program's; the folder of the host is the root.
const LINES: [&str; 10] = [
    "echo one two",
    "echo -e a\\tb\\n",
    "cat texts/one texts/below/empty texts/one",
    "cat texts/long",
    "wc texts/one texts/long",
    "ls texts",
    "ls -a texts/below texts/nowhere",
    "cat nowhere",
    "wc texts",
    "ls -d /nowhere/at/all",
];

/// The output of four programs, and their status, are those on the host.
fn same(bench: &Bench<'_>) -> Result<()> {
    let root = bench.folder.join("root");
    for (path, content) in FILES {
        let file = root.join(path);
        fs::create_dir_all(file.parent().context("it has a folder")?)?;
        fs::write(file, content)?;
    }
    let machine = machine(bench, &FILES)?;
    let mut right = String::new();
    let mut line = String::new();
    for words in LINES {
        let (name, rest) = words.split_once(' ').context("it has words")?;
        // Both outputs in the order in which they are written.
        let mut host = Command::new("sh");
        host.args(["-c", "exec \"$@\" 2>&1", "sh"]);
        host.arg(setup::busybox()?).args(words.split(' '));
        let host = host.current_dir(&root).output()?;
        right += &String::from_utf8_lossy(&host.stdout);
        right += &format!("{}\n", host.status.code().context("it has a status")?);
        let rest: Vec<_> = rest.split(' ').map(|word| format!("'{word}'")).collect();
        line += &format!("{RUN} /bin/{name} {}; echo $?; ", rest.join(" "));
    }
    let answer = bench.exec_on(machine, &line)?.status(0)?;
    let seen = answer.stdout.replace('\r', "");
    let differs = seen.lines().zip(right.lines()).find(|(a, b)| a != b);
    ensure!(seen == right, "the first difference is {differs:?}");
    Ok(())
}

/// A static program of these bytes of code at 4 MiB.
pub(super) fn program(code: &[u8]) -> Vec<u8> {
    const START: u64 = 0x40_0000;
    let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    let half = |file: &mut Vec<u8>, value: u16| file.extend(value.to_le_bytes());
    half(&mut file, 2);
    half(&mut file, 62);
    file.extend(1_u32.to_le_bytes());
    for word in [START + 120, 64, 0] {
        file.extend(word.to_le_bytes());
    }
    file.extend(0_u32.to_le_bytes());
    for value in [64_u16, 56, 1, 64, 0, 0] {
        half(&mut file, value);
    }
    for word in [1_u32, 5] {
        file.extend(word.to_le_bytes());
    }
    let length = 120 + code.len() as u64;
    for word in [0, START, START, length, length, 4096] {
        file.extend(word.to_le_bytes());
    }
    file.extend(code);
    file
}

/// Executes its stack: mov rax, rsp; jmp rax.
pub(super) const STACK: &[u8] = b"\x48\x89\xe0\xff\xe0";

/// Programs in machine code, what they print, and their status.
const HOSTILE: [(&str, &[u8], &str, i32); 7] = [
    // ud2
    ("garbage", b"\x0f\x0b", "first: /garbage was ended by signal 4 at 0x400078\n", 132),
    // hlt
    ("halt", b"\xf4", "first: /halt was ended by signal 11 at 0x400078\n", 139),
    // mov [0], eax
    ("wild", b"\x89\x04\x25\0\0\0\0", "first: /wild was ended by signal 11 at 0x400078\n", 139),
    // mov [rip], eax: its own code
    ("self", b"\x89\x05\0\0\0\0", "first: /self was ended by signal 11 at 0x400078\n", 139),
    // xor edx, edx; div edx
    ("zero", b"\x31\xd2\xf7\xf2", "first: /zero was ended by signal 8 at 0x40007a\n", 136),
    // 20 times call 999; exit_group(r12d), of which the results are 20 times -38
    (
        "unknown",
        b"\x6a\x14\x5b\xb8\xe7\x03\0\0\x0f\x05\x41\x01\xc4\xff\xcb\x75\xf2\x44\x89\xe7\xb8\xe7\0\0\0\x0f\x05",
        "",
        (-38 * 20_i32) & 0xff,
    ),
    // write(1, kernel, 4); write(1, -1, -1); exit_group(the errors' sum)
    (
        "pointers",
        b"\x6a\x01\x5f\x48\xbe\0\0\0\0\0\x80\xff\xff\x6a\x04\x5a\x6a\x01\x58\x0f\x05\x41\x89\xc4\
          \x6a\x01\x5f\x48\x83\xce\xff\x48\x83\xca\xff\x6a\x01\x58\x0f\x05\x44\x01\xe0\x89\xc7\
          \xb8\xe7\0\0\0\x0f\x05",
        "",
        -28 & 0xff,
    ),
];

/// Each ends as it should, and the next one runs; the personality lives through all. The log tells
/// of a call that is not answered, and not more often than it must.
fn hostile(bench: &Bench<'_>) -> Result<()> {
    let mut files: Vec<(&str, Vec<u8>)> = vec![("stack", program(STACK))];
    files.extend(HOSTILE.map(|(name, code, ..)| (name, program(code))));
    files.push(("none", b"no program".to_vec()));
    let borrowed: Vec<_> = files
        .iter()
        .map(|(name, file)| (*name, &file[..]))
        .collect();
    let machine = machine(bench, &borrowed)?;
    let mut line = String::new();
    let mut right = String::new();
    for (name, _, printed, status) in HOSTILE {
        line += &format!("{RUN} /{name}; echo $?; ");
        right += &format!("{printed}{status}\n");
    }
    line += &format!("{RUN} /stack; echo $?; {RUN} /none; {RUN} /nowhere; {RUN} /bin/echo there");
    let answer: Answer = bench.exec_on(machine, &line)?;
    let seen = answer.stdout.replace('\r', "");
    ensure!(seen.starts_with(&right), "{seen:?} in place of {right:?}");
    let rest = &seen[right.len()..];
    ensure!(
        rest.starts_with("first: /stack was ended by signal 11 at 0x7ff"),
        "{rest:?}"
    );
    ensure!(rest.contains("\n139\nthere\n"), "{rest:?}");
    let told = answer.log.matches("first: /unknown asks for call 999");
    ensure!(told.count() == 8, "not told eight times: {}", answer.log);
    ensure!(!answer.log.contains("crashed"), "{}", answer.log);
    for complaint in ["/none: ", "/nowhere: "] {
        let is_told = answer.stderr.contains(complaint);
        ensure!(is_told, "{complaint} is not in {:?}", answer.stderr);
    }
    Ok(())
}
