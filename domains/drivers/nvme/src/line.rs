//! A pair of queues of the controller, and the commands that it has by it, each in a place of its
//! own, whose number is that of the command: its pages are held for the controller, and their
//! addresses stand in the place's list. The mark of a job says that its command was to be aborted.

use domain_rt::log;
use domain_rt::sync::Mutex;
use interfaces::{BlockOperation, BlockOutcome, BlockRequest, RpcError};
use lanes::{Batch, Desk, Job, Room};
use nvme_queues::command::{self, Command};
use nvme_queues::prp::{self, Pointers};
use nvme_queues::queue::{Answer, Pair};
use nvme_queues::registers::Registers;
use nvme_queues::status::Meaning;

use crate::disk::Disk;
use crate::memory::{MOST_PAGES, Places, Rings};

/// What the lock of a line guards.
struct State {
    pair: Pair,
    /// The commands in their places. The place whose command is being aborted is barred: another
    /// one there would be aborted in its stead.
    desk: Desk,
    /// Room for the addresses of a command's pages.
    room: Room,
    /// The controller was told to reset itself.
    gone: bool,
}

/// See the module.
pub struct Line {
    state: Mutex<State>,
    rings: Rings,
    places: Places,
    serves: Serves,
}

/// For which block queues a line is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Serves {
    /// It interrupts, and there are others for those that are polled.
    Told,
    /// It does not interrupt.
    Polled,
    /// There is no other one.
    All,
}

/// The controller breaks the rules.
pub struct Broken;

fn is_late(job: &Job, look: u64, limit: u64, asked: bool) -> bool {
    look.saturating_sub(job.since) > limit && (asked || !job.mark)
}

impl Line {
    /// A pair that was just made, with its memory.
    ///
    /// # Errors
    /// [`RpcError::NoMemory`].
    pub fn new(pair: Pair, rings: Rings, places: Places, serves: Serves) -> Result<Self, RpcError> {
        let desk = Desk::new(places.count() as u16)?;
        Ok(Line {
            state: Mutex::new(State {
                pair,
                desk,
                room: Room::new(MOST_PAGES)?,
                gone: false,
            }),
            rings,
            places,
            serves,
        })
    }

    /// Gives the controller what can be given now, of a batch too, as far as there is room. Whether
    /// there is room left for what is given by this line.
    pub fn give(&self, disk: &Disk, batch: &mut Batch) -> bool {
        if !self.serves(disk) {
            return false;
        }
        let mut state = self.state.lock();
        self.pump(disk, &mut state, batch) && state.desk.has_room() && state.pair.room() > 0
    }

    /// Takes all answers, and gives the controller what can be given then.
    ///
    /// # Errors
    /// The controller is to be given up.
    pub fn settle(&self, disk: &Disk) -> Result<(), Broken> {
        let mut state = self.state.lock();
        if state.pair.under_way() > 0 && !state.gone {
            self.drain(disk, &mut state)?;
        }
        if state.desk.has_ended() {
            self.pump(disk, &mut state, &mut Batch::empty());
        }
        Ok(())
    }

    /// The controller resets itself. If that is `over` it uses no memory any more.
    pub fn stop(&self, over: bool) {
        let mut state = self.state.lock();
        state.gone = true;
        if over {
            let State { desk, room, .. } = &mut *state;
            desk.release_all(room);
        }
    }

    /// The number of the pair, and the place of a command that at this `look` is there for more
    /// than `limit` looks; if `asked` is not set, of those that were not aborted.
    pub fn late(&self, look: u64, limit: u64, asked: bool) -> Option<(u16, u16)> {
        let state = &mut *self.state.lock();
        let mut jobs = state.desk.jobs();
        let (place, _) = jobs.find(|(_, job)| is_late(job, look, limit, asked))?;
        Some((state.pair.number(), place))
    }

    /// The controller is about to be asked to abort the command in a place; false if there is none
    /// that is [late](Self::late), since that has ended meanwhile.
    pub fn begin_abort(&self, place: u16, look: u64, limit: u64) -> bool {
        let state = &mut *self.state.lock();
        let job = state.desk.job(place);
        let Some(job) = job.filter(|job| is_late(job, look, limit, false)) else {
            return false;
        };
        job.mark = true;
        state.desk.bar(place);
        true
    }

    /// It has answered that.
    pub fn end_abort(&self) {
        self.state.lock().desk.unbar();
    }

    /// Whether this line is for the queue that is open.
    fn serves(&self, disk: &Disk) -> bool {
        let wanted = match disk.lanes.is_polled() {
            true => Serves::Polled,
            false => Serves::Told,
        };
        self.serves == Serves::All || self.serves == wanted
    }

    /// Notes what has ended, and gives the controller what can be given now. Whether this line is
    /// for the queue that is open.
    fn pump(&self, disk: &Disk, state: &mut State, batch: &mut Batch) -> bool {
        let serves = !state.gone && self.serves(disk);
        loop {
            let room = if serves { state.pair.room() } else { 0 };
            disk.lanes
                .exchange(&mut state.desk, &mut state.room, room, batch);
            self.begin(disk, state);
            if !state.desk.has_ended() {
                break;
            }
            // A barrier may have waited for them.
        }
        if serves && let Some(tail) = state.pair.tail(&self.rings) {
            let doorbell = disk.capabilities.tail_doorbell(state.pair.number());
            disk.registers.write32(doorbell, tail);
        }
        serves
    }

    /// Gives the controller what was just taken, or ends it: also as done, if there is nothing to
    /// do.
    fn begin(&self, disk: &Disk, state: &mut State) {
        let State {
            pair, desk, room, ..
        } = state;
        desk.begin_new(room, |place, job, pages, inside| {
            let command = self.command(disk, place, job, pages, inside)?;
            let submitted = pair.submit(&self.rings, place, &command);
            submitted.map_err(|error| {
                log!("no room for a command: {error:?}");
                BlockOutcome::NoMemory
            })
        });
    }

    /// The command for a request, whose bytes, if it has some, begin `inside` bytes into the first
    /// of `pages`.
    #[inline]
    fn command(
        &self,
        disk: &Disk,
        place: u16,
        job: &Job,
        pages: &[u64],
        inside: u64,
    ) -> Result<Command, BlockOutcome> {
        let BlockRequest {
            sector, sectors, ..
        } = job.request;
        let (namespace, has_cache) = (disk.number, disk.controller.has_cache);
        let durable = job.request.durable && has_cache;
        let pointers = || {
            let put = |number, page| self.places.put(place, number, page);
            let pointers = prp::describe(pages, inside, || self.places.list(place), put);
            pointers.map_err(|_| BlockOutcome::Memory)
        };
        Ok(match job.request.operation {
            BlockOperation::Read => command::read(namespace, sector, sectors, pointers()?),
            BlockOperation::Write => {
                command::write(namespace, sector, sectors, pointers()?, durable)
            }
            BlockOperation::Flush if !has_cache => return Err(BlockOutcome::Done),
            BlockOperation::Flush => command::flush(namespace),
            BlockOperation::Discard => {
                let range = command::range(sector, sectors);
                let at = self.places.range(place, &range);
                command::discard(namespace, Pointers::page(at))
            }
            BlockOperation::WriteZeroes => {
                command::write_zeroes(namespace, sector, sectors, durable)
            }
        })
    }

    fn drain(&self, disk: &Disk, state: &mut State) -> Result<(), Broken> {
        let whole = loop {
            match state.pair.take(&self.rings) {
                Ok(Some(answer)) => state.answered(&answer),
                Ok(None) => break Ok(()),
                Err(fault) => {
                    log!("the controller breaks the rules: {fault}");
                    break Err(Broken);
                }
            }
        };
        if let Some(head) = state.pair.head()
            && whole.is_ok()
        {
            let doorbell = disk.capabilities.head_doorbell(state.pair.number());
            disk.registers.write32(doorbell, head);
        }
        if whole.is_err() {
            let nothing = &mut Batch::empty();
            disk.lanes
                .exchange(&mut state.desk, &mut state.room, 0, nothing);
        }
        whole
    }
}

impl State {
    #[inline]
    fn answered(&mut self, answer: &Answer) {
        let outcome = match answer.status.meaning() {
            Meaning::Done => BlockOutcome::Done,
            Meaning::OutOfRange => BlockOutcome::OutOfRange,
            Meaning::ReadOnly => BlockOutcome::ReadOnly,
            Meaning::Unsupported => BlockOutcome::Unsupported,
            Meaning::Aborted | Meaning::Failed => BlockOutcome::Device,
        };
        self.desk.end(answer.command, outcome);
    }
}
