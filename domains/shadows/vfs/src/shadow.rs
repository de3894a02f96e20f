//! The shared state and its two locks.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicU64, Ordering};

use domain_rt::log;
use domain_rt::sync::{Mutex, MutexGuard};
use interfaces::{FsError, Gate, Handle, RVec, Respawn, RpcResult};
use meter::Meter;
use redo::engine::translate;
use redo::record::Came;
use redo::{Basis, Change, Engine, Front, Host, Lane, Order, Outcome, Report, Severity, Target};
use respawn::Patience;

use crate::instance::{self, Instance};
use crate::kept::Kept;
use crate::lanes::LaneState;
use crate::options::Settings;
use crate::telling::Told;

/// What there is once.
pub struct Shadow {
    respawn: Handle<dyn Respawn>,
    patience: Patience,
    /// The inode of the root directory.
    root: u64,
    /// What the file system acknowledges survives its crash.
    is_lasting: bool,
    engine: Mutex<Engine<Instance>>,
    /// How long that is locked.
    pub meter: Meter,
    front: Mutex<Front<Instance>>,
    kept: Option<Arc<Kept>>,
    /// The version of the numbers that was noted.
    noted: AtomicU64,
}

/// The right to change something. Dropping it gives it back.
pub struct EngineGuard<'a> {
    engine: MutexGuard<'a, Engine<Instance>>,
    meter: &'a Meter,
}

impl Deref for EngineGuard<'_> {
    type Target = Engine<Instance>;
    fn deref(&self) -> &Engine<Instance> {
        &self.engine
    }
}

impl DerefMut for EngineGuard<'_> {
    fn deref_mut(&mut self) -> &mut Engine<Instance> {
        &mut self.engine
    }
}

impl Drop for EngineGuard<'_> {
    fn drop(&mut self) {
        self.meter.end();
    }
}

impl Host for Shadow {
    type Target = Instance;

    fn front<R>(&self, work: impl FnOnce(&mut Front<Instance>) -> R) -> R {
        work(&mut self.front.lock())
    }

    fn instance(&self, failed: u32) -> Result<Instance, FsError> {
        instance::fetch(&self.respawn, failed, &self.patience)
    }

    fn intend(
        &self,
        number: u64,
        lane: Option<Lane>,
        intended: (&Change<Instance>, &Basis),
        record: &mut Option<RVec<u8>>,
    ) -> Result<(), FsError> {
        match &self.kept {
            Some(kept) => kept.intend(number, lane, intended, record),
            None => Ok(()),
        }
    }

    fn again(&self, change: Option<(u64, u8)>) {
        if let Some(kept) = &self.kept {
            kept.mark(change);
        }
    }

    fn lost(&self, change: &Change<Instance>, is_deadly: bool) {
        let why = match is_deadly {
            true => "too many died of it",
            false => "it cannot be repeated",
        };
        log!("lost: {}: {why}", Told(change));
    }

    fn has_room(&self, weight: usize) -> bool {
        self.kept.as_ref().is_none_or(|kept| kept.has_room(weight))
    }

    fn answer(&self, lane: Option<Lane>, outcome: Option<[Outcome; 2]>) {
        if let Some(kept) = &self.kept {
            self.note_new_numbers();
            kept.answer(lane, outcome.map_or(Came::Refused, Came::Done));
        }
    }

    fn forgotten(&self, count: u64) {
        if let Some(kept) = &self.kept
            && let Err(error) = kept.forget(count)
        {
            log!("the log of changes stays: {error:?}");
        }
    }

    fn plan(&self, lane: Lane, inode: u64, offset: u64) -> Result<(), FsError> {
        match &self.kept {
            Some(kept) => {
                let ticket = kept.ticket(lane);
                kept.set_lane(lane, ticket, LaneState::Planned { inode, offset })
            }
            None => Ok(()),
        }
    }

    fn wrote(&self, lane: Lane, offset: u64, count: u64) {
        if let Some(kept) = &self.kept
            && let Err(error) = kept.set_lane(
                lane,
                kept.ticket(lane),
                LaneState::Written { offset, count },
            )
        {
            log!("what was written is not noted: {error:?}");
        }
    }

    fn recovered(&self, fs: &Instance, report: &Report) -> bool {
        let Report {
            entries,
            found,
            repeated,
            refused,
        } = *report;
        match found {
            _ if self.is_lasting => {
                log!(
                    "instance {}: {repeated} of {entries} changes were repeated",
                    fs.id()
                );
            }
            Some(found) => log!(
                "instance {}: {found} of {entries} changes were on the disk, {repeated} were repeated",
                fs.id()
            ),
            None => log!(
                "instance {}: part of a change was on the disk; {repeated} of {entries} changes were repeated",
                fs.id()
            ),
        }
        if refused > 0 {
            log!("{refused} changes are lost that were acknowledged");
        }
        let Some(kept) = &self.kept else {
            return false;
        };
        let before = kept.before();
        self.note_numbers();
        // The records have numbers of the instance that is gone.
        match fs.commit() {
            Ok(()) => true,
            // As if this one had never been: what it had of them is gone, or is found by its names.
            Err(error)
                if Instance::severity(&error) == Severity::Dead && kept.take_back(&before) =>
            {
                log!("instance {} died before it had committed that", fs.id());
                false
            }
            Err(error) => {
                log!("what was repeated is not committed: {error:?}");
                kept.forsake();
                false
            }
        }
    }
}

impl Shadow {
    /// Has `work` done with the engine for this order, for who came through this lane. What can be
    /// done before and afterwards is done while others make changes.
    pub fn carry_out<R>(
        &self,
        lane: Option<Lane>,
        mut order: Order<Instance>,
        work: impl FnOnce(&mut Engine<Instance>, &mut Order<Instance>) -> R,
    ) -> R {
        if let (Some(kept), Some(action)) = (&self.kept, order.action()) {
            // Where there is no memory for it now, it is tried again when it is needed.
            order.record = kept.draft(action).ok();
        }
        let result = self.by_lane(lane, |engine| work(engine, &mut order));
        self.front(|front| order.end(front));
        if let (Some(kept), Some(record)) = (&self.kept, order.record.take()) {
            kept.give_back(record);
        }
        result
    }

    /// Has `work` done with the engine, for who came through this lane.
    pub fn by_lane<R>(
        &self,
        lane: Option<Lane>,
        work: impl FnOnce(&mut Engine<Instance>) -> R,
    ) -> R {
        let mut engine = self.engine();
        engine.come_by(lane);
        let result = work(&mut engine);
        engine.come_by(None);
        result
    }

    /// In front of the instance `first`.
    pub fn new(
        respawn: Handle<dyn Respawn>,
        first: Instance,
        kept: Option<Arc<Kept>>,
        settings: &Settings,
    ) -> Self {
        let engine = match settings.is_lasting {
            true => Engine::lasting(first.clone()),
            false => Engine::new(first.clone(), settings.log),
        };
        Shadow {
            respawn,
            patience: Patience::default(),
            root: first.root(),
            is_lasting: settings.is_lasting,
            engine: Mutex::new(engine),
            meter: Meter::new("engine", settings.tells_held),
            front: Mutex::new(Front::new(first)),
            kept,
            noted: AtomicU64::new(0),
        }
    }

    /// Has the next instance of this domain know which instance serves, and the numbers of inodes.
    fn note_numbers(&self) {
        let Some(kept) = &self.kept else {
            return;
        };
        let mut version = 0;
        let noted = kept.note_numbers(|| {
            self.front(|front| {
                version = front.ids.version();
                let packed = match front.ids.is_trivial() {
                    true => Some(Vec::new()),
                    false => front.ids.pack(),
                };
                (front.fs.id(), packed)
            })
        });
        // Only now: until then whoever gives numbers to clients has to wait for it.
        self.noted.fetch_max(version, Ordering::Relaxed);
        if let Err(error) = noted {
            log!("which numbers clients have is not noted: {error:?}");
            kept.give_up();
        }
    }

    /// To be called where clients have been given numbers: see [`Kept::note_numbers`].
    pub fn note_new_numbers(&self) {
        let version = self.front(|front| front.ids.version());
        if version != self.noted.load(Ordering::Relaxed) {
            self.note_numbers();
        }
    }

    /// Goes on with the numbers that clients have.
    pub fn adopt_numbers(&self, ids: redo::ids::Ids) {
        self.noted.store(ids.version(), Ordering::Relaxed);
        self.front(|front| front.ids = ids);
    }

    /// Goes on with the hidden names (inode as the file system has it, and number) of files that
    /// clients have open.
    pub fn adopt_hidden(&self, hidden: &[(u64, u64)]) {
        self.front(|front| {
            for &(real, number) in hidden {
                let inode = front.ids.client(real);
                front.leave_over(inode, number);
            }
        });
        let last = hidden.iter().map(|(_, number)| *number).max();
        self.engine().number_hidden_from(last.unwrap_or(0));
        self.note_new_numbers();
    }

    /// What the next instance of this domain finds.
    pub fn kept(&self) -> Option<&Arc<Kept>> {
        self.kept.as_ref()
    }

    /// What the instances of this domain have in common.
    pub fn lineage(&self) -> Option<u64> {
        self.kept.as_ref().map(|kept| kept.lineage())
    }

    /// As [`count_hold`](Self::count_hold), for a client. In which life the inode is, if that is
    /// remembered, so that there is one.
    pub fn count_client(&self, inode: u64, client: usize) -> Option<u32> {
        loop {
            let count = |front: &mut Front<Instance>| {
                let life = front.inodes.recall(inode).map(|of| of.generation);
                (front.hold_for_client(inode, client), life)
            };
            match self.front(count) {
                (true, life) => return life,
                (false, _) => drop(self.engine()),
            }
        }
    }

    /// Tells who restarts the file system where calls to it can be made to wait.
    ///
    /// # Errors
    /// Those of the call.
    pub fn attach(&self, gate: Handle<dyn Gate>) -> RpcResult<()> {
        self.respawn.attach(gate)
    }

    /// Brings everything to the disk before another instance serves. What does not get there is in
    /// the log and is done again.
    pub fn settle(&self) {
        if let Err(error) = self.engine().sync(self) {
            log!("not everything is on the disk before the update: {error:?}");
        }
    }

    /// Makes what was acknowledged survive a crash of the file system. Others make changes
    /// meanwhile, and commits of several callers are under way at once: the file system shares
    /// them. Answers which instance did it, if the log begins behind it now.
    ///
    /// # Errors
    /// The file system's; [`FsError::Down`] if instance after instance dies.
    pub fn commit(&self) -> Result<Option<u32>, FsError> {
        for _ in 0..respawn::ATTEMPTS {
            let commit = self.engine().begin_commit(self)?;
            let result = commit.perform();
            let mut engine = self.engine();
            if engine.end_commit(&commit, result)? {
                if !engine.serves(&commit) {
                    return Ok(None);
                }
                self.forgotten(commit.changes());
                return Ok(Some(commit.by()));
            }
        }
        Err(FsError::Down)
    }

    /// Counts a hold, not while the inode's last name is being removed.
    pub fn count_hold(&self, inode: u64) {
        while !self.front(|front| front.hold(inode)) {
            drop(self.engine());
        }
    }

    /// The inode of the root directory.
    pub fn root(&self) -> u64 {
        self.root
    }

    /// Whether what the file system acknowledges survives its crash.
    pub fn is_lasting(&self) -> bool {
        self.is_lasting
    }

    /// The right to change something.
    pub fn engine(&self) -> EngineGuard<'_> {
        let engine = self.engine.lock();
        self.meter.begin();
        EngineGuard {
            engine,
            meter: &self.meter,
        }
    }

    /// Asks the file system about an inode (a client's number), again if it dies.
    ///
    /// # Errors
    /// The file system's; [`FsError::Down`] if instance after instance dies.
    pub fn ask<R>(
        &self,
        inode: u64,
        mut question: impl FnMut(&Instance, u64) -> Result<R, FsError>,
    ) -> Result<R, FsError> {
        let answer = respawn::until_answered(|| self.ask_once(inode, &mut question).transpose());
        answer.unwrap_or_else(|| {
            log!(
                "gave a question up after {} file systems",
                respawn::ATTEMPTS
            );
            Err(FsError::Down)
        })
    }

    /// Asks the instance that serves now. `None` if it is dead, and there is another one by now.
    fn ask_once<R>(
        &self,
        inode: u64,
        question: &mut impl FnMut(&Instance, u64) -> Result<R, FsError>,
    ) -> Result<Option<R>, FsError> {
        let (fs, real) = translate(self, inode)?;
        match question(&fs, real) {
            Err(error) if Instance::severity(&error) == Severity::Dead => {
                self.engine().revive(self, fs.id()).map(|()| None)
            }
            answer => answer.map(Some),
        }
    }

    /// As [`ask`](Self::ask); `tell` puts the answer in clients' numbers. Numbers of an instance
    /// that was replaced meanwhile mean nothing: then the question is asked again.
    ///
    /// # Errors
    /// As [`ask`](Self::ask).
    pub fn ask_for_numbers<R, S>(
        &self,
        inode: u64,
        mut question: impl FnMut(&Instance, u64) -> Result<R, FsError>,
        mut tell: impl FnMut(&mut Front<Instance>, R) -> S,
    ) -> Result<S, FsError> {
        self.ask(inode, |fs, real| {
            let answer = question(fs, real)?;
            self.front(|front| match front.fs.id() == fs.id() {
                true => Ok(tell(front, answer)),
                false => Err(FsError::Restarted),
            })
        })
    }
}
