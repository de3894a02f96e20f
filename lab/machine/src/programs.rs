//! Whether a disk has what the personality `linux` begins with: a shell for x86-64, and the dynamic
//! linker that the shell asks for. Said before the boot, in words that name what is missing.

use std::path::Path;

use anyhow::{Result, bail};

use crate::image::Image;

/// The program that the image `images/linux.toml` begins with.
const SHELL: &str = "/bin/sh";
/// Links that are followed to find one program, at the most; Linux has the same number.
const MOST_LINKS: u32 = 40;

/// Fails if the disk `file` has no shell that can run.
///
/// # Errors
/// What is missing, and what to do about it.
pub fn expect_shell(file: &Path) -> Result<()> {
    let mut image = Image::open(file)?;
    let name = file.display();
    let Some(shell) = program(&mut image, SHELL)? else {
        bail!(
            "{name} has no {SHELL}, so no shell could begin: `cargo xtask debian OUT.img` makes a disk with one, and \
             `--rv6` boots Trefoil's own shell"
        );
    };
    match Elf::of(&shell) {
        Err(why) => bail!("{SHELL} on {name} {why}"),
        Ok(Elf { interpreter: None }) => Ok(()),
        Ok(Elf {
            interpreter: Some(linker),
        }) => match program(&mut image, &linker)? {
            Some(_) => Ok(()),
            None => bail!("{SHELL} on {name} wants {linker}, which the disk does not have"),
        },
    }
}

/// What is in the file at `path`, from the root, with links followed; `None` if there is none.
fn program(image: &mut Image, path: &str) -> Result<Option<Vec<u8>>> {
    let parts = |path: &str| {
        path.split('/')
            .rev()
            .map(str::to_string)
            .collect::<Vec<_>>()
    };
    let (mut rest, mut done, mut links) = (parts(path), Vec::new(), 0);
    while let Some(part) = rest.pop() {
        match &*part {
            "" | "." => continue,
            ".." => {
                done.pop();
                continue;
            }
            _ => done.push(part),
        }
        let here = done.join("/");
        if image.find(&here)?.is_none() {
            return Ok(None);
        }
        if let Some(target) = image.target(&here)? {
            links += 1;
            if links > MOST_LINKS {
                return Ok(None);
            }
            match target.starts_with('/') {
                true => done.clear(),
                false => drop(done.pop()),
            }
            rest.extend(parts(&target));
        }
    }
    image.file(&done.join("/")).map(Some)
}

/// What of a program's headers matters here (System V ABI, "Object Files").
#[derive(Debug, PartialEq, Eq)]
struct Elf {
    /// The dynamic linker that it asks for.
    interpreter: Option<String>,
}

impl Elf {
    /// Reads the headers; or what is wrong with the program.
    fn of(bytes: &[u8]) -> Result<Self, &'static str> {
        const X86_64: u64 = 62;
        const PT_INTERP: u64 = 3;
        const HEADER: usize = 56;
        if !bytes.starts_with(b"\x7fELF") {
            return Err("is no program");
        }
        let is_64_bit = bytes.get(4..6) == Some(&[2, 1]);
        if !is_64_bit || number(bytes, 18, 2) != Some(X86_64) {
            return Err("is a program for another kind of processor, not for x86-64");
        }
        let cut = "is cut off";
        let headers = number(bytes, 32, 8).ok_or(cut)?;
        let count = number(bytes, 56, 2).ok_or(cut)?;
        for index in 0..count as usize {
            let at = usize::try_from(headers).map_err(|_| cut)?;
            let at = at.checked_add(index * HEADER).ok_or(cut)?;
            if number(bytes, at, 4).ok_or(cut)? != PT_INTERP {
                continue;
            }
            let [offset, length] = [at + 8, at + 32].map(|at| number(bytes, at, 8));
            let offset = offset.and_then(|offset| usize::try_from(offset).ok());
            let length = length.and_then(|length| usize::try_from(length).ok());
            let (offset, length) = offset.zip(length).ok_or(cut)?;
            let end = offset.checked_add(length).ok_or(cut)?;
            let text = bytes.get(offset..end).ok_or(cut)?;
            let text = String::from_utf8_lossy(text);
            let interpreter = Some(text.trim_end_matches('\0').to_string());
            return Ok(Elf { interpreter });
        }
        Ok(Elf { interpreter: None })
    }
}

/// The little-endian number of `length` bytes at `at`.
fn number(bytes: &[u8], at: usize, length: usize) -> Option<u64> {
    let field = bytes.get(at..at.checked_add(length)?)?;
    let add = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
    Some(field.iter().rev().fold(0, add))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    /// This test's own program, which is linked dynamically.
    fn own() -> Vec<u8> {
        let program = std::env::current_exe().expect("there is one");
        fs::read(program).expect("it can be read")
    }

    #[test]
    fn headers_tell_the_processor_and_the_linker() {
        let own = own();
        let linker = Elf::of(&own).expect("a program").interpreter;
        assert!(linker.is_some_and(|linker| linker.contains("ld-linux")));
        let mut other = own.clone();
        other[18] = 183;
        assert!(Elf::of(&other).is_err_and(|why| why.contains("processor")));
        assert!(Elf::of(&own[..40]).is_err_and(|why| why.contains("cut off")));
        assert!(Elf::of(b"#!/bin/sh\n").is_err_and(|why| why.contains("no program")));
        for length in 0..300 {
            let _ = Elf::of(&own[..length]);
        }
    }

    #[test]
    fn a_disk_is_refused_by_what_it_lacks() {
        let folder = std::env::temp_dir().join(format!("trefoil-programs-{}", std::process::id()));
        let (root, image) = (folder.join("root"), folder.join("image"));
        fs::create_dir_all(root.join("usr/bin")).expect("made");
        let why = |root: &Path| {
            let _ = fs::remove_file(&image);
            crate::disk::make_with(root, &image, "256M", &["-b", "4096"]).expect("made");
            expect_shell(&image).map_err(|error| error.to_string())
        };
        let lacks = |text: &str, root: &Path| {
            let why = why(root).expect_err(text);
            assert!(why.contains(text), "{why}");
        };
        lacks("has no /bin/sh", &root);
        symlink("usr/bin", root.join("bin")).expect("made");
        symlink("sh", root.join("usr/bin/sh")).expect("made");
        lacks("has no /bin/sh", &root);
        fs::remove_file(root.join("usr/bin/sh")).expect("removed");
        symlink("/usr/bin/dash", root.join("usr/bin/sh")).expect("made");
        fs::write(root.join("usr/bin/dash"), "text").expect("written");
        lacks("is no program", &root);
        let own = own();
        fs::write(root.join("usr/bin/dash"), &own).expect("written");
        lacks("wants /lib64/ld-linux", &root);
        fs::create_dir(root.join("lib64")).expect("made");
        fs::write(root.join("lib64/ld-linux-x86-64.so.2"), &own).expect("written");
        assert_eq!(why(&root), Ok(()));
        fs::remove_dir_all(folder).expect("removed");
    }
}
