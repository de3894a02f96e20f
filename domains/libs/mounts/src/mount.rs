//! One file system: its present instance, and how it is replaced when it crashes.
//!
//! A call that meets a crash has the file system restarted, and fails with `FsError::Restarted`:
//! what it was to do may have been done, half done or not done. Whoever calls next gets the new
//! instance.
//!
//! An instance that goes on where the one before was (`FileSystem::lineage`) is not used before all
//! that is open is held by it, since what has no name any more lives by that alone. Calls that may
//! be made twice are made again then.

use core::sync::atomic::{AtomicBool, Ordering};

use alloc::string::{String, ToString};
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use domain_rt::log;
use domain_rt::sync::{Mutex, MutexGuard};
use gate::{Pass, Passage};
use interfaces::{
    Failure, FileKind, FileSystem, FsError, FsVolume, Handle, Hold, LaneOutcome, Metadata, RVec,
    Respawn, RpcError, Taken, Walked,
};
use respawn::{Absent, Patience};

use crate::known::{Known, is_gone};
use crate::lanes::Lanes;
use crate::seat::Seat;

/// One instance of a file system.
pub struct Live {
    /// The number of the domain instance.
    pub id: u32,
    /// Its interface.
    pub fs: Handle<dyn FileSystem>,
    /// The inode of its root directory.
    pub root: u64,
    /// What it has in common with those that it goes on for; `None`: it goes on for nobody.
    pub lineage: Option<u64>,
    /// The lane through which it is asked for holds.
    holder: Option<Handle<dyn FileSystem>>,
    /// It has said that it does not walk.
    is_lame: AtomicBool,
}

impl Live {
    fn new(id: u32, fs: Handle<dyn FileSystem>, root: u64, lineage: Option<u64>) -> Self {
        Live {
            id,
            fs,
            root,
            lineage,
            holder: None,
            is_lame: AtomicBool::new(false),
        }
    }

    /// Holds an inode.
    ///
    /// # Errors
    /// The file system's.
    pub(crate) fn hold(&self, known: Known) -> Result<Handle<dyn Hold>, FsError> {
        known.tell(self.by_holder().hold(known.inode, known.life))
    }

    fn by_holder(&self) -> &Handle<dyn FileSystem> {
        self.holder.as_ref().unwrap_or(&self.fs)
    }

    /// What a name in a directory leads to; `None`: nothing.
    ///
    /// # Errors
    /// The file system's; `Stale`: the directory is.
    pub fn find(&self, directory: Known, name: &RVec<u8>) -> Result<Option<Metadata>, FsError> {
        let is_plain = !matches!(&name[..], b"." | b"..");
        if is_plain
            && self.walks()
            && let Some(walked) = self.walk(directory, name)?
        {
            return Ok(walked.found);
        }
        directory.expect(self)?;
        let inode = match self.fs.lookup(directory.inode, name) {
            Err(FsError::NotFound) => return Ok(None),
            found => found?,
        };
        match self.fs.metadata(inode) {
            // It was replaced meanwhile.
            Err(FsError::NotFound) => Err(FsError::Stale),
            found => found.map(Some),
        }
    }

    /// Makes a change on inodes where nobody can be told in which lives they are to be: it is
    /// looked before, and where it fails.
    fn change_known<T>(
        &self,
        on: [Option<Known>; 2],
        operation: impl FnOnce(&Handle<dyn FileSystem>) -> Result<T, FsError>,
    ) -> Result<T, FsError> {
        let known = || on.into_iter().flatten();
        known().try_for_each(|known| known.expect(self))?;
        let done = operation(&self.fs);
        if done.as_ref().is_err_and(|error| !error.is_gone()) {
            // Was it said of the name, or of a directory that is another by now?
            known().try_for_each(|known| known.expect(self))?;
        }
        done
    }

    /// What is known of an inode.
    ///
    /// # Errors
    /// The file system's; `Stale`: it lives no more.
    pub fn metadata(&self, known: Known) -> Result<Metadata, FsError> {
        match known.tell(self.fs.metadata(known.inode))? {
            of if known.life.is_none_or(|life| life == of.generation) => Ok(of),
            _ => Err(FsError::Stale),
        }
    }

    /// Where a symbolic link leads.
    ///
    /// # Errors
    /// The file system's; `Stale`: it lives no more.
    pub fn target(&self, link: Known, room: RVec<u8>) -> Result<RVec<u8>, FsError> {
        let target = self.fs.read_link(link.inode, room);
        if is_gone(&target) {
            return target;
        }
        // It has been the same link all the time if it is still.
        self.metadata(link)?;
        target
    }

    /// Whether it walks paths, for all that is known.
    pub fn walks(&self) -> bool {
        !self.is_lame.load(Ordering::Relaxed)
    }

    /// Has it walk a path; `None`: it does not do that.
    ///
    /// # Errors
    /// The file system's.
    pub fn walk(&self, from: Known, path: &RVec<u8>) -> Result<Option<Walked>, FsError> {
        match self.fs.walk(from.inode, from.life, path) {
            Err(FsError::Unsupported) => {
                self.is_lame.store(true, Ordering::Relaxed);
                Ok(None)
            }
            walked => walked.map(Some),
        }
    }

    /// Whether this instance goes on where one of `lineage` was.
    pub fn goes_on(&self, lineage: Option<u64>) -> bool {
        lineage.is_some() && self.lineage == lineage
    }
}

enum State {
    /// It was not asked for yet.
    Never,
    /// This instance served last.
    Serving(Arc<Live>),
    /// The first instance did not start: no disk, or nothing on it that can be mounted.
    Absent,
}

/// A file system that may be restarted.
pub struct Mount {
    name: String,
    /// Who starts the next instance; `None`: nobody.
    respawn: Option<Handle<dyn Respawn>>,
    unchanging: bool,
    state: Mutex<State>,
    /// What is open. Locked before the state.
    seats: Mutex<Vec<Weak<Seat>>>,
    /// Calls wait here while the file system is replaced by another image.
    passage: Arc<Passage>,
    /// For changes that must not be made twice.
    lanes: Lanes,
    patience: Patience,
}

impl Live {
    /// What a call has answered, or that the service has died. With it end the loads of pages that
    /// it has begun, so requests for them are refused; a thread of it that is not stopped yet may
    /// hand that on as an error of the disk's, which it is not.
    fn doubted<T>(&self, result: Result<T, FsError>) -> Result<T, FsError> {
        let is_doubtful = matches!(
            result,
            Err(FsError::Device | FsError::Rpc(RpcError::Interrupted))
        );
        if !is_doubtful {
            return result;
        }
        match self.fs.root() {
            Err(error) if error.is_gone() => Err(error),
            _ => result,
        }
    }
}

impl Mount {
    /// Nothing is started before the first use.
    pub fn new(name: &str, respawn: Handle<dyn Respawn>) -> Self {
        Mount {
            name: name.to_string(),
            respawn: Some(respawn),
            unchanging: false,
            state: Mutex::new(State::Never),
            seats: Mutex::default(),
            passage: Arc::default(),
            lanes: Lanes::default(),
            patience: Patience::default(),
        }
    }

    /// This file system has the same content under the same numbers after each restart, so that
    /// whoever asks it something may ask again.
    pub fn unchanging(self) -> Self {
        Mount {
            unchanging: true,
            ..self
        }
    }

    /// Another domain uses the same file system, and did not say this: no lane is for both.
    pub fn beside(self) -> Self {
        Mount {
            lanes: Lanes::others(),
            ..self
        }
    }

    /// Whether it was said to be [`unchanging`](Self::unchanging).
    pub fn is_unchanging(&self) -> bool {
        self.unchanging
    }

    /// A file system that is never restarted.
    ///
    /// # Errors
    /// The file system's.
    pub fn fixed(name: &str, fs: Handle<dyn FileSystem>) -> Result<Self, FsError> {
        let root = fs.root()?;
        let live = Live::new(0, fs, root, None);
        Ok(Mount {
            name: name.to_string(),
            respawn: None,
            unchanging: false,
            state: Mutex::new(State::Serving(Arc::new(live))),
            seats: Mutex::default(),
            passage: Arc::default(),
            lanes: Lanes::default(),
            patience: Patience::default(),
        })
    }

    /// The right to call the file system; waits while that is replaced. Who has one must not ask
    /// for another.
    ///
    /// # Errors
    /// The caller is ended meanwhile.
    pub fn enter(&self) -> Result<Pass<'_>, FsError> {
        Ok(self.passage.enter()?)
    }

    /// Calls of the file system that are under way at this moment.
    pub fn under_way(&self) -> u64 {
        self.passage.inside()
    }

    /// Starts the file system now, and says why that cannot be done.
    ///
    /// # Errors
    /// See [`Absent`].
    pub fn begin(&self) -> Result<(), Absent<FsError>> {
        self.start(0).map(drop)
    }

    /// The instance that served last; nothing is started.
    pub fn current(&self) -> Option<Arc<Live>> {
        match &*self.state.lock() {
            State::Serving(live) => Some(live.clone()),
            _ => None,
        }
    }

    /// Whether a result says that the instance has crashed.
    pub fn is_crash<T>(result: &Result<T, FsError>) -> bool {
        matches!(result, Err(error) if error.is_gone())
    }

    /// The instance that served last. `None` if there never was one.
    ///
    /// # Errors
    /// [`FsError::Down`] if it crashed and cannot be started again.
    pub fn live(&self) -> Result<Option<Arc<Live>>, FsError> {
        match &*self.state.lock() {
            State::Serving(live) => return Ok(Some(live.clone())),
            State::Absent => return Ok(None),
            State::Never => {}
        }
        match self.start(0) {
            Ok(live) => Ok(Some(live)),
            Err(error) => {
                log!("no file system on {}: {error}", self.name);
                let mut state = self.state.lock();
                if let State::Never = *state {
                    *state = State::Absent;
                }
                Ok(None)
            }
        }
    }

    /// Passes on the result of a call to `live`. If that crashed, a new instance is mounted first.
    ///
    /// # Errors
    /// [`FsError::Restarted`] in place of a crash, or [`FsError::Down`] if there is no new
    /// instance.
    pub fn settle<T>(&self, live: &Live, result: Result<T, FsError>) -> Result<T, FsError> {
        match self.settle_or_go_on(live, result) {
            result if Mount::is_crash(&result) => Err(FsError::Restarted),
            result => result,
        }
    }

    /// As [`settle`](Self::settle). If the new instance goes on where `live` was, the result says
    /// still that this has crashed.
    ///
    /// # Errors
    /// As there.
    pub fn settle_or_go_on<T>(
        &self,
        live: &Live,
        result: Result<T, FsError>,
    ) -> Result<T, FsError> {
        if !Mount::is_crash(&result) {
            return result;
        }
        match self.start(live.id) {
            Ok(new) => {
                log!(
                    "{} was mounted again (instance {} after {})",
                    self.name,
                    new.id,
                    live.id
                );
                if new.goes_on(live.lineage) {
                    return result;
                }
                Err(FsError::Restarted)
            }
            Err(error) => {
                log!("{} stays down: {error}", self.name);
                match error {
                    // These say more, and the next call may go through.
                    Absent::Unasked(error) if !error.is_gone() => Err(error.into()),
                    _ => Err(FsError::Down),
                }
            }
        }
    }

    /// Has `work` done with the instance that serves, not while that is replaced. If it has crashed
    /// and the next one goes on, the result says so still; see
    /// [`settle_or_go_on`](Self::settle_or_go_on).
    ///
    /// # Errors
    /// Those of `work`; [`FsError::Down`] if there is no instance.
    pub fn attempt<T>(
        &self,
        work: impl FnOnce(&Arc<Live>) -> Result<T, FsError>,
    ) -> Result<T, FsError> {
        let pass = self.enter()?;
        let live = self.live()?.ok_or(FsError::Down)?;
        let result = live.doubted(work(&live));
        drop(pass);
        self.settle_or_go_on(&live, result)
    }

    /// Calls the file system once.
    ///
    /// # Errors
    /// The file system's; [`FsError::Restarted`] if it has crashed; as [`attempt`](Self::attempt).
    pub fn call<T>(
        &self,
        operation: impl FnOnce(&Live) -> Result<T, FsError>,
    ) -> Result<T, FsError> {
        match self.attempt(|live| operation(live)) {
            result if Mount::is_crash(&result) => Err(FsError::Restarted),
            result => result,
        }
    }

    /// Has the file system do what may be done twice, and its next instance again if that has the
    /// same files under the same numbers; see [`unchanging`](Self::unchanging).
    ///
    /// # Errors
    /// As [`call`](Self::call).
    pub fn ask<T>(
        &self,
        mut question: impl FnMut(&Live) -> Result<T, FsError>,
    ) -> Result<T, FsError> {
        self.again(|| self.attempt(|live| question(live)))
    }

    /// Makes `attempt` again as long as it meets a crash after which the same files are there under
    /// the same numbers.
    ///
    /// # Errors
    /// Those of `attempt`; [`FsError::Down`] if instance after instance dies.
    fn again<T>(&self, mut attempt: impl FnMut() -> Result<T, FsError>) -> Result<T, FsError> {
        let answer = respawn::until_answered(|| match attempt() {
            Err(FsError::Restarted) if self.unchanging => None,
            // The next one goes on.
            Err(error) if error.is_gone() => None,
            answer => Some(answer),
        });
        answer.unwrap_or(Err(FsError::Down))
    }

    /// Makes a change that must not be made twice: once, whoever dies, if the next instance goes on
    /// where the one before was. It is `on` one or two inodes, in the order in which it names them.
    /// `found` says what has come of one that an instance before has made; see [`Lanes`]. Waits
    /// where as many changes are under way as there may be at once.
    ///
    /// # Errors
    /// As [`call`](Self::call); `Stale`: one of the inodes is, and nothing was changed; the caller
    /// is ended while it waits.
    pub fn change<T>(
        &self,
        on: [Option<Known>; 2],
        mut operation: impl FnMut(&Handle<dyn FileSystem>) -> Result<T, FsError>,
        found: impl Fn(&LaneOutcome) -> T,
    ) -> Result<T, FsError> {
        let lineage = || Ok::<_, FsError>(self.live()?.ok_or(FsError::Down)?.lineage);
        if lineage()?.is_none() {
            return self.call(|live| match on.map(|known| known.and_then(|it| it.life)) {
                [None, None] => operation(&live.fs),
                [first, second] => match live.fs.lane(0) {
                    Err(FsError::Unsupported) => live.change_known(on, &mut operation),
                    way => {
                        let way = way?;
                        way.begin(0, first, second)?;
                        operation(&way)
                    }
                },
            });
        }
        let mut lane = self.lanes.take()?;
        // Only now: many instances may have served since, and this change was tried by none.
        let mut change = self.lanes.change(lineage()?);
        self.ask(|live| lane.attempt(live, (&mut change, on), &mut operation, &found))
    }

    /// Holds an inode, for as long as the seat is there.
    ///
    /// # Errors
    /// The file system's; `Stale`: it lives no more; no memory.
    pub fn hold(&self, known: Known, kind: FileKind) -> Result<Arc<Seat>, FsError> {
        let seat = Arc::new(Seat::new(known.inode, kind));
        self.add_seat(&seat)?;
        let hold = || self.attempt(|live| Ok((live.clone(), live.hold(known)?)));
        let (live, hold) = self.again(hold)?;
        if !self.sit(&seat, &live, hold) {
            self.keep(&seat);
        }
        Ok(seat)
    }

    /// Holds what a name in a directory leads to while nobody changes names; what that is. It is
    /// for who has found stale again and again what the name had led to.
    ///
    /// # Errors
    /// The file system's; no memory; `Stale`: the directory is, or another instance serves now, or
    /// this file system has no such way.
    pub fn take_name(
        &self,
        directory: Known,
        name: &RVec<u8>,
    ) -> Result<(Metadata, Arc<Seat>), FsError> {
        let take = |live: &Arc<Live>| {
            let taken = live.by_holder().take(directory.inode, directory.life, name);
            Ok((live.clone(), taken?))
        };
        let (live, Taken { of, hold }) = match self.attempt(take) {
            Err(FsError::Unsupported) => return Err(FsError::Stale),
            // Another instance may tell.
            Err(error) if error.is_gone() => return Err(FsError::Stale),
            taken => taken?,
        };
        let seat = Arc::new(Seat::new(of.inode, of.kind));
        self.add_seat(&seat)?;
        match self.sit(&seat, &live, hold) {
            true => Ok((of, seat)),
            false => Err(FsError::Stale),
        }
    }

    /// As [`ask`](Self::ask), with the inode held by the instance that is asked.
    ///
    /// # Errors
    /// As there; [`FsError::NotFound`] if a restart lost the inode.
    pub fn ask_held<T>(
        &self,
        seat: &Seat,
        mut question: impl FnMut(&Live) -> Result<T, FsError>,
    ) -> Result<T, FsError> {
        self.ask(|live| {
            seat.refresh(live, self.unchanging)?;
            question(live)
        })
    }

    /// Writes at the end of a file, once, by `append`; where, and how many bytes.
    ///
    /// # Errors
    /// As [`ask_held`](Self::ask_held).
    pub fn append(
        &self,
        seat: &Seat,
        append: impl FnMut(&Handle<dyn FileSystem>) -> Result<(u64, u64), FsError>,
    ) -> Result<(u64, u64), FsError> {
        // The hold first.
        self.ask_held(seat, |_| Ok(()))?;
        self.change([None; 2], append, |outcome| (outcome.first, outcome.second))
    }

    /// Takes hold again, if the file system was restarted. What goes wrong is seen by the next
    /// call.
    pub fn keep(&self, seat: &Seat) {
        let _ = self.attempt(|live| seat.refresh(live, self.unchanging));
    }

    /// Brings everything to the disk, if it was ever used.
    ///
    /// # Errors
    /// The file system's; as [`settle`](Self::settle).
    pub fn sync(&self) -> Result<(), FsError> {
        let answer = respawn::until_answered(|| {
            let pass = match self.enter() {
                Ok(pass) => pass,
                Err(error) => return Some(Err(error)),
            };
            let live = self.current()?;
            let synced = live.fs.sync();
            drop(pass);
            match self.settle_or_go_on(&live, synced) {
                Err(error) if error.is_gone() => None,
                answer => Some(answer),
            }
        });
        match self.current() {
            Some(_) => answer.unwrap_or(Err(FsError::Down)),
            None => Ok(()),
        }
    }

    /// Has an instance other than `failed` started and takes it into use.
    fn start(&self, failed: u32) -> Result<Arc<Live>, Absent<FsError>> {
        let Some(respawn) = &self.respawn else {
            return Err(Absent::GaveUp);
        };
        // Of one that goes on it is no answer that it does not start just now.
        let served = self.current().is_some_and(|live| live.lineage.is_some());
        let (id, greeting) = match served {
            true => self.patience.wait(|| find(respawn, failed))?,
            false => find(respawn, failed)?,
        };
        let Greeting { fs, root, lineage } = greeting;
        // Without a lineage calls could not be made again that an update cuts off.
        if lineage.is_some()
            && let Err(error) =
                gate::gate(&self.passage, || ()).and_then(|gate| respawn.attach(gate))
        {
            log!("{} cannot be replaced while it is used: {error}", self.name);
        }
        let mut live = Live::new(id, fs, root, lineage);
        if lineage.is_some() {
            // If it has died, that is met by who calls it next.
            live.holder = live.fs.lane(self.lanes.of_holds()).ok();
        }
        Ok(self.take(live))
    }

    /// Notes what is open, before it is held.
    ///
    /// # Errors
    /// No memory.
    fn add_seat(&self, seat: &Arc<Seat>) -> Result<(), FsError> {
        let mut seats = self.seats.lock();
        if seats.len() == seats.capacity() {
            seats.retain(|seat| seat.strong_count() > 0);
            let more = seats.len().max(8);
            seats
                .try_reserve(more)
                .map_err(|_| FsError::Rpc(RpcError::NoMemory))?;
        }
        seats.push(Arc::downgrade(seat));
        Ok(())
    }

    /// Takes a hold that `live` has given; whether that is the instance that serves.
    fn sit(&self, seat: &Seat, live: &Live, hold: Handle<dyn Hold>) -> bool {
        let _no_other_comes = self.seats.lock();
        seat.sit(live, hold);
        self.current().is_some_and(|current| current.id == live.id)
    }

    /// Has everything that is open held by `new`, which goes on. Nobody else calls it yet.
    fn seat_all(&self, new: &Live) -> MutexGuard<'_, Vec<Weak<Seat>>> {
        loop {
            let seats = self.seats.lock();
            let is_left = |seat: &Arc<Seat>| seat.is_of_another(new);
            let left = seats.iter().filter_map(Weak::upgrade).find(is_left);
            match left {
                None => return seats,
                Some(left) => {
                    drop(seats);
                    left.sit_again(new);
                }
            }
        }
    }

    /// Takes a new instance into use, unless another thread has found a newer one.
    fn take(&self, new: Live) -> Arc<Live> {
        let new = Arc::new(new);
        let before = self.current().and_then(|before| before.lineage);
        let seats = new.goes_on(before).then(|| self.seat_all(&new));
        let mut state = self.state.lock();
        let old = match &*state {
            State::Serving(old) if old.id >= new.id => return old.clone(),
            _ => core::mem::replace(&mut *state, State::Serving(new.clone())),
        };
        drop(state);
        drop(seats);
        // Letting go of the old instance's handles is a call to the kernel: not under the lock.
        drop(old);
        new
    }
}

/// What a new instance was asked first: the way to its files, its root, and whom it goes on for.
struct Greeting {
    fs: Handle<dyn FileSystem>,
    root: u64,
    lineage: Option<u64>,
}

fn greet(fs: Handle<dyn FileSystem>) -> Result<Greeting, FsError> {
    let root = fs.root()?;
    let lineage = match fs.lineage() {
        Err(error) if error.is_gone() => return Err(error),
        lineage => lineage.ok(),
    };
    Ok(Greeting { fs, root, lineage })
}

/// The number of an instance other than `failed`, and its greeting. Where there is no service in
/// front of a file system this domain is its service.
fn find(respawn: &Handle<dyn Respawn>, failed: u32) -> Result<(u32, Greeting), Absent<FsError>> {
    let of_service = |fs: &Handle<dyn FileSystem>| greet(fs.duplicate()?);
    match respawn::fetch(respawn, failed, of_service) {
        Err(Absent::OtherInterface) => {}
        found => return found.map(|live| (live.id, live.greeting)),
    }
    let of_volume = |volume: &Handle<dyn FsVolume>| greet(volume.begin(domain_rt::self_id())?);
    let live = respawn::fetch(respawn, failed, of_volume)?;
    Ok((live.id, live.greeting))
}
