//! A change of names that a shadow dies in, and what the next one makes of it: before it was tried,
//! and after it was done.

use std::cell::{Cell, RefCell};

use redo::{
    Action, Basis, Change, Engine, Front, Host, Kind, Lane, Node, Order, Outcome, Renaming, Report,
    Resumed, Target, intent,
};

use crate::model::{Error, Instance, ROOT, Result, Setting};

type Answer = (Option<Lane>, Option<[Outcome; 2]>);

/// One life of a shadow.
struct Desk {
    front: RefCell<Front<Instance>>,
    /// It dies when it has noted what it is about to do.
    dies: Cell<bool>,
    intended: RefCell<Option<(Option<Lane>, Vec<u8>)>>,
    answers: RefCell<Vec<Answer>>,
}

impl Desk {
    fn new(fs: &Instance) -> Self {
        Desk {
            front: RefCell::new(Front::new(fs.clone())),
            dies: Cell::new(false),
            intended: RefCell::default(),
            answers: RefCell::default(),
        }
    }
}

impl Host for Desk {
    type Target = Instance;

    fn front<R>(&self, work: impl FnOnce(&mut Front<Instance>) -> R) -> R {
        work(&mut self.front.borrow_mut())
    }

    fn instance(&self, _: u32) -> Result<Instance> {
        Err(Error::Failed)
    }

    fn recovered(&self, _: &Instance, _: &Report) -> bool {
        false
    }

    fn intend(
        &self,
        _: u64,
        lane: Option<Lane>,
        (action, basis): (&Change<Instance>, &Basis),
        _: &mut Option<Vec<u8>>,
    ) -> Result<()> {
        let packed = packed::<Instance>(action, basis);
        *self.intended.borrow_mut() = Some((lane, packed));
        match self.dies.get() {
            true => Err(Error::Failed),
            false => Ok(()),
        }
    }

    fn answer(&self, lane: Option<Lane>, outcome: Option<[Outcome; 2]>) {
        self.answers.borrow_mut().push((lane, outcome));
    }
}

/// A change as bytes.
pub fn packed<T: Target>(action: &Change<T>, basis: &Basis) -> Vec<u8> {
    let mut bytes = vec![0; intent::length(action)];
    intent::pack::<T>(action, basis, &mut bytes).unwrap();
    bytes
}

const LANE: Lane = Lane::new(3).unwrap();

fn name(text: &str) -> Vec<u8> {
    text.into()
}

fn create(text: &str, kind: Kind) -> Change<Instance> {
    Action::Create {
        name: name(text),
        kind,
        mode: 0o640,
    }
}

/// What is tried in a directory with the file `a` and the empty directories `d` and `e`; the name
/// of the second inode that it is about, if it is not the root.
fn changes() -> Vec<(Change<Instance>, Option<&'static str>)> {
    vec![
        (create("f", Kind::File), None),
        (create("g", Kind::Directory), None),
        (
            Action::Symlink {
                name: name("s"),
                target: name("a"),
            },
            None,
        ),
        (Action::Link { name: name("l") }, Some("a")),
        (Action::Unlink { name: name("a") }, None),
        (Action::RemoveDirectory { name: name("d") }, None),
        (
            Action::Rename {
                name: name("a"),
                new_name: name("b"),
            },
            None,
        ),
        (
            Action::Rename {
                name: name("d"),
                new_name: name("e"),
            },
            None,
        ),
        (
            Action::Exchange {
                name: name("a"),
                new_name: name("e"),
            },
            None,
        ),
        (
            Action::Node {
                name: name("n"),
                node: Node {
                    kind: 2,
                    mode: 0o620,
                    device: 0xf00_1234,
                },
            },
            None,
        ),
    ]
}

/// A file system, and a shadow in front of it.
fn scene() -> (Instance, Desk, Engine<Instance>) {
    let fs = Instance::new(1);
    for (text, kind) in [
        ("a", Kind::File),
        ("d", Kind::Directory),
        ("e", Kind::Directory),
    ] {
        fs.perform(&create(text, kind), [ROOT; 2]).unwrap();
    }
    let desk = Desk::new(&fs);
    (fs.clone(), desk, Engine::new(fs, 1 << 20))
}

fn tree(fs: &Instance) -> String {
    fs.disk.lock().unwrap().live.tree()
}

#[test]
fn a_change_is_made_once_whenever_its_shadow_dies() {
    for (number, (_, second)) in changes().into_iter().enumerate() {
        let mut trees = Vec::new();
        for was_done in [true, false] {
            let (fs, desk, mut engine) = scene();
            let second = second.map_or(ROOT, |of| fs.look_up(ROOT, &name(of)).unwrap());
            let (action, _) = changes().swap_remove(number);
            desk.dies.set(!was_done);
            engine.come_by(Some(LANE));
            let result = engine.change_now(&desk, action, [ROOT, second]);
            assert_eq!(result.is_ok(), was_done, "{number}: {result:?}");
            let told: Vec<_> = result
                .into_iter()
                .map(|it| (Some(LANE), Some([it; 2])))
                .collect();
            assert_eq!(*desk.answers.borrow(), told);
            let (lane, packed) = desk.intended.borrow_mut().take().unwrap();
            assert_eq!(lane, Some(LANE));

            let (action, basis) = intent::unpack::<Instance>(&packed).unwrap();
            let next = Desk::new(&fs);
            let mut engine = Engine::new(fs.clone(), 1 << 20);
            let resumed = engine.resume(&next, Some(((action, basis), 1))).unwrap();
            let Resumed::Done(outcome) = resumed else {
                panic!("{number}: {resumed:?}");
            };
            for (_, told) in told {
                assert_eq!(told, Some(outcome), "{number}");
            }
            trees.push(tree(&fs));
        }
        assert_eq!(trees[0], trees[1], "{number}");
        assert_ne!(trees[0], tree(&scene().0), "{number}");
    }
}

#[test]
fn a_change_that_is_refused_is_refused_again() {
    let (fs, desk, mut engine) = scene();
    desk.dies.set(true);
    engine.come_by(Some(LANE));
    let action = Action::RemoveDirectory { name: name("d") };
    assert!(engine.change_now(&desk, action, [ROOT; 2]).is_err());
    let (_, packed) = desk.intended.borrow_mut().take().unwrap();
    fs.disk.lock().unwrap().refusals = 1;
    let before = tree(&fs);
    let (action, basis) = intent::unpack::<Instance>(&packed).unwrap();
    let mut engine = Engine::new(fs.clone(), 1 << 20);
    assert_eq!(
        engine.resume(&Desk::new(&fs), Some(((action, basis), 1))),
        Ok(Resumed::Refused)
    );
    assert_eq!(tree(&fs), before);
}

#[test]
fn without_a_lane_a_change_is_noted_too() {
    let (fs, desk, mut engine) = scene();
    engine
        .change_now(&desk, create("f", Kind::File), [ROOT; 2])
        .unwrap();
    let file = fs.look_up(ROOT, &name("f")).unwrap();
    engine.come_by(Some(LANE));
    for action in contents() {
        engine.change_now(&desk, action, [file; 2]).unwrap();
        // What came of a change of content is not looked up again.
        assert_eq!(desk.intended.borrow().as_ref().unwrap().0, None);
    }
    assert!(desk.answers.borrow().iter().all(|(lane, _)| lane.is_none()));
    assert_eq!(desk.answers.borrow().len(), 1 + contents().len());
}

/// Changes of content, and of what is set of an inode.
fn contents() -> Vec<Change<Instance>> {
    vec![
        Action::Write {
            offset: 300,
            data: b"bytes".into(),
        },
        Action::Truncate { size: 7 },
        Action::Set(Setting::Mode(0o640)),
        Action::Set(Setting::Times([None, Some(77)])),
    ]
}

#[test]
fn a_change_of_content_is_the_same_from_its_bytes() {
    let basis = Basis {
        on: [1 << 40, 12],
        before: [None; 2],
        replaced: None,
    };
    for action in contents() {
        let bytes = packed::<Instance>(&action, &basis);
        let (again, of) = intent::unpack::<Instance>(&bytes).unwrap();
        assert_eq!(format!("{action:?}"), format!("{again:?}"));
        assert_eq!((of.on, of.before), (basis.on, basis.before));
        let mut short = vec![0; bytes.len() - 1];
        assert!(intent::pack::<Instance>(&action, &basis, &mut short).is_none());
        if !matches!(action, Action::Write { .. }) {
            assert!(intent::unpack::<Instance>(&[bytes, vec![0]].concat()).is_none());
        }
    }
}

#[test]
fn nothing_gives_way_to_a_new_name_and_nothing_is_exchanged_with_none() {
    let (fs, desk, mut engine) = scene();
    let before = tree(&fs);
    let mut rename = |from: &str, to: &str, how: Option<Renaming>| {
        let (name, new_name) = (name(from), name(to));
        let action = match how {
            Some(_) => Action::Rename { name, new_name },
            None => Action::Exchange { name, new_name },
        };
        let mut order = Order::new(action, [ROOT; 2]);
        let result = engine.rename(&desk, &mut order, how.unwrap_or(Renaming::Replace));
        desk.front(|front| order.end(front));
        result
    };
    for (from, to, how, why) in [
        ("a", "d", Some(Renaming::New), Error::Exists),
        ("a", "a", Some(Renaming::New), Error::Exists),
        ("x", "y", Some(Renaming::New), Error::Missing),
        ("a", "x", None, Error::Missing),
        ("x", "a", None, Error::Missing),
    ] {
        assert_eq!(rename(from, to, how), Err(why), "{from} {to} {how:?}");
    }
    assert_eq!(rename("a", "a", None), Ok(()));
    assert_eq!(tree(&fs), before);
    assert_eq!(rename("a", "x", Some(Renaming::New)), Ok(()));
    assert_eq!(rename("x", "d", None), Ok(()));
    let [x, d] = ["x", "d"].map(|of| fs.look_up(ROOT, &name(of)).unwrap());
    assert_eq!(fs.facts(x).unwrap().kind, Kind::Directory);
    assert_eq!(fs.facts(d).unwrap().kind, Kind::File);
}

#[test]
fn bytes_that_are_no_change_are_refused() {
    for number in [6, 8, 9] {
        garble(number);
    }
}

fn garble(number: usize) {
    let (_, desk, mut engine) = scene();
    engine.come_by(Some(LANE));
    let (action, _) = changes().swap_remove(number);
    engine.change_now(&desk, action, [ROOT; 2]).unwrap();
    let (_, packed) = desk.intended.borrow_mut().take().unwrap();
    for length in 0..packed.len() {
        assert!(intent::unpack::<Instance>(&packed[..length]).is_none());
    }
    for at in 0..packed.len() {
        let mut wrong = packed.clone();
        wrong[at] ^= 0x55;
        // Names and numbers may be any, so some are changes; none is a panic.
        let _ = intent::unpack::<Instance>(&wrong);
    }
    let long = [packed, vec![0]].concat();
    assert!(intent::unpack::<Instance>(&long).is_none());
}
