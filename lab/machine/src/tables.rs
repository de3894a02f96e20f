//! Symbols for the system's own disk: `dmesg -b` looks for them in `/lib/symbols`, by the builds of
//! the kernel and of the images.

use std::fs;
use std::path::Path;

use abi::image::SIGNATURE_LENGTH;
use anyhow::{Context, Result, ensure};
use symbols::{Made, compact_all};
use trefoil_gate::project::Project;

use crate::disk;
use crate::image::Image;

/// Where on the disk they lie.
const FOLDER: &str = "/lib/symbols";
/// Digits of a build.
const DIGITS: usize = 16;

/// Makes the tables of `kernel` and of the images that are called so, or of all if there are no
/// names, in the new folder `to`.
///
/// # Errors
/// If an image is not there, or a file cannot be made.
pub fn make(project: &Project, kernel: &Path, names: &[String], to: &Path) -> Result<Vec<Made>> {
    let mut images = builds(&project.images())?;
    for name in names {
        let is_known = images.iter().any(|(image, _)| image == name);
        ensure!(is_known, "there is no image `{name}`: build first");
    }
    images.retain(|(image, _)| names.is_empty() || names.contains(image));
    let symbols = project.out.join(symbols::FOLDER);
    compact_all(&symbols, kernel, &images, &project.root, to)
}

/// Name and build of all images below `folder`.
fn builds(folder: &Path) -> Result<Vec<(String, u64)>> {
    let mut found = Vec::new();
    let entries = fs::read_dir(folder).with_context(|| format!("no {}", folder.display()))?;
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(builds(&path)?);
            continue;
        }
        let image = fs::read(&path)?;
        let signature = image.len().checked_sub(SIGNATURE_LENGTH);
        let build = signature.and_then(|at| image.get(at..)?.first_chunk());
        if let Some(build) = build {
            let name = entry.file_name().to_string_lossy().into_owned();
            found.push((name, u64::from_be_bytes(*build)));
        }
    }
    found.sort();
    Ok(found)
}

/// Puts what was made in the folder `from` on `disk`, in place of what is there of older builds.
///
/// # Errors
/// If it does not fit, or the disk is damaged.
pub fn put(disk: &Path, from: &Path, made: &[Made]) -> Result<()> {
    disk::repair(disk)?;
    let mut image = Image::open_to_change(disk)?;
    let done = replace(&mut image, from, made);
    image.finish()?;
    done.with_context(|| format!("the symbols do not fit on {}", disk.display()))
}

fn replace(image: &mut Image, from: &Path, made: &[Made]) -> Result<()> {
    let folder = image.folder(FOLDER)?;
    for old in image.names(FOLDER)?.iter().filter_map(|name| build(name)) {
        image.remove(folder, old)?;
    }
    for table in made {
        let content = fs::read(from.join(&table.name))?;
        image.put(folder, &table.name, 0o644, &content)?;
    }
    Ok(())
}

/// A name of a table, of a build: not one of a file that somebody else has put there.
fn build(name: &[u8]) -> Option<&str> {
    let is_build = name.len() == DIGITS && name.iter().all(u8::is_ascii_hexdigit);
    std::str::from_utf8(name).ok().filter(|_| is_build)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_are_known_by_their_names() {
        let name = b"0ff475ab16808da8";
        assert_eq!(build(name), Some("0ff475ab16808da8"));
        for other in [
            &b".."[..],
            b"notes",
            b"",
            b"0ff475ab16808da",
            b"0ff475ab16808d\n8",
        ] {
            assert_eq!(build(other), None, "{other:?}");
        }
    }

    /// Whatever the disk is called, and whatever else is in the folder.
    #[test]
    fn tables_take_the_place_of_older_ones_and_of_nothing_else() {
        let folder = std::env::temp_dir().join(format!("trefoil-tables-{}", std::process::id()));
        let root = folder.join("root");
        fs::create_dir_all(root.join("lib/symbols")).expect("made");
        for name in ["0ff475ab16808da8", "notes"] {
            fs::write(root.join("lib/symbols").join(name), "old").expect("written");
        }
        let from = folder.join("from");
        fs::create_dir_all(&from).expect("made");
        let name = "00000000000000a1".to_string();
        fs::write(from.join(&name), "table").expect("written");
        let table = Made {
            name,
            of: "a".into(),
            length: 5,
        };
        for name in ["x.debugfs", "x.img", "x", "x.back"] {
            let disk = folder.join(name);
            disk::make(&root, &disk, "8M").expect("made");
            put(&disk, &from, std::slice::from_ref(&table)).expect("there is room");
            let mut names = Image::open(&disk)
                .expect("whole")
                .names(FOLDER)
                .expect("read");
            names.sort();
            assert_eq!(names, [b"00000000000000a1".to_vec(), b"notes".to_vec()]);
            assert_eq!(disk::complaints(&disk).expect("checked"), None);
        }
        fs::write(from.join(&table.name), vec![1; 9 << 20]).expect("written");
        let disk = folder.join("x");
        let error = put(&disk, &from, &[table]).expect_err("too large");
        assert_eq!(disk::complaints(&disk).expect("checked"), None);
        assert!(error.to_string().contains("do not fit"), "{error:#}");
        fs::remove_dir_all(folder).expect("it is ours");
    }
}
