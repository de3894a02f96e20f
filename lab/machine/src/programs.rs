//! Whether a disk has what the personality `linux` begins with: a shell for x86-64, and the dynamic
//! linker that the shell asks for. Said before the boot, in words that name what is missing.

use std::path::Path;

use anyhow::{Result, bail};
use linux::errno::ENOEXEC;
use linux::executable::{Executable, HEAD};

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
    match interpreter(&shell) {
        Err(why) => bail!("{SHELL} on {name} {why}"),
        Ok(None) => Ok(()),
        Ok(Some(linker)) => match program(&mut image, &linker)? {
            Some(_) => Ok(()),
            None => bail!("{SHELL} on {name} wants {linker}, which the disk does not have"),
        },
    }
}

/// The dynamic linker that a program asks for, as the personality reads its headers; or what is
/// wrong with it.
fn interpreter(bytes: &[u8]) -> Result<Option<String>, &'static str> {
    let part = |offset: u64, length: usize| {
        let start = usize::try_from(offset).ok()?;
        bytes.get(start..start.checked_add(length)?)
    };
    let head = &bytes[..bytes.len().min(HEAD)];
    let rest = |offset, length| part(offset, length).map(<[u8]>::to_vec).ok_or(ENOEXEC);
    let wrong = "is no program for an x86-64 processor, or is cut off";
    let program = Executable::new(head, rest).map_err(|_| wrong)?;
    let Some((offset, length)) = program.interpreter else {
        return Ok(None);
    };
    let text = String::from_utf8_lossy(part(offset, length).ok_or(wrong)?);
    Ok(Some(text.trim_end_matches('\0').to_string()))
}

/// What is in the file at `path`, from the root, with links followed, if there is one.
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
        let linker = interpreter(&own).expect("a program");
        assert!(linker.is_some_and(|linker| linker.contains("ld-linux")));
        let mut other = own.clone();
        other[18] = 183;
        assert!(interpreter(&other).is_err_and(|why| why.contains("processor")));
        assert!(interpreter(&own[..40]).is_err_and(|why| why.contains("cut off")));
        assert!(interpreter(b"#!/bin/sh\n").is_err_and(|why| why.contains("no program")));
        for length in 0..300 {
            let _ = interpreter(&own[..length]);
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
