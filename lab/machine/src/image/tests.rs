//! Images that were made to do harm, or are damaged.

use super::*;
use crate::disk;

/// A folder for one test, and an image with a file, a link and two folders in it.
fn image(name: &str) -> (PathBuf, PathBuf) {
    image_with(name, &[])
}

/// The same, with more options for mke2fs.
fn image_with(name: &str, options: &[&str]) -> (PathBuf, PathBuf) {
    let folder = std::env::temp_dir().join(format!("trefoil-image-{name}-{}", std::process::id()));
    let root = folder.join("root");
    fs::create_dir_all(root.join("one/two")).expect("made");
    fs::write(root.join("one/placeholder"), "content\n").expect("written");
    fs::write(root.join("one/another-one"), "other\n").expect("written");
    std::os::unix::fs::symlink("/etc/passwd", root.join("one/link")).expect("made");
    let image = folder.join("image");
    let options = [&["-b", "1024"], options].concat();
    disk::make_with(&root, &image, "4M", &options).expect("made");
    (folder, image)
}

/// Gives the file `/one/placeholder` another name of the same length.
fn rename(image: &Path, name: &[u8]) {
    const OLD: &[u8] = b"placeholder";
    assert_eq!(name.len(), OLD.len());
    let mut bytes = fs::read(image).expect("read");
    let places: Vec<_> = (0..bytes.len() - OLD.len())
        .filter(|at| bytes[*at..].starts_with(OLD))
        .collect();
    assert_eq!(places.len(), 1, "in one entry of a folder");
    bytes[places[0]..][..OLD.len()].copy_from_slice(name);
    fs::write(image, bytes).expect("written");
}

fn tree(file: &Path) -> Result<Tree> {
    Image::open(file)?.tree("/one")
}

/// Both ways to read it refuse it, with this in the message; and the folder has nothing new in it.
fn refused(folder: &Path, file: &Path, why: &str) {
    let listed = || {
        let entries = fs::read_dir(folder).expect("read");
        let names = entries.map(|entry| entry.expect("read").file_name());
        names.collect::<BTreeSet<_>>()
    };
    let before = listed();
    for read in [tree(file), by_host(file, "/one", folder)] {
        let error = format!("{:#}", read.expect_err("it is hostile"));
        assert!(error.contains(why), "expected {why:?} in {error:?}");
        assert!(!error.contains(char::is_control), "{error:?}");
    }
    assert_eq!(listed(), before);
    fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn a_tree_is_read_in_both_ways() {
    let (folder, file) = image("plain");
    let expected: Tree = [
        ("another-one", Node::File(b"other\n".into())),
        ("link", Node::Link(b"/etc/passwd".into())),
        ("placeholder", Node::File(b"content\n".into())),
        ("two", Node::Folder),
    ]
    .map(|(path, node)| (PathBuf::from(path), node))
    .into();
    assert_eq!(tree(&file).expect("plain"), expected);
    assert_eq!(by_host(&file, "/one", &folder).expect("plain"), expected);
    let mut image = Image::open(&file).expect("plain");
    assert_eq!(image.file("/one/another-one").expect("there"), b"other\n");
    for (path, why) in [
        ("/one/link", "no file but a Symlink"),
        ("/one/link/root", "no /one/link/root"),
        ("/one", "no file but a Directory"),
        ("/none", "no /none"),
    ] {
        let error = format!("{:#}", image.file(path).expect_err(path));
        assert!(error.contains(why), "{path}: {error}");
        assert!(file_by_host(&file, path, &folder).is_err(), "{path}");
    }
    fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn names_that_lead_out_of_their_folder_are_refused() {
    for (number, name) in [
        &b"../../evil1"[..],
        b"/etc/shadow",
        b"a/../../b/c",
        b"placeholde\0",
    ]
    .into_iter()
    .enumerate()
    {
        let (folder, file) = image(&format!("name{number}"));
        rename(&file, name);
        refused(&folder, &file, "is no name of a file");
    }
}

/// Where folders may have an index the library lists each name once.
#[test]
fn a_name_that_is_there_twice_is_refused() {
    let (folder, file) = image_with("twice", &["-O", "^dir_index"]);
    rename(&file, b"another-one");
    refused(&folder, &file, "it has \"another-one\" twice");
}

/// A terminal would obey some of them, and debugfs take one for a further command.
#[test]
fn names_with_control_characters_are_read_and_shown_escaped() {
    let (folder, file) = image("control");
    let name = b"a\x1b[2J\n\"rm b";
    rename(&file, name);
    let path = PathBuf::from(OsStr::from_bytes(name));
    for read in [tree(&file), by_host(&file, "/one", &folder)] {
        let read = read.expect("any byte may be in a name");
        assert_eq!(read[&path], Node::File(b"content\n".into()));
    }
    disk::change(&file, "sif <14> mode 010644\nsif <13> mode 010644\n").expect("changed");
    refused(&folder, &file, "is a Pipe");
}

#[test]
fn folders_with_two_names_are_refused() {
    for (number, script) in [
        "ln /one/two /one/again\n",
        "ln /one /one/two/loop\n",
        "ln / /one/up\n",
    ]
    .into_iter()
    .enumerate()
    {
        let (folder, file) = image(&format!("loop{number}"));
        disk::change(&file, script).expect("changed");
        refused(&folder, &file, "has another name already");
    }
}

/// `..` of a folder leads to another one than that it was found in.
#[test]
fn a_folder_whose_parent_is_another_is_refused() {
    let (folder, file) = image("parent");
    disk::change(
        &file,
        "ln /one/two /moved\nunlink /one/two\nmkdir /one/b\nln /moved /one/b/two\nunlink /moved\n",
    )
    .expect("changed");
    refused(&folder, &file, "its entry \"..\" leads astray");
}

#[test]
fn nodes_of_devices_and_pipes_are_refused() {
    for (script, why) in [
        ("cd /one\nmknod tty c 5 0\n", "CharacterDevice"),
        ("cd /one/two\nmknod disk b 8 0\n", "BlockDevice"),
        ("cd /one\nmknod pipe p\n", "Pipe"),
    ] {
        let (folder, file) = image(why);
        disk::change(&file, script).expect("changed");
        refused(&folder, &file, why);
    }
}

#[test]
fn a_length_without_sense_is_refused() {
    let (folder, file) = image("length");
    disk::change(&file, "sif /one/placeholder size 0x7fffffff\n").expect("changed");
    refused(&folder, &file, "2147483647 bytes are more than is read");
}

#[test]
fn folders_too_deep_and_too_many_names_are_refused() {
    let (folder, file) = image("deep");
    let deep: String = (0..MOST.levels).map(|_| "mkdir d\ncd d\n").collect();
    disk::change(&file, &format!("cd /one\n{deep}")).expect("changed");
    assert_eq!(tree(&file).expect("just so deep").len(), 4 + MOST.levels);
    let mut image = Image::open(&file).expect("plain");
    image.left.names = 10;
    let error = format!("{:#}", image.tree("/one").expect_err("more than ten"));
    assert!(error.contains("more names than are read"), "{error}");
    let mut image = Image::open(&file).expect("plain");
    image.left.levels = 100;
    let error = format!("{:#}", image.tree("/one").expect_err("deeper"));
    assert!(error.contains("folders too deep"), "{error}");
    fs::remove_dir_all(folder).expect("removed");
}

/// The host's tool does not see what stands in a journal, so it is not asked.
#[test]
fn what_stands_in_a_journal_is_read() {
    let (folder, _) = image("journal");
    let file = folder.join("journal");
    let options = ["-b", "1024", "-j"];
    disk::make_with(&folder.join("root"), &file, "8M", &options).expect("made");
    let plain = tree(&file).expect("plain");
    disk::change(&file, "jo\njw -b 7000-7010 /dev/zero\njc\n").expect("written");
    let mut opened = Image::open(&file).expect("replayed");
    assert!(opened.fs.replayed().is_some());
    assert_eq!(opened.tree("/one").expect("plain"), plain);
    assert_eq!(by_host(&file, "/one", &folder).expect("plain"), plain);
    fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn what_is_put_is_there_and_clean() {
    let (folder, file) = image("put");
    let mut image = Image::open_to_change(&file).expect("plain");
    let deep = image.folder("/one/two/three/four").expect("there is room");
    assert!(image.folder("/one/link").is_err(), "a link is no folder");
    for name in ["../x", "..", "a/b", ""] {
        assert!(image.put(deep, name, 0o644, b"x").is_err(), "{name}");
    }
    let one = image.folder("/one").expect("there");
    assert!(image.put(one, "two", 0o644, b"x").is_err(), "a folder");
    image
        .put(one, "link", 0o644, b"no link any more")
        .expect("put");
    image.put(deep, "new", 0o755, &[7; 5000]).expect("put");
    image.finish().expect("written");
    assert_eq!(disk::complaints(&file).expect("checked"), None);
    let read = by_host(&file, "/one", &folder).expect("plain");
    assert_eq!(
        read[Path::new("two/three/four/new")],
        Node::File(vec![7; 5000])
    );
    assert_eq!(
        read[Path::new("link")],
        Node::File(b"no link any more".into())
    );
    fs::remove_dir_all(folder).expect("removed");
}
