//! Paths, right and wrong, over a small tree.

use super::*;
use alloc::format;
use alloc::string::String;

/// Absolute paths with what they are: `d`, `f`, or `l` and a target.
struct Sample(Vec<(String, char, String)>);

#[derive(Debug, PartialEq)]
struct Broken;

impl Tree for Sample {
    type Node = String;
    type Error = Broken;

    fn root(&self) -> Result<String, Broken> {
        Ok("/".into())
    }

    fn look_up(&self, directory: &String, name: &[u8]) -> Result<Option<String>, Broken> {
        let name = core::str::from_utf8(name).map_err(|_| Broken)?;
        if name == "broken" {
            return Err(Broken);
        }
        if name == ".." {
            let cut = directory.rfind('/').unwrap_or(0).max(1);
            return Ok(Some(directory[..cut].into()));
        }
        let path = format!("{}/{name}", directory.trim_end_matches('/'));
        Ok(self
            .0
            .iter()
            .find(|node| node.0 == path)
            .map(|node| node.0.clone()))
    }

    fn target(&self, node: &String) -> Result<Option<Vec<u8>>, Broken> {
        let node = self.0.iter().find(|other| other.0 == *node);
        Ok(node
            .filter(|node| node.1 == 'l')
            .map(|node| node.2.clone().into_bytes()))
    }

    fn is_directory(&self, node: &String) -> bool {
        node == "/"
            || self
                .0
                .iter()
                .any(|other| other.0 == *node && other.1 == 'd')
    }
}

fn sample() -> Sample {
    let mut nodes = Vec::new();
    for (path, kind, target) in [
        ("/a", 'd', ""),
        ("/a/b", 'd', ""),
        ("/a/b/f", 'f', ""),
        ("/a/up", 'l', ".."),
        ("/abs", 'l', "/a/b"),
        ("/rel", 'l', "a/b/f"),
        ("/new", 'l', "a/made"),
        ("/self", 'l', "self"),
        ("/ping", 'l', "pong/x"),
        ("/pong", 'l', "ping"),
        ("/empty", 'l', ""),
    ] {
        nodes.push((path.into(), kind, target.into()));
    }
    Sample(nodes)
}

/// The same tree, which goes by several names at once.
struct Leaping(Sample);

impl Tree for Leaping {
    type Node = String;
    type Error = Broken;

    fn root(&self) -> Result<String, Broken> {
        self.0.root()
    }

    fn look_up(&self, directory: &String, name: &[u8]) -> Result<Option<String>, Broken> {
        assert!(name == b"..", "{directory} {name:?} is leapt to");
        self.0.look_up(directory, name)
    }

    fn target(&self, node: &String) -> Result<Option<Vec<u8>>, Broken> {
        self.0.target(node)
    }

    fn is_directory(&self, node: &String) -> bool {
        self.0.is_directory(node)
    }

    fn leap(&self, directory: &String, path: &[u8]) -> Result<Option<Leap<String>>, Broken> {
        let (mut at, mut leap) = (0, None);
        let mut directory = directory.clone();
        for name in path.split(|&byte| byte == b'/') {
            let used = at + name.len();
            at = used + 1;
            match name {
                b"" => continue,
                b"." | b".." => break,
                _ => {}
            }
            let node = self.0.look_up(&directory, name)?;
            let next = node.clone().filter(|node| self.is_directory(node));
            let directory_of_it = directory.clone();
            leap = Some(Leap {
                used,
                directory: directory_of_it,
                node,
            });
            match next {
                Some(next) => directory = next,
                None => break,
            }
        }
        Ok(leap)
    }
}

fn go(from: &str, path: &str, follow: bool) -> Result<Found<String>, WalkError<Broken>> {
    let start = Place {
        node: from.into(),
        path: from.into(),
    };
    let found = walk(&sample(), &start, path.as_bytes(), follow);
    let leapt = walk(&Leaping(sample()), &start, path.as_bytes(), follow);
    assert_eq!(found, leapt, "{from} {path}");
    found
}

/// The path that `path` leads to, and whether something is there.
fn leads(from: &str, path: &str) -> (String, bool) {
    let found = go(from, path, true).expect("a path that works");
    (
        String::from_utf8(found.path()).expect("text"),
        found.node.is_some(),
    )
}

#[test]
fn plain_paths_lead_where_they_say() {
    assert_eq!(leads("/", "a/b/f"), ("/a/b/f".into(), true));
    assert_eq!(leads("/a", "b"), ("/a/b".into(), true));
    assert_eq!(leads("/a", "/a//b///f"), ("/a/b/f".into(), true));
    assert_eq!(leads("/a/b", "./../b/./f"), ("/a/b/f".into(), true));
    assert_eq!(leads("/a/b", ".."), ("/a".into(), true));
    assert_eq!(leads("/", "/"), ("/".into(), true));
    assert_eq!(leads("/", "a/none"), ("/a/none".into(), false));
}

#[test]
fn above_the_root_is_the_root() {
    assert_eq!(leads("/a", "../../../a"), ("/a".into(), true));
    assert_eq!(leads("/", ".."), ("/".into(), true));
}

#[test]
fn links_are_followed_and_vanish_from_the_path() {
    assert_eq!(leads("/", "rel"), ("/a/b/f".into(), true));
    assert_eq!(leads("/", "abs/f"), ("/a/b/f".into(), true));
    assert_eq!(leads("/", "a/up/a/b"), ("/a/b".into(), true));
    assert_eq!(leads("/", "abs/.."), ("/a".into(), true));
    assert_eq!(leads("/", "new"), ("/a/made".into(), false));
}

#[test]
fn a_last_link_is_kept_when_asked() {
    let found = go("/", "rel", false).expect("there");
    assert_eq!(found.node.as_deref(), Some("/rel"));
    let found = go("/", "abs/", false).expect("there");
    assert_eq!(found.node.as_deref(), Some("/a/b"));
    assert!(found.must_be_directory);
}

#[test]
fn a_slash_at_the_end_is_reported() {
    assert!(go("/", "a/", true).expect("there").must_be_directory);
    assert!(go("/", "rel/", true).expect("there").must_be_directory);
    assert!(!go("/", "a", true).expect("there").must_be_directory);
}

#[test]
fn loops_end() {
    assert_eq!(go("/", "self", true), Err(WalkError::Loop));
    assert_eq!(go("/", "ping", true), Err(WalkError::Loop));
    assert!(go("/", "self", false).is_ok());
}

#[test]
fn what_is_missing_or_no_directory_on_the_way_is_an_error() {
    assert_eq!(go("/", "", true), Err(WalkError::NotFound));
    assert_eq!(go("/", "none/f", true), Err(WalkError::NotFound));
    assert_eq!(go("/", "empty", true), Err(WalkError::NotFound));
    assert_eq!(go("/", "a/b/f/g", true), Err(WalkError::NotDirectory));
    assert_eq!(go("/", "a/b/f/..", true), Err(WalkError::NotDirectory));
    assert_eq!(go("/", "broken", true), Err(WalkError::Tree(Broken)));
}

#[test]
fn leaps_lead_where_single_steps_do() {
    let names = [
        "a", "b", "f", "up", "abs", "rel", "none", "..", ".", "", "self",
    ];
    let count = names.len();
    for n in 0..count.pow(4) {
        let picked = [n, n / count, n / count.pow(2), n / count.pow(3)];
        let path = picked.map(|at| names[at % count]).join("/");
        for follow in [false, true] {
            let _ = go("/a", &path, follow);
            let _ = go("/", path.trim_end_matches('/'), follow);
        }
    }
}

#[test]
fn too_long_is_an_error() {
    let long = "a/../".repeat(PATH_LIMIT / 5 + 1);
    assert_eq!(go("/", &long, true), Err(WalkError::TooLong));
}

#[test]
fn file_names() {
    assert_eq!(file_name(b"/bin/ls"), b"ls");
    assert_eq!(file_name(b"ls//"), b"ls");
    assert_eq!(file_name(b"//"), b"");
}

/// The same tree with a link that leads to `/a/b` itself, a directory where nothing may be looked
/// up, and links that nobody may follow at the end of a path.
struct Guarded(Sample);

impl Tree for Guarded {
    type Node = String;
    type Error = Broken;

    fn root(&self) -> Result<String, Broken> {
        self.0.root()
    }

    fn look_up(&self, directory: &String, name: &[u8]) -> Result<Option<String>, Broken> {
        match name {
            b"magic" => Ok(Some("magic".into())),
            name => self.0.look_up(directory, name),
        }
    }

    fn target(&self, node: &String) -> Result<Option<Vec<u8>>, Broken> {
        self.0.target(node)
    }

    fn is_directory(&self, node: &String) -> bool {
        self.0.is_directory(node)
    }

    fn enter(&self, directory: &String) -> Result<(), Broken> {
        (directory != "/a").then_some(()).ok_or(Broken)
    }

    fn follow(&self, directory: &String, link: &String) -> Result<(), Broken> {
        assert_eq!(directory, "/");
        (link != "/rel").then_some(()).ok_or(Broken)
    }

    fn jump(&self, node: &String) -> Result<Option<Place<String>>, Broken> {
        let place = Place {
            node: "/a/b".into(),
            path: Vec::new(),
        };
        Ok((node == "magic").then_some(place))
    }
}

#[test]
fn a_tree_may_refuse_and_lead_elsewhere() {
    let tree = Guarded(sample());
    let root = Place {
        node: "/".into(),
        path: b"/".to_vec(),
    };
    let go = |path: &str, follow| walk(&tree, &root, path.as_bytes(), follow);
    let refused = Err(WalkError::Tree(Broken));
    // Also to look up `.` and `..` may be refused.
    for path in ["a/b", "a/.", "a/..", "a/nothing", "new"] {
        assert_eq!(go(path, true), refused, "{path}");
    }
    assert!(go("a", true).is_ok() && go("rel", false).is_ok());
    // In the middle of a path links are followed, wherever they are.
    assert_eq!(go("rel", true), refused);
    assert_eq!(go("abs/f", true), refused);
    // A link to something itself: at the end, in the middle, and not followed.
    let led = go("magic", true).expect("it leads somewhere");
    assert_eq!((led.node, &led.name[..]), (Some("/a/b".into()), &b""[..]));
    let led = go("magic/f", true).expect("it leads somewhere");
    assert_eq!(led.node, Some("/a/b/f".into()));
    // Its path is not known, and so that of what is below is not.
    assert_eq!((led.path(), &led.name[..]), (Vec::new(), &b"f"[..]));
    let led = go("magic", false).expect("the link itself");
    assert_eq!(led.path(), b"/magic");
    assert_eq!(led.node, Some("magic".into()));
}
