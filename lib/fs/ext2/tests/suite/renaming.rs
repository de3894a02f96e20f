//! Renaming in all its cases.

use ext2::Error;

use crate::host::*;

/// An image with `/a/b/c`, `/x/y`, files `/f` and `/g`, and a full directory `/full`.
fn with_tree(test: impl FnOnce(&mut Fs<'_>)) {
    let disk = Disk::new(empty(1024, 8192));
    let mut fs = mount(&disk);
    let root = fs.root();
    let a = fs.mkdir(root, b"a", 0o755).unwrap();
    let b = fs.mkdir(a, b"b", 0o755).unwrap();
    fs.mkdir(b, b"c", 0o755).unwrap();
    let x = fs.mkdir(root, b"x", 0o755).unwrap();
    fs.mkdir(x, b"y", 0o755).unwrap();
    for name in [b"f", b"g"] {
        let ino = fs.create(root, name, 0o644).unwrap();
        fs.write(ino, 0, name).unwrap();
    }
    test(&mut fs);
    fs.sync().unwrap();
    assert_clean(&disk.image());
    fs.unmount().unwrap();
    assert_clean(&disk.image());
}

/// Renames by path.
fn rename(fs: &mut Fs<'_>, old: &str, new: &str) -> Result<(), Error> {
    let split = |path: &str| {
        path.rsplit_once('/')
            .map(|(dir, name)| (dir.to_owned(), name.to_owned()))
    };
    let ((old_dir, old_name), (new_dir, new_name)) = (split(old).unwrap(), split(new).unwrap());
    let (old_dir, new_dir) = (walk(fs, &old_dir)?, walk(fs, &new_dir)?);
    fs.rename(old_dir, old_name.as_bytes(), new_dir, new_name.as_bytes())
}

#[test]
fn files_move_and_replace_files() {
    with_tree(|fs| {
        rename(fs, "/f", "/h").unwrap();
        assert_eq!(walk(fs, "f"), Err(Error::NotFound));
        rename(fs, "/h", "/a/b/h").unwrap();
        rename(fs, "/a/b/h", "/g").unwrap();
        let g = walk(fs, "g").unwrap();
        assert_eq!(read_all(fs, g).unwrap(), b"f");
        assert_eq!(fs.getattr(g).unwrap().links, 1);
    });
}

#[test]
fn directories_move_with_their_parent_links() {
    with_tree(|fs| {
        let links = |fs: &mut Fs<'_>, path: &str| {
            let ino = walk(fs, path).unwrap();
            fs.getattr(ino).unwrap().links
        };
        rename(fs, "/a/b", "/x/b").unwrap();
        assert_eq!(
            (links(fs, "a"), links(fs, "x"), links(fs, "x/b")),
            (2, 4, 3)
        );
        assert_eq!(walk(fs, "x/b/.."), walk(fs, "x"));
        rename(fs, "/x/b/c", "/x/y").unwrap();
        assert_eq!((links(fs, "x"), links(fs, "x/b")), (4, 2));
        rename(fs, "/x/b", "/x/y").unwrap();
        assert_eq!(links(fs, "x"), 3);
        rename(fs, "/x/y", "/x/z").unwrap();
        assert_eq!((links(fs, "x"), walk(fs, "x/y")), (3, Err(Error::NotFound)));
    });
}

#[test]
fn targets_that_do_not_give_way_are_kept() {
    with_tree(|fs| {
        assert_eq!(rename(fs, "/f", "/a"), Err(Error::IsDirectory));
        assert_eq!(rename(fs, "/a", "/f"), Err(Error::NotDirectory));
        assert_eq!(rename(fs, "/x", "/a"), Err(Error::NotEmpty));
        assert_eq!(rename(fs, "/a/b/c", "/a"), Err(Error::NotEmpty));
        assert_eq!(rename(fs, "/none", "/f"), Err(Error::NotFound));
        assert!(walk(fs, "a/b/c").is_ok() && walk(fs, "f").is_ok());
    });
}

#[test]
fn a_directory_never_comes_to_lie_in_itself() {
    with_tree(|fs| {
        assert!(matches!(
            rename(fs, "/a", "/a/b/c/a"),
            Err(Error::Invalid(_))
        ));
        assert!(matches!(rename(fs, "/a", "/a/a"), Err(Error::Invalid(_))));
        assert!(matches!(
            rename(fs, "/a/b", "/a/b/c"),
            Err(Error::Invalid(_))
        ));
        assert!(matches!(rename(fs, "/a/.", "/z"), Err(Error::Invalid(_))));
        assert!(matches!(
            rename(fs, "/a/b/..", "/z"),
            Err(Error::Invalid(_))
        ));
        assert!(matches!(rename(fs, "/a", "/x/.."), Err(Error::Invalid(_))));
    });
}

#[test]
fn names_of_one_inode_are_left_alone() {
    with_tree(|fs| {
        let root = fs.root();
        let f = walk(fs, "f").unwrap();
        fs.link(f, root, b"also").unwrap();
        rename(fs, "/f", "/also").unwrap();
        rename(fs, "/f", "/f").unwrap();
        rename(fs, "/a", "/a").unwrap();
        assert_eq!((walk(fs, "f"), walk(fs, "also")), (Ok(f), Ok(f)));
        assert_eq!(fs.getattr(f).unwrap().links, 2);
    });
}

#[test]
fn a_replaced_file_stays_while_it_is_open() {
    with_tree(|fs| {
        let g = walk(fs, "g").unwrap();
        fs.open(g).unwrap();
        rename(fs, "/f", "/g").unwrap();
        assert_eq!(read_all(fs, g).unwrap(), b"g");
        fs.close(g).unwrap();
        assert_eq!(fs.getattr(g), Err(Error::NotFound));
    });
}

#[test]
fn a_directory_takes_as_many_directories_as_links_allow() {
    let disk = Disk::new(make_image("-t ext2 -b 4096 -N 40000", None, 65536));
    let mut fs = mount(&disk);
    let root = fs.root();
    let dir = fs.mkdir(root, b"full", 0o755).unwrap();
    // A directory of 32,000 links on a short way: the count is set where it stands.
    let set = format!("set_inode_field <{dir}> links_count 32000");
    fs.mkdir(root, b"one", 0o755).unwrap();
    fs.unmount().unwrap();
    let mut image = disk.image();
    debugfs(&mut image, true, &set);
    let disk = Disk::new(image);
    let mut fs = mount(&disk);
    assert_eq!(fs.mkdir(dir, b"more", 0o755), Err(Error::TooManyLinks));
    assert_eq!(
        fs.rename(root, b"one", dir, b"one"),
        Err(Error::TooManyLinks)
    );
    assert!(fs.create(dir, b"file", 0o644).is_ok());
}

fn split(fs: &mut Fs<'_>, path: &str) -> (u32, Vec<u8>) {
    let (dir, name) = path.rsplit_once('/').unwrap();
    (walk(fs, dir).unwrap(), name.as_bytes().to_vec())
}

fn exchange(fs: &mut Fs<'_>, one: &str, other: &str) -> Result<(), Error> {
    let (one, other) = (split(fs, one), split(fs, other));
    fs.exchange(one.0, &one.1, other.0, &other.1)
}

#[test]
fn files_and_directories_exchange_their_names() {
    with_tree(|fs| {
        let numbers = |fs: &mut Fs<'_>, paths: [&str; 2]| paths.map(|path| walk(fs, path).unwrap());
        let links = |fs: &mut Fs<'_>, path: &str| {
            let ino = walk(fs, path).unwrap();
            fs.getattr(ino).unwrap().links
        };
        let [f, g] = numbers(fs, ["f", "g"]);
        exchange(fs, "/f", "/g").unwrap();
        assert_eq!(numbers(fs, ["f", "g"]), [g, f]);
        // A file and a directory of different directories.
        let [b, f] = numbers(fs, ["a/b", "f"]);
        exchange(fs, "/f", "/a/b").unwrap();
        assert_eq!(numbers(fs, ["a/b", "f"]), [f, b]);
        assert_eq!(walk(fs, "f/.."), walk(fs, "/"));
        assert_eq!((links(fs, "a"), links(fs, "f"), links(fs, "")), (2, 3, 6));
        // Two directories.
        let [c, y] = numbers(fs, ["f/c", "x/y"]);
        exchange(fs, "/f/c", "/x/y").unwrap();
        assert_eq!(numbers(fs, ["f/c", "x/y"]), [y, c]);
        assert_eq!(walk(fs, "x/y/.."), walk(fs, "x"));
        assert_eq!((links(fs, "x"), links(fs, "f")), (3, 3));
    });
}

#[test]
fn what_cannot_be_exchanged_stays() {
    with_tree(|fs| {
        let before = walk(fs, "a/b");
        assert_eq!(exchange(fs, "/f", "/none"), Err(Error::NotFound));
        assert_eq!(exchange(fs, "/none", "/f"), Err(Error::NotFound));
        let inside = Error::Invalid("directory moved into itself");
        assert_eq!(exchange(fs, "/a", "/a/b/c"), Err(inside));
        assert_eq!(exchange(fs, "/a/b/c", "/a"), Err(inside));
        let root = fs.root();
        assert!(fs.exchange(root, b"f", root, b"..").is_err());
        let f = walk(fs, "f").unwrap();
        fs.link(f, root, b"also").unwrap();
        exchange(fs, "/f", "/also").unwrap();
        assert_eq!((walk(fs, "f"), walk(fs, "a/b")), (Ok(f), before));
    });
}

#[test]
fn a_rename_that_must_not_replace_does_not() {
    with_tree(|fs| {
        let root = fs.root();
        assert_eq!(fs.rename_to_new(root, b"f", root, b"g"), Err(Error::Exists));
        assert_eq!(fs.rename_to_new(root, b"f", root, b"f"), Err(Error::Exists));
        let f = walk(fs, "f");
        fs.rename_to_new(root, b"f", root, b"new").unwrap();
        assert_eq!((walk(fs, "new"), walk(fs, "f")), (f, Err(Error::NotFound)));
        assert_eq!(
            fs.rename_to_new(root, b"f", root, b"h"),
            Err(Error::NotFound)
        );
    });
}
