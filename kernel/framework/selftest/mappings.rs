//! Tests of what address spaces map: against a model, and with memory that ends at each step.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::cell::Cell;

use super::user::space;
use super::{Test, gives_back};
use crate::check;
use crate::mem::PAGE_SIZE;
use crate::mem::frames::{FrameKind, Frames};
use crate::user::{Sharing, USER_END, UserProt, VmError, VmSpace, fail_from};

/// The tests of this file.
pub(super) static TESTS: &[Test] = &[
    ("mappings-as-in-a-model", as_in_a_model),
    ("mappings-without-memory", without_memory),
    ("mappings-none-keeps-its-page", none_keeps_its_page),
    ("mappings-of-an-object", of_an_object),
    ("mappings-borrowed-from-an-object", borrowed),
    ("mappings-refused-at-the-last-moment", refused),
    ("mappings-last-owner-writes-in-place", in_place),
    ("mappings-bad-ranges", bad_ranges),
    ("mappings-in-pieces", in_pieces),
];

const PROTS: [UserProt; 4] = [
    UserProt::NONE,
    UserProt::READ,
    UserProt::READ_WRITE,
    UserProt::READ_EXECUTE,
];
/// The first address beyond a table; the pages of these tests lie on both sides of it.
const BORDER: usize = 0x1234 << 21;

/// Numbers without a pattern (xorshift).
pub(super) struct Dice(pub(super) u64);

impl Dice {
    /// A number below `end`.
    pub(super) fn roll(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % end
    }
}

/// A word of a page of a program, read by the kernel.
pub(super) fn word(space: &VmSpace, at: usize) -> Result<u64, VmError> {
    let mut bytes = [0; 8];
    space.read(at, &mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

/// Writes a word as a program would, by way of the fault.
pub(super) fn set_word(space: &VmSpace, at: usize, value: u64) -> Result<(), VmError> {
    let mut result = space.write(at, &value.to_le_bytes());
    if result == Err(VmError::Denied) {
        space.resolve_write(at)?;
        result = space.write(at, &value.to_le_bytes());
    }
    result
}

/// A page of the model: which of the contents it shows, and what may be done.
#[derive(Clone, Copy)]
struct Page {
    content: usize,
    prot: UserProt,
}

/// What address spaces ought to do: a map, and contents that several pages may show.
#[derive(Default)]
struct Model {
    pages: BTreeMap<(usize, usize), Page>,
    contents: Vec<u64>,
}

/// Pages in two places, on both sides of a border each.
const PAGES: usize = 24;

/// Pages that a space with a program has.
const OF_THE_PROGRAM: usize = 2;

/// Where page `index` is.
fn at(index: usize) -> usize {
    let (half, index) = (index / (PAGES / 2), index % (PAGES / 2));
    BORDER * (half + 1) - PAGES / 4 * PAGE_SIZE + index * PAGE_SIZE
}

/// How many of `count` pages from `index` are in one table.
fn piece(index: usize, count: usize) -> usize {
    count.min(PAGES / 4 - index % (PAGES / 4))
}

impl Model {
    fn new_content(&mut self, value: u64) -> usize {
        self.contents.push(value);
        self.contents.len() - 1
    }

    /// Does something with each page of a piece until it fails: as the real functions do.
    fn each(
        &mut self,
        index: usize,
        count: usize,
        mut act: impl FnMut(&mut Self, usize) -> Result<(), VmError>,
    ) -> Result<usize, VmError> {
        for done in 0..piece(index, count) {
            match act(self, index + done) {
                Err(why) if done == 0 => return Err(why),
                Err(_) => return Ok(done),
                Ok(()) => {}
            }
        }
        Ok(piece(index, count))
    }

    fn map_zero(&mut self, space: usize, index: usize, prot: UserProt) -> Result<(), VmError> {
        if self.pages.contains_key(&(space, index)) {
            return Err(VmError::Occupied);
        }
        let content = self.new_content(0);
        self.pages.insert((space, index), Page { content, prot });
        Ok(())
    }

    fn fork(&mut self, from: usize, to: usize, index: usize) -> Result<(), VmError> {
        let Some(mut page) = self.pages.get(&(from, index)).copied() else {
            return Ok(());
        };
        if self.pages.contains_key(&(to, index)) {
            return Err(VmError::Occupied);
        }
        page.content = self.new_content(self.contents[page.content]);
        self.pages.insert((to, index), page);
        Ok(())
    }

    fn read(&self, space: usize, index: usize) -> Result<u64, VmError> {
        let page = self.pages.get(&(space, index)).ok_or(VmError::NotMapped)?;
        if page.prot == UserProt::NONE {
            return Err(VmError::Denied);
        }
        Ok(self.contents[page.content])
    }

    fn write(&mut self, space: usize, index: usize, value: u64) -> Result<(), VmError> {
        let page = self.pages.get(&(space, index)).ok_or(VmError::NotMapped)?;
        if !page.prot.write {
            return Err(VmError::Denied);
        }
        self.contents[page.content] = value;
        Ok(())
    }
}

/// Whether as much was done as expected, or more where nothing is mapped: what has no table is
/// passed over in one go.
fn reaches(
    done: Result<usize, VmError>,
    expected: Result<usize, VmError>,
    is_mapped: impl Fn(usize) -> bool,
) -> bool {
    match (done, expected) {
        (Ok(done), Ok(expected)) => done >= expected && !(expected..done).any(is_mapped),
        (done, expected) => done == expected,
    }
}

/// A random operation in the model and in the real spaces.
fn step(model: &mut Model, spaces: &mut [VmSpace], dice: &mut Dice) -> Result<(), String> {
    let (number, index) = (dice.roll(spaces.len()), dice.roll(PAGES));
    let count = (1 + dice.roll(9)).min(PAGES / 2 - index % (PAGES / 2));
    let (from, prot) = (at(index), PROTS[dice.roll(4)]);
    let space = &spaces[number];
    let what = dice.roll(8);
    let same = match what {
        0 => {
            let expected = model.each(index, count, |model, page| {
                model.map_zero(number, page, prot)
            });
            space.map_zero(from, count, prot) == expected
        }
        1 => {
            let expected = model.each(index, count, |model, page| {
                model.pages.remove(&(number, page));
                Ok(())
            });
            reaches(space.unmap(from, count), expected, |page| {
                model.pages.contains_key(&(number, index + page))
            })
        }
        2 => {
            let expected = model.each(index, count, |model, page| {
                if let Some(page) = model.pages.get_mut(&(number, page)) {
                    page.prot = prot;
                }
                Ok(())
            });
            reaches(space.protect(from, count, prot), expected, |page| {
                model.pages.contains_key(&(number, index + page))
            })
        }
        3 => {
            let to = (number + 1) % spaces.len();
            let expected = model.each(index, count, |model, page| model.fork(number, to, page));
            let done = space.fork(from, count, &spaces[to]);
            reaches(done, expected, |page| {
                model.pages.contains_key(&(number, index + page))
            })
        }
        4 if dice.roll(10) == 0 => {
            model.pages.retain(|(space, _), _| *space != number);
            spaces[number] = VmSpace::new().map_err(|_| "no memory")?;
            true
        }
        4 | 5 => {
            let value = dice.roll(usize::MAX) as u64;
            set_word(space, from, value) == model.write(number, index, value)
        }
        6 => {
            let prot = model.pages.get(&(number, index)).map(|page| page.prot);
            space.query(from).map(|mapped| mapped.prot) == prot
        }
        _ => word(space, from) == model.read(number, index),
    };
    let own = model
        .pages
        .keys()
        .filter(|(space, _)| *space == number)
        .count();
    let counted = spaces[number].own_pages();
    check!(
        own == counted,
        "{counted} own pages are counted in place of {own}"
    );
    check!(
        same,
        "operation {what} at {index}, {count} pages, is not as in the model"
    );
    Ok(())
}

fn as_in_a_model() -> Result<(), String> {
    gives_back(|| {
        let new = || VmSpace::new().map_err(|_| String::from("no memory"));
        let mut spaces = [new()?, new()?, new()?];
        let (mut model, mut dice) = (Model::default(), Dice(0x5eed));
        for number in 0..20_000 {
            let done = step(&mut model, &mut spaces, &mut dice);
            done.map_err(|why| format!("step {number}: {why}"))?;
        }
        for (number, space) in spaces.iter().enumerate() {
            for index in 0..PAGES {
                let same = word(space, at(index)) == model.read(number, index);
                check!(same, "at the end page {index} of {number} differs");
            }
        }
        Ok(())
    })
}

/// What each of the functions that allocate does, up to the first that has no memory. Whatever was
/// done before is as it was.
fn all_that_allocates() -> Result<(), VmError> {
    let parent = VmSpace::new().map_err(|_| VmError::NoMemory)?;
    let child = VmSpace::new().map_err(|_| VmError::NoMemory)?;
    let (from, count) = (at(0), PAGES / 2);
    let mut done = 0;
    let result = (|| {
        while done < count {
            let (at, left) = (from + done * PAGE_SIZE, count - done);
            done += parent.map_zero(at, left, UserProt::READ_WRITE)?;
        }
        for index in 0..count {
            set_word(&parent, at(index), index as u64)?;
        }
        for half in [0, count / 2] {
            parent.fork(at(half), count / 2, &child)?;
        }
        (0..count).try_for_each(|index| set_word(&child, at(index), 99))
    })();
    let kept = (0..done).all(|index| match word(&parent, at(index)) {
        Ok(value) => value == index as u64 || value == 0 && result.is_err(),
        Err(_) => false,
    });
    // Without memory a page can be written as soon as nobody else has it.
    drop(child);
    let written = (0..done).all(|index| set_word(&parent, at(index), 7) == Ok(()));
    match kept && written {
        true => result,
        false => Err(VmError::NotMapped),
    }
}

fn without_memory() -> Result<(), String> {
    let result = Cell::new(Ok(()));
    for number in 1.. {
        gives_back(|| {
            fail_from(number);
            result.set(all_that_allocates());
            fail_from(0);
            Ok(())
        })
        .map_err(|why| format!("allocation {number}: {why}"))?;
        match result.get() {
            Err(VmError::NoMemory) => {}
            Err(why) => return Err(format!("allocation {number}: {why:?}")),
            Ok(()) => {
                check!(number > 30, "only {number} allocations were tried");
                break;
            }
        }
    }
    Ok(())
}

fn failed(why: VmError) -> String {
    format!("{why:?}")
}

/// A page that may not be accessed keeps its content, over a fork too, and its frame.
fn none_keeps_its_page() -> Result<(), String> {
    gives_back(|| {
        let (space, child) = (space()?, VmSpace::new().map_err(|_| "no memory")?);
        let page = at(0);
        space
            .map_zero(page, 1, UserProt::READ_WRITE)
            .map_err(failed)?;
        set_word(&space, page, 42).map_err(failed)?;
        space.protect(page, 1, UserProt::NONE).map_err(failed)?;
        for space in [&space, &child] {
            check!(word(space, page) != Ok(42), "it is read");
            check!(set_word(space, page, 1).is_err(), "it is written");
            let occupied = space.map_zero(page, 1, UserProt::READ).err();
            check!(
                occupied == Some(VmError::Occupied),
                "it is gone: {occupied:?}"
            );
            let prot = space.query(page).map(|mapped| mapped.prot);
            check!(prot == Some(UserProt::NONE), "it is {prot:?}");
            if child.query(page).is_none() {
                let forked = space.fork(page, 1, &child);
                check!(forked == Ok(1), "{forked:?}");
            }
        }
        for (space, value) in [(&space, 43), (&child, 44)] {
            space
                .protect(page, 1, UserProt::READ_WRITE)
                .map_err(failed)?;
            check!(word(space, page) == Ok(42), "it has lost its content");
            set_word(space, page, value).map_err(failed)?;
        }
        check!(word(&space, page) == Ok(43), "the child's write is seen");
        space.unmap(page, 1).map_err(failed)?;
        child.protect(page, 1, UserProt::NONE).map_err(failed)?;
        // It is dropped with a hidden page.
        Ok(())
    })
}

/// A tracked page, of which the test has a count as a memory object would.
fn of_an_object() -> Result<(), String> {
    let frame = Frames::alloc_zeroed(1, FrameKind::Untyped).ok_or("no memory")?;
    let (space, child) = (space()?, VmSpace::new().map_err(|_| "no memory")?);
    let (page, physical) = (at(0), frame.physical());
    let share = frame.share().map_err(|why| format!("{why:?}"))?;
    let mapped = space.map(page, share, UserProt::READ_WRITE, Sharing::Tracked);
    check!(mapped == Ok(()), "{mapped:?}");
    let writable = |space: &VmSpace| space.write(page, &[1]) == Ok(());
    check!(!writable(&space), "it is writable at once");
    check!(
        space.resolve_write(page) == Err(VmError::Denied),
        "it is copied"
    );
    check!(
        !space.make_writable_if(page, physical + 4096, || true),
        "another frame's"
    );
    check!(
        !space.make_writable_if(page, physical, || false),
        "it was not marked"
    );
    check!(!writable(&space), "it is writable without a mark");
    check!(
        space.make_writable_if(page, physical, || true) && writable(&space),
        "it is not"
    );
    let forked = space.fork(page, 1, &child);
    let left_out = forked == Ok(1) && child.query(page).is_none();
    check!(left_out, "the child has it, too: {forked:?}");
    check!(writable(&space), "the parent's is protected");
    check!(
        space.write_protect(page, 1) == Ok(1) && !writable(&space),
        "it is not protected"
    );
    space.protect(page, 1, UserProt::READ).map_err(failed)?;
    check!(
        !space.make_writable_if(page, physical, || true),
        "it may not be written at all"
    );
    check!(
        space.own_pages() == OF_THE_PROGRAM,
        "it counts as the space's own"
    );
    let unmapped = space.unmap_tracked(page, 1);
    check!(
        unmapped == Ok(1) && space.query(page).is_none(),
        "not unmapped"
    );
    check!(frame.owners() == 1, "{} owners at the end", frame.owners());
    Ok(())
}

/// A page of an object that must not see writes: it is read as it is, and copied before the first
/// write. The object takes away what is its own, not the copy.
fn borrowed() -> Result<(), String> {
    let frame = Frames::alloc_zeroed(1, FrameKind::Untyped).ok_or("no memory")?;
    let (space, child) = (space()?, VmSpace::new().map_err(|_| "no memory")?);
    let (one, other, third) = (at(0), at(1), at(2));
    for page in [one, other, third] {
        let share = frame.share().map_err(|why| format!("{why:?}"))?;
        let mapped = space.map(page, share, UserProt::READ_WRITE, Sharing::Borrowed);
        check!(mapped == Ok(()), "{mapped:?}");
    }
    check!(
        space.write(one, &[1]) == Err(VmError::Denied),
        "it is writable at once"
    );
    check!(
        !space.make_writable_if(one, frame.physical(), || true),
        "it is made writable in place"
    );
    set_word(&space, one, 7).map_err(failed)?;
    let words = [one, other].map(|page| word(&space, page));
    check!(
        words == [Ok(7), Ok(0)],
        "{words:?}: the object's page was written"
    );
    check!(frame.owners() == 3, "{} owners", frame.owners());
    check!(
        space.own_pages() == OF_THE_PROGRAM + 1,
        "the copy does not count"
    );
    let forked = space.fork(one, 3, &child);
    check!(
        forked == Ok(3) && child.own_pages() == 1,
        "{forked:?} is forked"
    );
    check!(
        child.query(other).is_none(),
        "a page of the object is forked"
    );
    let unmapped = space.unmap_tracked(one, 3);
    check!(unmapped == Ok(3), "{unmapped:?}");
    let left = [one, other, third].map(|page| space.query(page).is_some());
    check!(left == [true, false, false], "{left:?} is left");
    check!(frame.owners() == 1, "{} owners at the end", frame.owners());
    set_word(&space, one, 8).map_err(failed)?;
    check!(word(&child, one) == Ok(7), "the child sees a later write");
    Ok(())
}

/// Nothing is mapped where `may` says no, and the frame is given up.
fn refused() -> Result<(), String> {
    let frame = Frames::alloc_zeroed(1, FrameKind::Untyped).ok_or("no memory")?;
    let space = space()?;
    let share = frame.share().map_err(|why| format!("{why:?}"))?;
    let mapped = space.map_if(at(0), share, UserProt::READ, Sharing::Tracked, || false);
    check!(mapped == Ok(false), "{mapped:?}");
    let zero = space.map_zero_if(at(0), UserProt::READ, || false);
    check!(zero == Ok(false), "{zero:?}");
    check!(space.query(at(0)).is_none(), "it is mapped");
    check!(frame.owners() == 1, "{} owners", frame.owners());
    check!(space.own_pages() == OF_THE_PROGRAM, "a page is counted");
    Ok(())
}

/// Whoever is the last owner writes in place; before, he writes to a copy.
fn in_place() -> Result<(), String> {
    let (space, child) = (space()?, VmSpace::new().map_err(|_| "no memory")?);
    let page = at(0);
    space
        .map_zero(page, 1, UserProt::READ_WRITE)
        .map_err(failed)?;
    set_word(&space, page, 1).map_err(failed)?;
    let frame = |space: &VmSpace| space.query(page).map(|mapped| mapped.frame);
    let first = frame(&space);
    space.fork(page, 1, &child).map_err(failed)?;
    check!(frame(&child) == first, "it was copied too early");
    set_word(&child, page, 2).map_err(failed)?;
    check!(
        frame(&child) != first && frame(&space) == first,
        "the wrong one was copied"
    );
    set_word(&space, page, 3).map_err(failed)?;
    check!(frame(&space) == first, "the last owner has copied");
    check!(
        word(&space, page) == Ok(3) && word(&child, page) == Ok(2),
        "writes were lost"
    );
    Ok(())
}

fn bad_ranges() -> Result<(), String> {
    let (space, child) = (space()?, VmSpace::new().map_err(|_| "no memory")?);
    let (most, last) = (USER_END / PAGE_SIZE, USER_END - PAGE_SIZE);
    for (at, pages) in [
        (0, 1),
        (PAGE_SIZE, 0),
        (PAGE_SIZE + 1, 1),
        (PAGE_SIZE, most),
        (PAGE_SIZE, usize::MAX),
        (PAGE_SIZE, usize::MAX / PAGE_SIZE),
        (last, 2),
        (USER_END, 1),
        (crate::mem::DIRECT_MAP, 1),
        (usize::MAX - PAGE_SIZE + 1, 1),
    ] {
        let results = [
            space.map_zero(at, pages, UserProt::READ),
            space.unmap(at, pages),
            space.unmap_tracked(at, pages),
            space.protect(at, pages, UserProt::READ),
            space.write_protect(at, pages),
            space.fork(at, pages, &child),
        ];
        let refused = results
            .iter()
            .all(|result| *result == Err(VmError::BadAddress));
        check!(refused, "{at:#x}, {pages} pages: {results:?}");
        if at < PAGE_SIZE || at >= USER_END {
            check!(space.resolve_write(at).is_err(), "{at:#x} is resolved");
            check!(space.query(at).is_none(), "{at:#x} is mapped");
            check!(
                !space.make_writable_if(at, 0, || true),
                "{at:#x} is writable"
            );
        }
    }
    let run = Frames::alloc_zeroed(2, FrameKind::Untyped).ok_or("no memory")?;
    let two = space.map(at(0), run, UserProt::READ, Sharing::Plain);
    check!(two == Err(VmError::NotUntyped), "two frames: {two:?}");
    let all = most - 1;
    let into_itself = space.fork(super::user::CODE, 1, &space);
    check!(into_itself == Err(VmError::Occupied), "{into_itself:?}");
    let mut done = 0;
    while done < all {
        let passed = space.unmap(PAGE_SIZE + done * PAGE_SIZE, all - done);
        done += passed.map_err(failed)?;
    }
    check!(
        space.query(super::user::CODE).is_none(),
        "the code is still mapped"
    );
    Ok(())
}

/// Each call does what lies in one table.
fn in_pieces() -> Result<(), String> {
    gives_back(|| {
        let (space, child) = (space()?, VmSpace::new().map_err(|_| "no memory")?);
        let from = BORDER - 100 * PAGE_SIZE;
        for (done, expected) in [(0, 100), (100, 512), (612, 88)] {
            let (at, left) = (from + done * PAGE_SIZE, 700 - done);
            let mapped = space.map_zero(at, left, UserProt::READ_WRITE);
            let changed = space.protect(at, left, UserProt::READ);
            let forked = space.fork(at, left, &child);
            let all = [mapped, changed, forked];
            check!(all.iter().all(|done| *done == Ok(expected)), "{all:?}");
            let unmapped = child.unmap(at, left);
            check!(unmapped == Ok(expected), "{unmapped:?}");
        }
        Ok(())
    })
}
