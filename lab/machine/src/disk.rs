//! Disk images, made with the host's tools (e2fsprogs).

use std::fs;
use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use trefoil_gate::project::Project;
use trefoil_gate::{stamp, tool};

use crate::image::{Image, fed};

const SIZE: &str = "128M";
const BIG_LENGTH: usize = 8 << 20;
/// The journal of the default disk: the smallest for the blocks below. A larger one would be
/// emptied less often.
const JOURNAL: [&str; 3] = ["-j", "-J", "size=4"];
/// Blocks of the size of a page, as on disks of today. With smaller ones a mount reads a block for
/// every 256 of the journal, to find it.
const BLOCKS: [&str; 2] = ["-b", "4096"];
/// Where an image says which features it has that others may ignore, and the bit there for a
/// journal.
const FEATURES_AT: u64 = 1024 + 0x5c;
const HAS_JOURNAL: u32 = 4;

/// Where the default disk is, or will be.
pub fn default_file(project: &Project) -> PathBuf {
    project.out.join("disk.img")
}

/// The default disk: made if there is none, with the programs of the present build on it, and with
/// a journal.
///
/// # Errors
/// If it cannot be made.
pub fn default(project: &Project) -> Result<PathBuf> {
    let disk = default_file(project);
    let programs = project.images().join("boot/bin");
    let mark = project.out.join("disk.stamp");
    let present = format!("{:016x}\n", stamp::of(&[&programs]));
    if !disk.exists() {
        tool::timed("making a disk image", || {
            make_default(&programs, &project.out, &disk)
        })?;
        fs::write(mark, present)?;
        return Ok(disk);
    }
    if fs::read_to_string(&mark).unwrap_or_default() != present {
        tool::timed("bringing the programs on the disk image up to date", || {
            refresh(&disk, &programs)
        })?;
        fs::write(mark, present)?;
    }
    if !has_journal(&disk)? {
        tool::step("giving the disk image a journal");
        if let Err(error) = add_journal(&disk) {
            // An image that was made before they had one, and is full: no reason not to boot.
            eprintln!(
                "warning: {error:#}\n{} has no journal, and is only read without `--rw`. Make room on it, or remove it \
                 to have a new one made",
                disk.display()
            );
        }
    }
    Ok(disk)
}

/// Makes the default disk in the new file `disk`. Its files are put together in `folder`.
///
/// # Errors
/// If it cannot be made.
pub fn make_default(programs: &Path, folder: &Path, disk: &Path) -> Result<()> {
    let root = folder.join("disk-root");
    if root.exists() {
        fs::remove_dir_all(&root)?;
    }
    fill(&root)?;
    for program in fs::read_dir(programs).into_iter().flatten().flatten() {
        fs::copy(program.path(), root.join("bin").join(program.file_name()))?;
    }
    make_with(&root, disk, SIZE, &[&BLOCKS[..], &JOURNAL].concat())?;
    fs::remove_dir_all(&root)?;
    Ok(())
}

/// Whether the file system on `disk` has a journal.
///
/// # Errors
/// If that cannot be read.
pub fn has_journal(disk: &Path) -> Result<bool> {
    let mut features = [0; 4];
    let file = File::open(disk).with_context(|| format!("cannot open {}", disk.display()))?;
    file.read_exact_at(&mut features, FEATURES_AT)
        .with_context(|| format!("{} holds no file system", disk.display()))?;
    Ok(u32::from_le_bytes(features) & HAS_JOURNAL != 0)
}

/// Gives the file system on `disk` a journal.
///
/// # Errors
/// If there is no room for one, or the file system is damaged.
fn add_journal(disk: &Path) -> Result<()> {
    repair(disk)?;
    let mut command = Command::new(tool::need("tune2fs", "e2fsprogs")?);
    tool::output(command.args(JOURNAL).arg(disk)).map(|_| ())
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
        "Welcome to Trefoil. `help` lists what there is; try: ls / ; domains ; crash virtio-blk ; dmesg\n",
    )?;
    fs::write(root.join("text/a.txt"), verses(2000))?;
    fs::write(root.join("text/b.txt"), verses(20))?;
    fs::write(root.join("big"), noise(BIG_LENGTH, 1))?;
    Ok(())
}

/// Makes an ext2 file system of `size` (as mke2fs writes it) in the new file `disk`, with all that
/// is in `root`.
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
    let new = beside(disk)?;
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

/// A new, empty file beside `file`, with a name that nobody has.
fn beside(file: &Path) -> Result<PathBuf> {
    let name = file.file_name().context("it has a name")?.to_string_lossy();
    let new = file.with_file_name(format!("{name}.new{}", std::process::id()));
    File::create_new(&new).with_context(|| format!("cannot make {}", new.display()))?;
    Ok(new)
}

/// Makes the file system on `disk` clean: a machine that was killed may have left a journal to be
/// replayed, or where there is none, blocks that belong to nobody.
pub(crate) fn repair(disk: &Path) -> Result<()> {
    // Status 1 means "repaired".
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
    Ok(())
}

/// Replaces the programs in `/bin` of the image by those in `programs`.
fn refresh(disk: &Path, programs: &Path) -> Result<()> {
    repair(disk)?;
    let mut image = Image::open_to_change(disk)?;
    let bin = image.folder("/bin")?;
    for program in fs::read_dir(programs)?.flatten() {
        let mode = program.metadata()?.mode() as u16 & 0o777;
        let (name, content) = (program.file_name(), fs::read(program.path())?);
        let name = name.to_str().context("programs have plain names")?;
        image.put(bin, name, mode, &content)?;
    }
    image.finish()
}

/// Changes the image by commands of debugfs, which must be the caller's own words: a name that
/// somebody else has chosen could be a further command.
///
/// # Errors
/// If debugfs cannot be run.
pub fn change(disk: &Path, script: &str) -> Result<()> {
    let mut command = Command::new(tool::need("debugfs", "e2fsprogs")?);
    fed(command.args(["-w", "-f", "-"]).arg(disk), script).map(|_| ())
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

    /// A folder for one test, with the files of the default disk in its `root`.
    fn folder(name: &str) -> (PathBuf, PathBuf, PathBuf) {
        let folder =
            std::env::temp_dir().join(format!("trefoil-disk-{name}-{}", std::process::id()));
        let (root, disk) = (folder.join("root"), folder.join("a.img"));
        fill(&root).expect("filled");
        (folder, root, disk)
    }

    fn cat(disk: &Path, path: &str) -> String {
        let folder = disk.parent().expect("it is in one");
        let content = crate::image::file_by_host(disk, path, folder);
        String::from_utf8(content.expect("read")).expect("text")
    }

    #[test]
    fn an_image_is_made_refreshed_and_clean() {
        if tool::find("mke2fs").is_none() {
            return;
        }
        let (folder, root, disk) = folder("refreshed");
        let programs = folder.join("bin");
        fs::create_dir_all(&programs).expect("made");
        fs::write(programs.join("ls"), "new").expect("written");
        make_with(&root, &disk, "32M", &JOURNAL).expect("made");
        refresh(&disk, &programs).expect("refreshed");
        refresh(&disk, &programs).expect("refreshed again");
        assert_eq!(complaints(&disk).expect("checked"), None);
        assert!(is_sparse(&disk));
        assert_eq!(cat(&disk, "/bin/ls"), "new");
        fs::remove_dir_all(folder).expect("removed");
    }

    #[test]
    fn an_image_without_a_journal_gets_one() {
        if tool::find("mke2fs").is_none() {
            return;
        }
        let (folder, root, disk) = folder("journal");
        make(&root, &disk, "32M").expect("made");
        assert!(!has_journal(&disk).expect("read"));
        add_journal(&disk).expect("added");
        assert!(has_journal(&disk).expect("read"));
        assert_eq!(complaints(&disk).expect("checked"), None);
        assert_eq!(cat(&disk, "/text/b.txt"), verses(20));
        fs::remove_dir_all(folder).expect("removed");
    }

    #[test]
    fn an_image_without_room_for_a_journal_stays_as_it_is() {
        if tool::find("mke2fs").is_none() {
            return;
        }
        let (folder, root, disk) = folder("full");
        make(&root, &disk, "12M").expect("made");
        add_journal(&disk).expect_err("four of twelve megabytes are not free");
        assert!(!has_journal(&disk).expect("read"));
        assert_eq!(complaints(&disk).expect("checked"), None);
        assert_eq!(cat(&disk, "/text/b.txt"), verses(20));
        fs::remove_dir_all(folder).expect("removed");
    }

    #[test]
    fn what_is_no_image_has_no_journal_to_be_found() {
        let file = std::env::temp_dir().join(format!("trefoil-disk-none-{}", std::process::id()));
        has_journal(&file).expect_err("there is no such file");
        fs::write(&file, "short").expect("written");
        has_journal(&file).expect_err("it is too short");
        fs::remove_file(file).expect("removed");
    }
}
