//! Disk images, made with the host's tools (e2fsprogs).

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::project::Project;
use crate::{stamp, tool};

const SIZE: &str = "128M";
const BIG_LENGTH: usize = 8 << 20;

/// The default disk: made if there is none, with the programs of the present build on it.
///
/// # Errors
/// If it cannot be made.
pub fn default(project: &Project) -> Result<PathBuf> {
    let disk = project.out.join("disk.img");
    let programs = project.images().join("boot/bin");
    let mark = project.out.join("disk.stamp");
    let present = format!("{:016x}\n", stamp::of(&[&programs]));
    if !disk.exists() {
        tool::timed("making a disk image", || {
            make_default(project, &programs, &disk)
        })?;
    } else if fs::read_to_string(&mark).unwrap_or_default() != present {
        tool::timed("bringing the programs on the disk image up to date", || {
            refresh(&disk, &programs)
        })?;
    } else {
        return Ok(disk);
    }
    fs::write(mark, present)?;
    Ok(disk)
}

fn make_default(project: &Project, programs: &Path, disk: &Path) -> Result<()> {
    let root = project.out.join("disk-root");
    if root.exists() {
        fs::remove_dir_all(&root)?;
    }
    fill(&root)?;
    for program in fs::read_dir(programs).into_iter().flatten().flatten() {
        fs::copy(program.path(), root.join("bin").join(program.file_name()))?;
    }
    make(&root, disk, SIZE)?;
    fs::remove_dir_all(&root)?;
    Ok(())
}

/// The files of the default disk, but for the programs.
fn fill(root: &Path) -> Result<()> {
    for folder in ["bin", "etc", "home", "text", "tmp"] {
        fs::create_dir_all(root.join(folder))?;
    }
    fs::write(
        root.join("README"),
        "This is the disk that `make run` makes. Do with it what you like.\n",
    )?;
    fs::write(
        root.join("etc/motd"),
        "Welcome to Trefoil. Try: ls / ; domains ; crash virtio-blk ; dmesg\n",
    )?;
    fs::write(root.join("text/a.txt"), verses(2000))?;
    fs::write(root.join("text/b.txt"), verses(20))?;
    fs::write(root.join("big"), noise(BIG_LENGTH, 1))?;
    Ok(())
}

/// Makes an ext2 file system of `size` (as mke2fs writes it) in the new file `disk`, with all that is in `root`.
///
/// # Errors
/// If mke2fs fails.
pub fn make(root: &Path, disk: &Path, size: &str) -> Result<()> {
    make_with(root, disk, size, &[])
}

/// As [`make`], with more options for mke2fs.
///
/// # Errors
/// If mke2fs fails.
pub fn make_with(root: &Path, disk: &Path, size: &str, options: &[&str]) -> Result<()> {
    // Made under another name, so that an interrupted run leaves no half an image.
    let new = disk.with_extension(format!("new{}", std::process::id()));
    let mut command = Command::new(tool::need("mke2fs", "e2fsprogs")?);
    command
        .args(["-q", "-F", "-t", "ext2", "-L", "trefoil"])
        .args(options)
        .arg("-d")
        .arg(root)
        .arg(&new)
        .arg(size);
    let made = tool::output(&mut command);
    if made.is_err() {
        let _ = fs::remove_file(&new);
    }
    made?;
    fs::rename(&new, disk).with_context(|| format!("cannot make {}", disk.display()))?;
    Ok(())
}

/// Replaces the programs in `/bin` of the image by those in `programs`.
fn refresh(disk: &Path, programs: &Path) -> Result<()> {
    // A machine that was killed may have left the file system unclean; status 1 means "repaired".
    let repaired = tool::captured(
        Command::new(tool::need("e2fsck", "e2fsprogs")?)
            .arg("-p")
            .arg(disk),
    )?;
    if !matches!(repaired.status.code(), Some(0 | 1)) {
        bail!(
            "{} is damaged: repair it with `e2fsck -f`, or remove it to have a new one made",
            disk.display()
        );
    }
    // debugfs makes a second folder of the same name without complaint.
    let bin = tool::captured(
        Command::new(tool::need("debugfs", "e2fsprogs")?)
            .args(["-R", "stat /bin"])
            .arg(disk),
    )?;
    let is_there = String::from_utf8_lossy(&bin.stdout).contains("Type: directory");
    let mut script = String::from(if is_there {
        "cd /bin\n"
    } else {
        "mkdir /bin\ncd /bin\n"
    });
    for program in fs::read_dir(programs)?.flatten() {
        let (name, path) = (program.file_name(), program.path());
        let name = name.to_string_lossy();
        script += &format!("rm {name}\nwrite \"{}\" {name}\n", path.display());
    }
    change(disk, &script)
}

/// Changes the image by commands of debugfs.
///
/// # Errors
/// If debugfs cannot be run.
pub fn change(disk: &Path, script: &str) -> Result<()> {
    let commands = disk.with_extension("debugfs");
    fs::write(&commands, script)?;
    let mut command = Command::new(tool::need("debugfs", "e2fsprogs")?);
    tool::output(command.arg("-w").arg("-f").arg(&commands).arg(disk))?;
    fs::remove_file(commands)?;
    Ok(())
}

/// What `e2fsck -fn` has to say about the image, if it is not clean.
///
/// # Errors
/// If e2fsck cannot be run.
pub fn complaints(disk: &Path) -> Result<Option<String>> {
    let output = tool::captured(
        Command::new(tool::need("e2fsck", "e2fsprogs")?)
            .arg("-fn")
            .arg(disk),
    )?;
    match output.status.code() {
        Some(0) => Ok(None),
        _ => Ok(Some(String::from_utf8_lossy(&output.stdout).into_owned())),
    }
}

/// Copies the folder `path` of the image into the folder `to`, with all that is in it.
///
/// # Errors
/// If debugfs cannot.
pub fn dump_tree(disk: &Path, path: &str, to: &Path) -> Result<()> {
    let request = format!("rdump \"{path}\" \"{}\"", to.display());
    let mut command = Command::new(tool::need("debugfs", "e2fsprogs")?);
    tool::output(command.args(["-R", &request]).arg(disk))?;
    Ok(())
}

/// Whether `disk` takes less room than its length (a sparse file).
pub fn is_sparse(disk: &Path) -> bool {
    disk.metadata()
        .is_ok_and(|meta| meta.blocks() * 512 < meta.len())
}

/// `count` lines of text, the same every time.
pub fn verses(count: usize) -> String {
    const WORDS: [&str; 16] = [
        "the", "leaf", "falls", "and", "a", "new", "one", "grows", "where", "no", "root", "was",
        "lost", "to", "any", "storm",
    ];
    let mut random = Random(count as u64 + 1);
    let mut text = String::new();
    for line in 0..count {
        let length = 4 + random.next() as usize % 8;
        let words: Vec<_> = (0..length)
            .map(|_| WORDS[random.next() as usize % WORDS.len()])
            .collect();
        text += &format!("{:05} {}\n", line + 1, words.join(" "));
    }
    text
}

/// `length` bytes that do not repeat, the same for the same `seed`.
pub fn noise(length: usize, seed: u64) -> Vec<u8> {
    let mut random = Random(seed);
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        bytes.extend(random.next().to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

/// Marsaglia's xorshift64: enough for test data.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_data_is_the_same_every_time() {
        assert_eq!(noise(10, 1), noise(10, 1));
        assert_ne!(noise(10, 1), noise(10, 2));
        assert_eq!(verses(3).lines().count(), 3);
        assert!(verses(3).starts_with("00001 "));
    }

    #[test]
    fn an_image_is_made_refreshed_and_clean() {
        if tool::find("mke2fs").is_none() {
            return;
        }
        let folder = std::env::temp_dir().join(format!("trefoil-disk-{}", std::process::id()));
        let (root, programs, disk) = (
            folder.join("root"),
            folder.join("bin"),
            folder.join("a.img"),
        );
        fill(&root).expect("filled");
        fs::create_dir_all(&programs).expect("made");
        fs::write(programs.join("ls"), "new").expect("written");
        make(&root, &disk, "32M").expect("made");
        refresh(&disk, &programs).expect("refreshed");
        refresh(&disk, &programs).expect("refreshed again");
        assert_eq!(complaints(&disk).expect("checked"), None);
        assert!(is_sparse(&disk));
        let cat = tool::output(
            Command::new(tool::find("debugfs").expect("e2fsprogs"))
                .args(["-R", "cat /bin/ls"])
                .arg(&disk),
        );
        assert_eq!(cat.expect("read"), "new");
        fs::remove_dir_all(folder).expect("removed");
    }
}
