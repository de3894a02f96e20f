//! Random work against a simple model of a file system, in memory.

use std::collections::BTreeMap;
use std::rc::Rc;

use ext2::{Error, FileKind, FileSystem};

use crate::host::*;

/// What a path names in the model.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    File(Rc<Vec<u8>>),
    Directory,
}

/// By path, without `/lost+found`.
pub type Model = BTreeMap<String, Node>;

fn parent(path: &str) -> (String, String) {
    let (dir, name) = path.rsplit_once('/').unwrap();
    (dir.to_owned(), name.to_owned())
}

fn random_path(model: &Model, random: &mut Random) -> String {
    let dirs: Vec<_> = model
        .iter()
        .filter(|(_, node)| **node == Node::Directory)
        .collect();
    let n = random.below(dirs.len() as u64 + 1) as usize;
    let dir = dirs.get(n).map_or("", |(path, _)| path.as_str());
    format!("{dir}/n{}", random.below(9))
}

fn some_path(model: &Model, random: &mut Random) -> String {
    match model
        .keys()
        .nth(random.below(model.len().max(1) as u64) as usize)
    {
        Some(path) if random.below(5) > 0 => path.clone(),
        _ => random_path(model, random),
    }
}

fn has_children(model: &Model, path: &str) -> bool {
    model
        .keys()
        .any(|other| other.starts_with(&format!("{path}/")))
}

/// Whether an operation was done that the model does or does not allow. An error of the device ends
/// the work; the operation may then be done or not.
fn agree<T>(result: Result<T, Error>, allowed: bool, what: &str) -> Result<bool, Error> {
    match result {
        Err(error @ Error::Device(_)) => return Err(error),
        other => assert_eq!(other.is_ok(), allowed, "{what}: {:?}", other.err()),
    }
    Ok(allowed)
}

/// One random operation on both; they must agree about success. An error is one of the device; what
/// was asked for is then done in the model.
pub fn step(fs: &mut Fs<'_>, model: &mut Model, random: &mut Random) -> Result<(), Error> {
    let choice = random.below(14);
    let path = if choice < 3 {
        random_path(model, random)
    } else {
        some_path(model, random)
    };
    let (dir, name) = parent(&path);
    let at = match walk(fs, &dir) {
        Err(error @ Error::Device(_)) => return Err(error),
        Err(_) => return Ok(()),
        Ok(at) => at,
    };
    let name = name.as_bytes();
    match choice {
        0 | 1 => {
            let allowed = !model.contains_key(&path) && !is_file(model, &dir);
            let made = agree(fs.create(at, name, 0o644), allowed, &path);
            if allowed {
                model.insert(path, Node::File(Rc::default()));
            }
            made?;
        }
        2 => {
            let allowed = !model.contains_key(&path) && !is_file(model, &dir);
            let made = agree(fs.mkdir(at, name, 0o755), allowed, &path);
            if allowed {
                model.insert(path, Node::Directory);
            }
            made?;
        }
        3..=6 => write(fs, model, random, &path)?,
        7 => truncate(fs, model, random, &path)?,
        8 => {
            let allowed = is_file(model, &path);
            let removed = agree(fs.unlink(at, name), allowed, &path);
            if allowed {
                model.remove(&path);
            }
            removed?;
        }
        9 => {
            let empty = model.get(&path) == Some(&Node::Directory) && !has_children(model, &path);
            let removed = agree(fs.rmdir(at, name), empty, &path);
            if empty {
                model.remove(&path);
            }
            removed?;
        }
        10 => punch(fs, model, random, &path)?,
        11 => {
            let other = some_path(model, random);
            exchange(fs, model, &path, &other)?;
        }
        _ => {
            let new = random_path(model, random);
            rename(fs, model, &path, &new)?;
        }
    }
    Ok(())
}

fn is_file(model: &Model, path: &str) -> bool {
    matches!(model.get(path), Some(Node::File(_)))
}

fn write(fs: &mut Fs<'_>, model: &mut Model, random: &mut Random, path: &str) -> Result<(), Error> {
    let Some(Node::File(content)) = model.get_mut(path) else {
        return Ok(());
    };
    let offset = random.below(200_000) as usize;
    let length = random.below(30_000) as usize;
    let data = random.bytes(length);
    if length > 0 {
        let content = Rc::make_mut(content);
        content.resize(content.len().max(offset + length), 0);
        content[offset..offset + length].copy_from_slice(&data);
    }
    let ino = walk(fs, path)?;
    write_all(fs, ino, offset as u64, &data)
}

fn truncate(
    fs: &mut Fs<'_>,
    model: &mut Model,
    random: &mut Random,
    path: &str,
) -> Result<(), Error> {
    let Some(Node::File(content)) = model.get_mut(path) else {
        return Ok(());
    };
    let size = random.below(250_000) as usize;
    Rc::make_mut(content).resize(size, 0);
    let ino = walk(fs, path)?;
    fs.truncate(ino, size as u64)
}

/// Makes a hole of whole blocks, which one transaction can: a power cut then leaves no half of it.
fn punch(fs: &mut Fs<'_>, model: &mut Model, random: &mut Random, path: &str) -> Result<(), Error> {
    let Some(Node::File(content)) = model.get_mut(path) else {
        return Ok(());
    };
    let [from, count] = [60, 30].map(|most| random.below(most) as usize * 4096);
    let end = (from + count).min(content.len());
    if from < end {
        Rc::make_mut(content)[from..end].fill(0);
    }
    let ino = walk(fs, path)?;
    fs.punch(ino, from as u64, count as u64)
}

fn exchange(fs: &mut Fs<'_>, model: &mut Model, one: &str, other: &str) -> Result<(), Error> {
    let ((one_dir, one_name), (other_dir, other_name)) = (parent(one), parent(other));
    let (one_at, other_at) = (walk(fs, &one_dir)?, walk(fs, &other_dir)?);
    let done = fs.exchange(one_at, one_name.as_bytes(), other_at, other_name.as_bytes());
    let lies_in = |one: &str, other: &str| one.starts_with(&format!("{other}/"));
    let both = model.contains_key(one) && model.contains_key(other);
    let allowed = both && !lies_in(one, other) && !lies_in(other, one);
    let done = agree(done, allowed, &format!("{one} and {other}"));
    if allowed && one != other {
        let is_in = |path: &str, top: &str| path == top || lies_in(path, top);
        let move_to = |path: String, from: &str, to: &str| format!("{to}{}", &path[from.len()..]);
        let all = std::mem::take(model);
        *model = all
            .into_iter()
            .map(|(path, node)| match () {
                () if is_in(&path, one) => (move_to(path, one, other), node),
                () if is_in(&path, other) => (move_to(path, other, one), node),
                () => (path, node),
            })
            .collect();
    }
    done.map(|_| ())
}

fn rename(fs: &mut Fs<'_>, model: &mut Model, old: &str, new: &str) -> Result<(), Error> {
    let ((old_dir, old_name), (new_dir, new_name)) = (parent(old), parent(new));
    let (old_at, new_at) = (walk(fs, &old_dir)?, walk(fs, &new_dir)?);
    let done = fs.rename(old_at, old_name.as_bytes(), new_at, new_name.as_bytes());
    let allowed = match (model.get(old), model.get(new)) {
        (None, _) => false,
        _ if is_file(model, &new_dir) => false,
        _ if old == new => true,
        (Some(Node::Directory), _) if new.starts_with(&format!("{old}/")) => false,
        (Some(_), None) => true,
        (Some(Node::File(_)), Some(Node::File(_))) => true,
        (Some(Node::Directory), Some(Node::Directory)) => !has_children(model, new),
        _ => false,
    };
    let done = agree(done, allowed, &format!("{old} to {new}"));
    if allowed && old != new {
        let under = format!("{old}/");
        let moved: Vec<_> = model
            .keys()
            .filter(|path| *path == old || path.starts_with(&under))
            .cloned()
            .collect();
        for path in moved {
            let node = model.remove(&path).unwrap();
            model.insert(format!("{new}{}", &path[old.len()..]), node);
        }
    }
    done.map(|_| ())
}

/// What is in the file system.
pub fn read_model(fs: &mut Fs<'_>) -> Model {
    let mut model = Model::new();
    let mut dirs = vec![(String::new(), fs.root())];
    while let Some((path, dir)) = dirs.pop() {
        for (name, ino) in list(fs, dir).unwrap() {
            let path = format!("{path}/{}", String::from_utf8(name).unwrap());
            if path == "/lost+found" {
                continue;
            }
            let node = match fs.getattr(ino).unwrap().kind {
                FileKind::Directory => {
                    dirs.push((path.clone(), ino));
                    Node::Directory
                }
                _ => Node::File(Rc::new(read_all(fs, ino).unwrap())),
            };
            assert_eq!(model.insert(path, node), None, "a name that is there twice");
        }
    }
    model
}

fn compare(fs: &mut Fs<'_>, model: &Model) {
    let found = read_model(fs);
    assert!(found.keys().eq(model.keys()));
    for (path, node) in model {
        assert!(found[path] == *node, "{path}");
    }
}

#[test]
fn random_work_agrees_with_the_model() {
    for (seed, kind, block_size, budget) in [
        (1, "ext2", 1024, 0),
        (2, "ext2", 2048, 1 << 20),
        (3, "ext2", 4096, 0),
        (4, "ext3", 1024, 0),
        (5, "ext3", 4096, 8 << 20),
    ] {
        let arguments = format!("-t {kind} -b {block_size}");
        let disk = Disk::new(make_image(&arguments, None, (48 << 20) / block_size));
        let mut random = Random(seed);
        let mut model = Model::new();
        for _ in 0..4 {
            let mut fs = FileSystem::mount(&disk, options(false, budget)).unwrap();
            for n in 0..300 {
                step(&mut fs, &mut model, &mut random).unwrap();
                if n % 100 == 99 {
                    compare(&mut fs, &model);
                    fs.sync().unwrap();
                    assert_clean(&disk.image());
                }
            }
            assert_eq!(fs.take_distrusted(), []);
            fs.unmount().unwrap();
            assert_clean(&disk.image());
            assert_eq!(fs.create(2, b"late", 0o644), Err(Error::ReadOnly));
        }
    }
}
