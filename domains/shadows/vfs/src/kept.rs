//! What the next instance of this domain finds: the objects with pages of files, and notes of what
//! they are.
//!
//! Handles of all of them are with `keep`. Notes are an object as well: bytes of it are written in
//! one call, so they are there or not whenever this domain dies.
//!
//! | bytes of the notes | what |
//! | --- | --- |
//! | 0 to 64 | [`Head`] |
//! | two words behind it | which change is being made again, see `redo::record` |
//! | five times 8,192 | 32 for each lane, see [`lanes`](crate::lanes) |
//! | two areas from [`NUMBERS`] on | numbers of clients; the head says which of the areas counts |
//! | from [`CHANGES`] on | changes that are not committed, see [`changes`] |
//! | from [`PLACES`] on | 32 for each [`Note`] of a file, whose object has the same number in `keep` |
//!
//! # What makes it hold
//! Where the file system behind lives on it has all that was acknowledged; it is asked for its
//! number first. Another instance has what was committed, and gets the changes that are here.
//!
//! # The keeper's death
//! Nothing is lost by it as long as this domain lives: [`Kept::see_to_it`] has everything kept
//! again. It is called now and then.

pub mod changes;
mod lanes;

use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use domain_rt::sync::Mutex;
use domain_rt::{log, time};
use interfaces::{
    Failure, FsError, Handle, Keep, MemoryObjects, RVec, Respawn, RpcError, RpcResult, VmoFill,
    VmoOwner, VmoView,
};
use redo::ids::Ids;
use respawn::Slot;

use changes::{Changes, LeftChange};
use lanes::Lanes;

use crate::pages::{MOST_FILES, OWN, memory_error};

/// What the notes begin with: a form that this image understands.
const FORM: u64 = 0x7466_2d66_696c_6504;
/// The key of the notes. That of an object is the number of its place, and one more.
const NOTES: u64 = 0;
/// Where it is noted which change is being made again, see `redo::record::Mark`.
const MARK: u64 = 64;
/// Where numbers are, and bytes of each of the two areas.
const NUMBERS: u64 = 1 << 16;
const AREA: u64 = 1 << 20;
/// Where changes are.
const CHANGES: u64 = NUMBERS + 2 * AREA;
/// Where the places' notes begin, and bytes of each.
const PLACES: u64 = CHANGES + changes::ROOM;
const NOTE: u64 = 32;
/// Pages of the notes.
const PAGES: u64 = (PLACES + MOST_FILES as u64 * NOTE).div_ceil(4096);

/// What the notes begin with.
#[derive(Clone, Copy)]
struct Head {
    /// What all instances have in common of which each has found what the one before had.
    lineage: u64,
    /// The instance of the file system that has all that was acknowledged.
    instance: u32,
    /// Content is lost, and nobody was told.
    is_lost: bool,
    /// Which area has the numbers, and how many bytes they are.
    area: u64,
    numbers: u64,
    /// Where the first record of the log of changes is, and its number; 0: the log is of no use.
    log: (u64, u64),
}

/// What was noted of numbers before, see [`Kept::take_back`].
#[derive(Clone, Copy)]
pub struct Before {
    instance: u32,
    area: u64,
    numbers: u64,
    /// How often they had been noted.
    times: u64,
}

/// What is noted of a file.
#[derive(Clone, Copy, Default)]
pub struct Note {
    /// Its number, as clients have it. 0 is no file's.
    pub inode: u64,
    /// Its length and the time of its last change, if it is live.
    pub size: u64,
    pub modified: u64,
    /// There may be pages that are not on the disk.
    pub is_live: bool,
    /// Content of it is lost, and who asked for this file was not told.
    pub is_lost: bool,
    /// Somebody may write to it through mappings. Who has it so asks the next instance for the way
    /// again.
    pub is_shared: bool,
}

/// A file that the instance before has left.
pub struct LeftFile {
    pub place: usize,
    pub owner: Handle<dyn VmoOwner>,
    pub note: Note,
}

/// What the instance before has left.
pub struct Left {
    pub ids: Ids,
    /// The file system has all that was acknowledged. Otherwise it has what was committed, and the
    /// log the rest.
    pub is_same: bool,
    pub changes: Vec<LeftChange>,
    pub is_lost: bool,
    pub files: Vec<LeftFile>,
}

/// See the module's text.
pub struct Kept {
    keep: Mutex<Slot<dyn Keep>>,
    notes: Handle<dyn VmoOwner>,
    view: Handle<dyn VmoView>,
    /// Locked after `places`, and before the front.
    head: Mutex<Head>,
    /// Locked while the keeper is asked, which waits for nobody.
    places: Mutex<Places>,
    /// The log of changes. Locked before the lanes and the head.
    changes: Mutex<Changes>,
    /// Where the next record is made.
    spare: Mutex<Option<RVec<u8>>>,
    lanes: Lanes,
    /// The number of the last record in the log.
    last_number: AtomicU64,
    /// How often numbers were noted. Changed with the head locked.
    times: AtomicU64,
    is_unkept: AtomicBool,
    /// Everything that was left is known again.
    is_serving: AtomicBool,
}

/// The objects in their places.
struct Places {
    objects: Vec<Option<Handle<dyn VmoOwner>>>,
    /// Places that have none.
    free: Vec<usize>,
}

impl Places {
    fn new() -> Result<Self, FsError> {
        let (mut objects, mut free) = (Vec::new(), Vec::new());
        let rooms = [
            objects.try_reserve_exact(MOST_FILES),
            free.try_reserve_exact(MOST_FILES),
        ];
        rooms
            .into_iter()
            .try_for_each(|room| room.map_err(|_| RpcError::NoMemory))?;
        objects.resize_with(MOST_FILES, || None);
        free.extend((0..MOST_FILES).rev());
        Ok(Places { objects, free })
    }

    /// A place has no object any more, or got none.
    fn clear(&mut self, place: usize) -> Option<Handle<dyn VmoOwner>> {
        let left = self.objects[place].take();
        // There is room for all.
        self.free.push(place);
        left
    }
}

impl Kept {
    /// What is kept by whoever `keep` leads to, and what of it was left for who serves in front of
    /// `instance`. If nothing is, it begins anew, and what is there is forgotten.
    ///
    /// # Errors
    /// No memory; the keeper cannot be asked.
    pub fn open(
        objects: &Handle<dyn MemoryObjects>,
        keep: Handle<dyn Respawn>,
        instance: u32,
    ) -> Result<(Self, Option<Left>), FsError> {
        let mut keep = Slot::new(keep, "keeper");
        let found = ask(&mut keep, |keeper| keeper.get(NOTES))?;
        if let Some(notes) = found.and_then(|found| found.downcast::<dyn VmoOwner>().ok()) {
            notes.adopt().map_err(memory_error)?;
            if let Some(head) = read_head(&notes)? {
                let is_same = head.instance == instance;
                if is_same || head.log.1 != 0 {
                    let kept = Kept::new(keep, notes, head)?;
                    let left = kept.find(is_same)?;
                    return Ok((kept, Some(left)));
                }
                log!("another file system serves: what it did not have on its disk is lost");
            }
        }
        while let Some(key) = ask(&mut keep, |keeper| keeper.next(0))? {
            ask(&mut keep, |keeper| keeper.remove(key))?;
        }
        let notes = objects.create(PAGES, VmoFill::Zero).map_err(memory_error)?;
        let head = Head {
            // No two instances start in the same nanosecond.
            lineage: time::now().max(1),
            instance,
            is_lost: false,
            area: 0,
            numbers: 0,
            log: (0, 1),
        };
        let kept = Kept::new(keep, notes, head)?;
        kept.write_head(&head)?;
        kept.put_all()?;
        Ok((kept, None))
    }

    fn new(keep: Slot<dyn Keep>, notes: Handle<dyn VmoOwner>, head: Head) -> Result<Self, FsError> {
        let view = notes.view(OWN).map_err(memory_error)?;
        Ok(Kept {
            keep: Mutex::new(keep),
            notes,
            view,
            head: Mutex::new(head),
            places: Mutex::new(Places::new()?),
            changes: Mutex::new(Changes::new(head.log.0, head.log.1.max(1))),
            spare: Mutex::default(),
            lanes: Lanes::new()?,
            last_number: AtomicU64::new(0),
            times: AtomicU64::new(0),
            is_unkept: AtomicBool::new(false),
            is_serving: AtomicBool::new(false),
        })
    }

    /// What was left, on this instance's account from now on.
    fn find(&self, is_same: bool) -> Result<Left, FsError> {
        let head = *self.head.lock();
        let at = NUMBERS + head.area * AREA;
        let packed = self.read(at, head.numbers as usize)?;
        let ids = match head.numbers {
            0 => Ids::new(),
            _ => Ids::unpack(&packed).ok_or(FsError::Device)?,
        };
        self.read_lanes()?;
        let changes = self.left_changes()?;
        let mut files = Vec::new();
        files
            .try_reserve_exact(MOST_FILES)
            .map_err(|_| RpcError::NoMemory)?;
        let notes = self.read(PLACES, MOST_FILES * NOTE as usize)?;
        let mut places = self.places.lock();
        for (place, note) in notes.chunks_exact(NOTE as usize).enumerate() {
            let note = Note::read(note);
            if note.inode == 0 {
                continue;
            }
            let key = key_of(place);
            let found = ask(&mut self.keep.lock(), |keeper| keeper.get(key))?;
            let owner = found.and_then(|found| found.downcast::<dyn VmoOwner>().ok());
            let Some(owner) = owner else {
                continue;
            };
            owner.adopt().map_err(memory_error)?;
            places.objects[place] = Some(owner.duplicate()?);
            files.push(LeftFile { place, owner, note });
        }
        let Places { objects, free } = &mut *places;
        free.retain(|place| objects[*place].is_none());
        drop(places);
        Ok(Left {
            ids,
            is_same,
            changes,
            is_lost: head.is_lost,
            files,
        })
    }

    /// What all instances have in common of which each has found what the one before had.
    pub fn lineage(&self) -> u64 {
        self.head.lock().lineage
    }

    /// From now on what is forgotten is kept no more. Before, another instance may have to begin
    /// with it.
    pub fn serve(&self) {
        self.is_serving.store(true, Ordering::Relaxed);
    }

    /// Whether [`serve`](Self::serve) was called.
    pub fn is_serving(&self) -> bool {
        self.is_serving.load(Ordering::Relaxed)
    }

    /// Keeps an object with pages of a file; its place.
    ///
    /// # Errors
    /// No room or no memory.
    pub fn enter(&self, owner: &Handle<dyn VmoOwner>, inode: u64) -> Result<usize, FsError> {
        let mut places = self.places.lock();
        let place = places.free.pop().ok_or(RpcError::NoMemory)?;
        let entered = self.enter_at(&mut places.objects[place], place, owner, inode);
        if entered.is_err() {
            let left = places.clear(place);
            drop(places);
            drop(left);
        }
        entered.map(|()| place)
    }

    fn enter_at(
        &self,
        object: &mut Option<Handle<dyn VmoOwner>>,
        place: usize,
        owner: &Handle<dyn VmoOwner>,
        inode: u64,
    ) -> Result<(), FsError> {
        let note = Note {
            inode,
            ..Note::default()
        };
        self.note(place, &note)?;
        *object = Some(owner.duplicate()?);
        match self.put(key_of(place), owner) {
            Err(FsError::Rpc(RpcError::NoMemory)) => Err(RpcError::NoMemory.into()),
            Err(_) => {
                self.is_unkept.store(true, Ordering::Relaxed);
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    /// Notes what is known of the file in a place.
    ///
    /// # Errors
    /// No memory.
    pub fn note(&self, place: usize, note: &Note) -> Result<(), FsError> {
        self.write(PLACES + place as u64 * NOTE, &note.bytes())
    }

    /// Forgets what is in a place.
    pub fn leave(&self, place: usize) {
        let mut places = self.places.lock();
        let left = places.clear(place);
        let cleared = self.note(place, &Note::default());
        let removed = ask(&mut self.keep.lock(), |keeper| keeper.remove(key_of(place)));
        if cleared.is_err() || removed.is_err() {
            self.is_unkept.store(true, Ordering::Relaxed);
        }
        drop(places);
        drop(left);
    }

    /// Notes what `now` says: which instance has all that was acknowledged, and which numbers
    /// clients have, packed, none if all are the file system's. It is asked with the head locked,
    /// so nobody notes what is older than what another one has noted.
    ///
    /// # Errors
    /// No memory; more numbers than there is room for. Then nothing is left for the next instance.
    pub fn note_numbers(
        &self,
        now: impl FnOnce() -> (u32, Option<Vec<u8>>),
    ) -> Result<(), FsError> {
        let mut head = self.head.lock();
        let (instance, packed) = now();
        let packed = packed.ok_or(RpcError::NoMemory)?;
        let mut new = Head {
            instance,
            numbers: packed.len() as u64,
            ..*head
        };
        if new.numbers > AREA {
            return Err(FsError::NoSpace);
        }
        self.times.fetch_add(1, Ordering::Relaxed);
        if !packed.is_empty() {
            new.area = 1 - head.area;
            self.write(NUMBERS + new.area * AREA, &packed)?;
        }
        self.write_head(&new)?;
        *head = new;
        Ok(())
    }

    /// What is noted of numbers now.
    pub fn before(&self) -> Before {
        let head = self.head.lock();
        Before {
            instance: head.instance,
            area: head.area,
            numbers: head.numbers,
            times: self.times.load(Ordering::Relaxed),
        }
    }

    /// Notes again what was noted before, if numbers were noted once since; whether it did. What an
    /// area had is there until they are noted twice.
    pub fn take_back(&self, before: &Before) -> bool {
        let mut head = self.head.lock();
        if self.times.load(Ordering::Relaxed) != before.times + 1 {
            return false;
        }
        let new = Head {
            instance: before.instance,
            area: before.area,
            numbers: before.numbers,
            ..*head
        };
        let is_noted = self.write_head(&new).is_ok();
        if is_noted {
            *head = new;
        }
        is_noted
    }

    /// Where the log of changes begins, and the number of its first record.
    fn log(&self) -> (u64, u64) {
        self.head.lock().log
    }

    fn note_log(&self, log: (u64, u64)) -> Result<(), FsError> {
        let mut head = self.head.lock();
        let new = Head { log, ..*head };
        self.write_head(&new)?;
        *head = new;
        Ok(())
    }

    /// Notes whether content is lost and nobody was told.
    pub fn note_lost(&self, is_lost: bool) {
        let mut head = self.head.lock();
        head.is_lost = is_lost;
        if let Err(error) = self.write_head(&head) {
            log!("not noted that content is lost: {error:?}");
        }
    }

    /// The next instance is to find nothing: what is noted is not what is.
    pub fn give_up(&self) {
        let keeper = &mut self.keep.lock();
        let removed = ask(keeper, |keeper| keeper.remove(NOTES));
        log!("nothing is kept any more: {removed:?}");
    }

    /// Has everything kept anew if the keeper has died; whether it is kept.
    pub fn see_to_it(&self) -> bool {
        let first = ask(&mut self.keep.lock(), |keeper| keeper.next(NOTES));
        let is_there = matches!(first, Ok(Some(NOTES)));
        if is_there && !self.is_unkept.load(Ordering::Relaxed) {
            return true;
        }
        let is_kept = self.put_all().is_ok();
        self.is_unkept.store(!is_kept, Ordering::Relaxed);
        is_kept
    }

    /// The notes last: where they are, the rest is, too.
    fn put_all(&self) -> Result<(), FsError> {
        let places = self.places.lock();
        for (place, owner) in places.objects.iter().enumerate() {
            match owner {
                Some(owner) => self.put(key_of(place), owner)?,
                None => ask(&mut self.keep.lock(), |keeper| keeper.remove(key_of(place)))?,
            }
        }
        self.put(NOTES, &self.notes)
    }

    fn put(&self, key: u64, owner: &Handle<dyn VmoOwner>) -> Result<(), FsError> {
        let owner = owner.duplicate()?.into_any();
        ask(&mut self.keep.lock(), |keeper| keeper.put(key, owner))
    }

    fn read(&self, at: u64, count: usize) -> Result<RVec<u8>, FsError> {
        read(&self.view, at, count)
    }

    fn write(&self, at: u64, bytes: &[u8]) -> Result<(), FsError> {
        self.write_all(at, &RVec::from_slice(bytes)?)
    }

    fn write_all(&self, at: u64, bytes: &RVec<u8>) -> Result<(), FsError> {
        match self.view.write(at, bytes).map_err(memory_error)? {
            count if count == bytes.len() as u64 => Ok(()),
            _ => Err(RpcError::NoMemory.into()),
        }
    }

    fn write_head(&self, head: &Head) -> Result<(), FsError> {
        let words = [
            FORM,
            head.lineage,
            head.instance.into(),
            head.is_lost.into(),
            head.area,
            head.numbers,
            head.log.0,
            head.log.1,
        ];
        self.write(0, words.map(u64::to_le_bytes).as_flattened())
    }
}

impl Note {
    fn bytes(&self) -> [u8; NOTE as usize] {
        let marks = [self.is_live, self.is_lost, self.is_shared];
        let marks = marks.into_iter().rev();
        let marks = marks.fold(0, |marks, mark| marks << 1 | u64::from(mark));
        let words = [self.inode, self.size, self.modified, marks];
        let mut bytes = [0; NOTE as usize];
        bytes.copy_from_slice(words.map(u64::to_le_bytes).as_flattened());
        bytes
    }

    fn read(bytes: &[u8]) -> Self {
        Note {
            inode: word(bytes, 0),
            size: word(bytes, 1),
            modified: word(bytes, 2),
            is_live: word(bytes, 3) & 1 != 0,
            is_lost: word(bytes, 3) & 2 != 0,
            is_shared: word(bytes, 3) & 4 != 0,
        }
    }
}

fn key_of(place: usize) -> u64 {
    place as u64 + 1
}

/// Word number `at`, 0 where there is none.
fn word(bytes: &[u8], at: usize) -> u64 {
    let word = bytes.get(at * 8..at * 8 + 8);
    word.and_then(|word| word.try_into().ok())
        .map_or(0, u64::from_le_bytes)
}

/// What notes begin with; `None` if it is nothing that this image understands.
fn read_head(notes: &Handle<dyn VmoOwner>) -> Result<Option<Head>, FsError> {
    let view = notes.view(OWN).map_err(memory_error)?;
    let bytes = read(&view, 0, 64)?;
    let head = Head {
        lineage: word(&bytes, 1),
        instance: word(&bytes, 2) as u32,
        is_lost: word(&bytes, 3) != 0,
        area: word(&bytes, 4),
        numbers: word(&bytes, 5),
        log: (word(&bytes, 6), word(&bytes, 7)),
    };
    let is_one = word(&bytes, 0) == FORM && head.area < 2 && head.numbers <= AREA;
    Ok(is_one.then_some(head))
}

fn read(view: &Handle<dyn VmoView>, at: u64, count: usize) -> Result<RVec<u8>, FsError> {
    if count == 0 {
        return Ok(RVec::from_slice(&[])?);
    }
    let room = RVec::filled(0, count)?;
    match view.read(at, room).map_err(memory_error)? {
        (read, done) if done == count as u64 => Ok(read),
        _ => Err(FsError::Device),
    }
}

/// Asks the keeper, the next one if it has died; that has nothing then.
fn ask<T>(
    keep: &mut Slot<dyn Keep>,
    question: impl FnOnce(&Handle<dyn Keep>) -> RpcResult<T>,
) -> Result<T, FsError> {
    let keeper = keep.service(|keeper: &Handle<dyn Keep>| keeper.keys().map(drop))?;
    match question(keeper) {
        Err(error) => {
            if error.is_gone() {
                keep.give_up();
            }
            Err(error.into())
        }
        Ok(answer) => Ok(answer),
    }
}
