//! Random work against a simple model of a file system, in memory.

use std::collections::BTreeMap;

use ext2::{Error, FileKind, FileSystem};

use crate::host::*;

/// What a path names in the model.
#[derive(Clone, Debug, PartialEq)]
enum Node {
    File(Vec<u8>),
    Directory,
}

type Model = BTreeMap<String, Node>;

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

/// One random operation on both; they must agree about success.
fn step(fs: &mut Fs<'_>, model: &mut Model, random: &mut Random) {
    let choice = random.below(12);
    let path = if choice < 3 {
        random_path(model, random)
    } else {
        some_path(model, random)
    };
    let (dir, name) = parent(&path);
    let Ok(at) = walk(fs, &dir) else {
        return;
    };
    let name = name.as_bytes();
    match choice {
        0 | 1 => {
            let made = fs.create(at, name, 0o644).is_ok();
            assert_eq!(made, !model.contains_key(&path) && !is_file(model, &dir));
            if made {
                model.insert(path, Node::File(Vec::new()));
            }
        }
        2 => {
            let made = fs.mkdir(at, name, 0o755).is_ok();
            assert_eq!(made, !model.contains_key(&path) && !is_file(model, &dir));
            if made {
                model.insert(path, Node::Directory);
            }
        }
        3..=6 => write(fs, model, random, &path),
        7 => truncate(fs, model, random, &path),
        8 => {
            let removed = fs.unlink(at, name).is_ok();
            assert_eq!(removed, is_file(model, &path));
            if removed {
                model.remove(&path);
            }
        }
        9 => {
            let removed = fs.rmdir(at, name).is_ok();
            let empty = model.get(&path) == Some(&Node::Directory) && !has_children(model, &path);
            assert_eq!(removed, empty);
            if removed {
                model.remove(&path);
            }
        }
        _ => {
            let new = random_path(model, random);
            rename(fs, model, &path, &new);
        }
    }
}

fn is_file(model: &Model, path: &str) -> bool {
    matches!(model.get(path), Some(Node::File(_)))
}

fn write(fs: &mut Fs<'_>, model: &mut Model, random: &mut Random, path: &str) {
    let Some(Node::File(content)) = model.get_mut(path) else {
        return;
    };
    let offset = random.below(200_000) as usize;
    let length = random.below(30_000) as usize;
    let data = random.bytes(length);
    let ino = walk(fs, path).unwrap();
    write_all(fs, ino, offset as u64, &data).unwrap();
    if length > 0 {
        content.resize(content.len().max(offset + length), 0);
        content[offset..offset + length].copy_from_slice(&data);
    }
}

fn truncate(fs: &mut Fs<'_>, model: &mut Model, random: &mut Random, path: &str) {
    let Some(Node::File(content)) = model.get_mut(path) else {
        return;
    };
    let size = random.below(250_000) as usize;
    let ino = walk(fs, path).unwrap();
    fs.truncate(ino, size as u64).unwrap();
    content.resize(size, 0);
}

fn rename(fs: &mut Fs<'_>, model: &mut Model, old: &str, new: &str) {
    let ((old_dir, old_name), (new_dir, new_name)) = (parent(old), parent(new));
    let (old_at, new_at) = (walk(fs, &old_dir).unwrap(), walk(fs, &new_dir).unwrap());
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
    assert_eq!(done.is_ok(), allowed, "{old} to {new}: {done:?}");
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
}

fn compare(fs: &mut Fs<'_>, model: &Model) {
    let mut seen = 0;
    let mut dirs = vec![(String::new(), fs.root())];
    while let Some((path, dir)) = dirs.pop() {
        for (name, ino) in list(fs, dir).unwrap() {
            let path = format!("{path}/{}", String::from_utf8(name).unwrap());
            if path == "/lost+found" {
                continue;
            }
            seen += 1;
            match &model[&path] {
                Node::File(content) => assert!(read_all(fs, ino).unwrap() == *content, "{path}"),
                Node::Directory => {
                    assert_eq!(fs.getattr(ino).unwrap().kind, FileKind::Directory);
                    dirs.push((path, ino));
                }
            }
        }
    }
    assert_eq!(seen, model.len());
}

#[test]
fn random_work_agrees_with_the_model() {
    for (seed, block_size, budget) in [
        (1, 1024, 0),
        (2, 2048, 1 << 20),
        (3, 4096, 0),
        (4, 1024, 8 << 20),
    ] {
        let disk = Disk::new(empty(block_size, (48 << 20) / block_size));
        let mut random = Random(seed);
        let mut model = Model::new();
        for _ in 0..4 {
            let mut fs = FileSystem::mount(&disk, options(false, budget)).unwrap();
            for n in 0..300 {
                step(&mut fs, &mut model, &mut random);
                if n % 100 == 99 {
                    compare(&mut fs, &model);
                    fs.sync().unwrap();
                    assert_clean(&disk.image());
                }
            }
            fs.unmount().unwrap();
            assert_clean(&disk.image());
            assert_eq!(fs.create(2, b"late", 0o644), Err(Error::ReadOnly));
        }
    }
}
