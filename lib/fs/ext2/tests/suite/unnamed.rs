//! The directory of files without a name: nobody sees it, the host finds nothing wrong with it, and
//! nothing that a user makes is taken for it.

use ext2::{Error, FileKind};

use crate::host::*;

const NAME: &[u8] = b".trefoil-unnamed";

fn names(fs: &mut Fs<'_>, dir: u32) -> Vec<Vec<u8>> {
    let mut names: Vec<_> = list(fs, dir).unwrap().into_iter().map(|of| of.0).collect();
    names.sort();
    names
}

/// With a journal and without, with indexes and without.
fn images() -> [Vec<u8>; 3] {
    [
        "-t ext2 -b 1024",
        "-t ext3 -b 1024",
        "-t ext2 -b 1024 -O ^filetype,^dir_index",
    ]
    .map(|options| make_image(options, None, 8192))
}

#[test]
fn it_is_made_once_and_found_again() {
    for image in images() {
        let disk = Disk::new(image);
        let mut fs = mount(&disk);
        assert_eq!(fs.unnamed(false), Ok(None));
        let made = fs.unnamed(true).unwrap().unwrap();
        assert_eq!(fs.unnamed(true), Ok(Some(made)));
        fs.commit().unwrap();
        drop(fs);
        let mut fs = mount(&disk);
        assert_eq!(fs.unnamed(false), Ok(Some(made)));
        let root = fs.root();
        let file = fs.create(root, b"f", 0o644).unwrap();
        fs.rename(root, b"f", made, b"5").unwrap();
        fs.sync().unwrap();
        assert_clean(&disk.image());
        drop(fs);
        let mut fs = mount(&disk);
        assert_eq!(fs.lookup(made, b"5"), Ok(file));
        fs.unlink(made, b"5").unwrap();
        fs.unmount().unwrap();
        assert_clean(&disk.image());
    }
}

#[test]
fn no_name_leads_to_it_and_no_listing_has_it() {
    for image in images() {
        let disk = Disk::new(image);
        let mut fs = mount(&disk);
        let root = fs.root();
        let made = fs.unnamed(true).unwrap().unwrap();
        assert_eq!(fs.lookup(root, NAME), Err(Error::NotFound));
        assert_eq!(fs.rmdir(root, NAME), Err(Error::NotFound));
        assert_eq!(fs.unlink(root, NAME), Err(Error::NotFound));
        assert_eq!(fs.rename(root, NAME, root, b"x"), Err(Error::NotFound));
        fs.create(root, b"y", 0o644).unwrap();
        assert_eq!(fs.exchange(root, NAME, root, b"y"), Err(Error::NotFound));
        // One after the other: what is hidden must not look like the end.
        let mut seen = Vec::new();
        let mut cookie = 0;
        while let Some(entry) = fs.readdir(root, cookie, 1).unwrap().pop() {
            cookie = entry.next;
            seen.push(entry.name);
        }
        seen.sort();
        assert_eq!(seen, [&b"."[..], b"..", b"lost+found", b"y"]);
        assert_eq!(fs.lookup(made, b".."), Ok(root));
        fs.unmount().unwrap();
        assert_clean(&disk.image());
    }
}

/// Whoever wants its name gets it, in each way that names are made.
#[test]
fn it_makes_way_for_who_wants_its_name() {
    type Make = fn(&mut Fs<'_>, u32) -> Result<(), Error>;
    let ways: [Make; 7] = [
        |fs, root| fs.create(root, NAME, 0o644).map(drop),
        |fs, root| fs.mkdir(root, NAME, 0o755).map(drop),
        |fs, root| fs.symlink(root, NAME, b"f").map(drop),
        |fs, root| fs.mknod(root, NAME, FileKind::Pipe, 0o644, 0).map(drop),
        |fs, root| {
            let file = fs.lookup(root, b"f")?;
            fs.link(file, root, NAME)
        },
        |fs, root| fs.rename(root, b"d", root, NAME),
        |fs, root| fs.rename_to_new(root, b"f", root, NAME),
    ];
    for image in images() {
        for make in ways {
            let disk = Disk::new(image.clone());
            let mut fs = mount(&disk);
            let root = fs.root();
            fs.create(root, b"f", 0o644).unwrap();
            fs.mkdir(root, b"d", 0o755).unwrap();
            let hidden = fs.unnamed(true).unwrap().unwrap();
            let file = fs.create(hidden, b"5", 0o644).unwrap();
            make(&mut fs, root).unwrap();
            assert_eq!(fs.create(root, NAME, 0o644), Err(Error::Exists));
            assert_ne!(fs.lookup(root, NAME), Ok(hidden));
            fs.sync().unwrap();
            assert_clean(&disk.image());
            drop(fs);
            let mut fs = mount(&disk);
            assert_eq!(fs.unnamed(false), Ok(Some(hidden)));
            assert_eq!(fs.lookup(hidden, b"5"), Ok(file));
            assert!(names(&mut fs, root).contains(&NAME.to_vec()));
            assert_eq!(
                names(&mut fs, root)
                    .iter()
                    .filter(|name| name.starts_with(NAME))
                    .count(),
                1
            );
        }
    }
}

/// What fails leaves it where it was.
#[test]
fn it_makes_no_way_for_what_fails() {
    let disk = Disk::new(images()[1].clone());
    let mut fs = mount(&disk);
    let root = fs.root();
    fs.unnamed(true).unwrap();
    assert_eq!(fs.rename(root, b"none", root, NAME), Err(Error::NotFound));
    fs.unmount().unwrap();
    let mut image = disk.image();
    let root = debugfs(&mut image, false, "ls -l /");
    assert!(root.contains(".trefoil-unnamed\n"), "{root}");
    assert!(!root.contains(".trefoil-unnamed-"), "{root}");
}

/// Directories that a user of another system has called so, even with one of the flags, are his.
#[test]
fn what_users_have_made_is_no_such_directory() {
    for flags in ["0x0", "0x10", "0x800000", "0x1000"] {
        let mut image = images()[0].clone();
        let script = format!(
            "mkdir .trefoil-unnamed\nmkdir .trefoil-unnamed/theirs\nmkdir .trefoil-unnamed-1\n\
             mkdir .trefoil-orphan-5\nsif .trefoil-unnamed flags {flags}\n"
        );
        debugfs_script(&mut image, &script);
        let disk = Disk::new(image);
        let mut fs = mount(&disk);
        let root = fs.root();
        assert_eq!(fs.unnamed(false), Ok(None), "{flags}");
        let theirs = fs.lookup(root, NAME).unwrap();
        let made = fs.unnamed(true).unwrap().unwrap();
        assert_ne!(made, theirs);
        let all = names(&mut fs, root);
        for name in [
            ".trefoil-unnamed",
            ".trefoil-unnamed-1",
            ".trefoil-orphan-5",
        ] {
            assert!(all.contains(&name.as_bytes().to_vec()), "{name}");
        }
        assert!(fs.lookup(theirs, b"theirs").is_ok());
        assert_eq!(fs.lookup(root, b".trefoil-unnamed-2"), Err(Error::NotFound));
        fs.rmdir(theirs, b"theirs").unwrap();
        fs.rmdir(root, NAME).unwrap();
    }
}

/// A file, and a directory elsewhere, are none, whatever their flags; of two only one is.
#[test]
fn what_an_image_claims_is_looked_at() {
    let mut image = images()[0].clone();
    let script = "mkdir a\nmkdir a/.trefoil-unnamed\nsif a/.trefoil-unnamed flags 0x800010\n\
                  symlink .trefoil-unnamed-1 a\nsif .trefoil-unnamed-1 flags 0x800010\n\
                  mkdir .trefoil-unnamed-2\nsif .trefoil-unnamed-2 flags 0x800010\n\
                  mkdir .trefoil-unnamed-3\nsif .trefoil-unnamed-3 flags 0x800010\n";
    debugfs_script(&mut image, script);
    let disk = Disk::new(image);
    let mut fs = mount(&disk);
    let root = fs.root();
    let found = fs.unnamed(false).unwrap().unwrap();
    assert_eq!(fs.getattr(found).unwrap().kind, FileKind::Directory);
    let all = names(&mut fs, root);
    assert_eq!(all.iter().filter(|name| name.starts_with(NAME)).count(), 2);
    let a = fs.lookup(root, b"a").unwrap();
    assert!(fs.lookup(a, NAME).is_ok());
}

/// The root directory is none, whatever its flags and names.
#[test]
fn the_root_is_no_such_directory() {
    let mut image = images()[0].clone();
    let script = "ln <2> .trefoil-unnamed\nsif <2> flags 0x800010\n";
    debugfs_script(&mut image, script);
    let disk = Disk::new(image);
    let mut fs = mount(&disk);
    let root = fs.root();
    assert_eq!(fs.unnamed(false), Ok(None));
    assert_eq!(fs.lookup(root, NAME), Ok(root));
    assert_eq!(fs.lookup(root, b"."), Ok(root));
}

/// On a disk that cannot be changed it is not made, and one that is there is hidden still.
#[test]
fn a_read_only_mount_makes_none() {
    let image = images()[1].clone();
    let none = Disk::new(image.clone());
    let mut fs = Fs::mount(&none, options(true, 1 << 20)).unwrap();
    assert_eq!(fs.unnamed(true), Err(Error::ReadOnly));
    let disk = Disk::new(image);
    let mut fs = mount(&disk);
    let made = fs.unnamed(true).unwrap();
    fs.unmount().unwrap();
    drop(fs);
    let mut fs = Fs::mount(&disk, options(true, 1 << 20)).unwrap();
    assert_eq!(fs.unnamed(true), Ok(made));
    let root = fs.root();
    assert_eq!(fs.lookup(root, NAME), Err(Error::NotFound));
}
