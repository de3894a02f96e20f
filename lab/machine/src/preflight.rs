//! What would keep the system from booting as it was asked to, said before QEMU or the system say
//! it in words that only they understand: a disk image that is in use, cannot be written or cannot
//! be mounted; too little memory; KVM that is not there.

use std::cell::Cell;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context, Result, bail};
use ext2::FileSystem;

use crate::sectors::{Overlay, Sectors};

/// Opens a disk image and keeps other machines of ours from using it for as long as the result
/// lives.
///
/// # Errors
/// If it cannot be opened as is needed, or another machine uses it. The message says what to do.
pub fn claim(file: &Path, read_only: bool) -> Result<File> {
    let name = file.display();
    if file.is_dir() {
        bail!("{name} is a folder, not a disk image");
    }
    let opened = OpenOptions::new().read(true).write(!read_only).open(file);
    let opened = match opened {
        Ok(opened) => opened,
        Err(error) if error.kind() == ErrorKind::NotFound => bail!("there is no disk image {name}"),
        Err(error) if !read_only && File::open(file).is_ok() => {
            bail!("{name} cannot be written ({error}); `--read-only` boots without writing to it")
        }
        Err(error) => bail!("{name} cannot be read: {error}"),
    };
    if !opened.metadata()?.is_file() {
        bail!("{name} is not a regular file");
    }
    let locked = match read_only {
        true => opened.try_lock_shared(),
        false => opened.try_lock(),
    };
    match locked {
        Ok(()) => Ok(opened),
        Err(TryLockError::WouldBlock) => bail!(
            "{name} is the disk of a machine that runs; end that one, or give this one a copy by --disk"
        ),
        Err(TryLockError::Error(error)) => {
            Err(error).with_context(|| format!("cannot lock {name}"))
        }
    }
}

/// The most bytes that a look at a disk keeps in memory. A mount writes what its journal has.
const MOST_WRITTEN: usize = 128 << 20;

/// Fails if the system could not mount what is on the disk. Nothing is written.
///
/// # Errors
/// Why it cannot be mounted, or that its journal is too large for a look.
pub fn expect_mountable(name: &Path, disk: &File, read_only: bool) -> Result<()> {
    mount_in_memory(name, disk, read_only, MOST_WRITTEN)
}

fn mount_in_memory(name: &Path, disk: &File, read_only: bool, most: usize) -> Result<()> {
    let is_full = Cell::new(false);
    let device = Overlay::new(Sectors::of(disk.try_clone()?)?, most, &is_full);
    let options = ext2::Options {
        read_only,
        cache_budget_bytes: 1 << 20,
        memory_is_short: || false,
        clock: Box::new(ext2::Time::default),
    };
    let mounted = FileSystem::mount(device, options).map(|_| ());
    let Err(error) = mounted else {
        return Ok(());
    };
    let name = name.display();
    if is_full.get() {
        bail!(
            "{name} was not looked at: its journal has more than {} MiB to be replayed. `e2fsck -p` replays it",
            most >> 20
        );
    }
    let hint = match error {
        ext2::Error::OnlyReadable(_) => "; `--read-only` can mount it",
        ext2::Error::Unsupported(_) => "; `mke2fs -t ext3` makes one that can be mounted",
        ext2::Error::Corrupt(_) => "; `e2fsck -f` may repair it",
        _ => "",
    };
    bail!("{name} cannot be mounted: {error}{hint}")
}

/// The least memory in which the default system comes to its prompt, in MiB.
const LEAST_MIB: u64 = 64;

/// A size of memory as QEMU takes it: from `512M`, `1.5G`, `1024MiB`; without a unit in MiB.
///
/// # Errors
/// What is wrong with it.
pub fn memory(text: &str) -> Result<String, String> {
    let number = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let mib = match text[number.len()..].to_ascii_lowercase().as_str() {
        "" | "m" | "mb" | "mib" => 1.0,
        "g" | "gb" | "gib" => 1024.0,
        unit => {
            return Err(format!(
                "`{unit}` is no unit; write a size such as 512M or 1.5G"
            ));
        }
    };
    let amount: f64 = number
        .parse()
        .map_err(|_| "write a size such as 512M or 1.5G".to_string())?;
    // A fraction of a MiB is of no use to anybody.
    let amount = (amount * mib).round();
    match amount {
        _ if !(0.0..1e6).contains(&amount) => Err("write a size such as 512M or 1.5G".into()),
        _ if (amount as u64) < LEAST_MIB => {
            Err(format!("the system needs {LEAST_MIB}M at the least"))
        }
        _ => Ok(format!("{}M", amount as u64)),
    }
}

/// Fails if the machine cannot run others by KVM.
///
/// # Errors
/// What is missing.
pub fn expect_kvm() -> Result<()> {
    let device = Path::new("/dev/kvm");
    let opened = OpenOptions::new().read(true).write(true).open(device);
    match opened {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => bail!(
            "--kvm: this machine has no /dev/kvm; its kernel lacks the module kvm_intel or kvm_amd, or it is \
             a virtual machine without nested virtualisation. Without --kvm the processor is emulated"
        ),
        Err(error) => bail!("--kvm: /dev/kvm cannot be opened: {error}"),
    }
}

/// What to say when QEMU with KVM has ended with an error of its own.
pub const KVM_FAILED: &str = "with --kvm: if QEMU names an MSR or a feature above, the host's processor, or the virtual machine \
     that we are in, lacks what KVM wants; without --kvm the processor is emulated";

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::PathBuf;

    fn scratch(name: &str, content: &[u8]) -> PathBuf {
        let file =
            std::env::temp_dir().join(format!("trefoil-preflight-{}-{name}", std::process::id()));
        fs::write(&file, content).expect("written");
        file
    }

    #[test]
    fn sizes_of_memory() {
        assert_eq!(memory("512"), Ok("512M".into()));
        assert_eq!(memory("2G"), Ok("2048M".into()));
        assert_eq!(memory("1.5G"), Ok("1536M".into()));
        assert_eq!(memory("64MiB"), Ok("64M".into()));
        for (text, reason) in [
            ("much", "such as"),
            ("", "such as"),
            ("0", "at the least"),
            ("16M", "64M at the least"),
            ("-5G", "such as"),
            ("1e9G", "such as"),
            ("nan", "such as"),
            ("5T", "`t` is no unit"),
        ] {
            let error = memory(text).expect_err(text);
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    #[test]
    fn one_machine_writes_to_a_disk_and_several_read_it() {
        let file = scratch("lock", b"x");
        let writer = claim(&file, false).expect("free");
        for read_only in [false, true] {
            let error = claim(&file, read_only).expect_err("in use");
            assert!(error.to_string().contains("a machine that runs"), "{error}");
        }
        drop(writer);
        let _readers = [true, true].map(|read_only| claim(&file, read_only).expect("readers"));
        assert!(claim(&file, false).is_err());
        fs::remove_file(&file).expect("removed");
        let error = claim(&file, false).expect_err("gone");
        assert!(error.to_string().contains("there is no disk image"));
    }

    #[test]
    fn what_cannot_be_mounted_is_said() {
        for (name, length) in [("empty", 0), ("zeros", 1 << 20)] {
            let file = scratch(name, &vec![0; length]);
            let disk = File::open(&file).expect("there");
            let error = expect_mountable(&file, &disk, false).expect_err(name);
            assert!(error.to_string().contains("cannot be mounted"), "{error}");
            fs::remove_file(&file).expect("removed");
        }
    }

    /// A few bytes of a sparse image can say that there are gigabytes to be replayed.
    #[test]
    fn a_journal_is_replayed_in_so_much_memory_and_no_more() {
        let folder = scratch("journal", b"");
        fs::remove_file(&folder).expect("removed");
        fs::create_dir(&folder).expect("made");
        let file = folder.join("image");
        let options = ["-b", "4096", "-j", "-J", "size=4"];
        crate::disk::make_with(&folder, &file, "32M", &options).expect("made");
        crate::disk::change(&file, "jo\njw -b 6000-6700 /dev/zero\njc\n").expect("written");
        let disk = File::open(&file).expect("there");
        mount_in_memory(&file, &disk, false, 4 << 20).expect("three megabytes");
        let error = mount_in_memory(&file, &disk, false, 2 << 20).expect_err("too much");
        assert!(error.to_string().contains("more than 2 MiB"), "{error}");
        mount_in_memory(&file, &disk, true, 0).expect("nothing is written");
        fs::remove_dir_all(&folder).expect("removed");
    }

    #[test]
    fn looking_at_a_disk_changes_nothing() {
        let folder = scratch("root", b"");
        fs::remove_file(&folder).expect("removed");
        fs::create_dir(&folder).expect("made");
        let file = folder.with_extension("img");
        crate::disk::make_with(&folder, &file, "8M", &["-j"]).expect("made");
        let before = fs::read(&file).expect("read");
        let disk = File::open(&file).expect("there");
        expect_mountable(&file, &disk, false).expect("mountable");
        assert!(fs::read(&file).expect("read") == before);
        fs::remove_file(&file).expect("removed");
        fs::remove_dir(&folder).expect("removed");
    }
}
