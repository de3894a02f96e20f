//! Random steps of a driver beside a controller that answers in any order, and beside one that
//! lies.

use alloc::vec;
use alloc::vec::Vec;

use super::{BLOCK, BLOCKS, Simulated};
use crate::admin::{self, Admin, AdminError};
use crate::command::{self, Command, Structure, WORDS};
use crate::identify::{Controller, Namespace};
use crate::prp::{self, List};
use crate::queue::tests::Shared;
use crate::queue::{Layout, Memory, Pair};
use crate::registers::{self, AdminQueues, Capabilities, Registers};
use crate::status::Meaning;
use crate::{PAGE, smart};

/// Where the memory of the admin pair and of pair 1 is, a page for structures, lists and data.
const ADMIN: usize = 0x1000;
const RINGS: usize = 0x4000;
const STRUCTURE: usize = 0x7000;
const LISTS: usize = 0x8000;
const DATA: usize = 0x10000;
/// Commands of pair 1, pages that each has for its data, and bytes of each list.
const COMMANDS: usize = 6;
const PAGES: usize = 4;
const LIST_BYTES: usize = 64;
const ENTRIES: u16 = 8;
const BYTES: usize = DATA + COMMANDS * PAGES * PAGE;

/// A number below `limit` (xorshift).
fn below(random: &mut u64, limit: u64) -> u64 {
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    (*random >> 11) % limit
}

/// A controller that was started, and its admin queue.
fn started() -> (Simulated, Admin<Simulated, Part>, Capabilities) {
    let simulated = Simulated::new(BYTES);
    let capabilities = Capabilities::read(&simulated, 0x2000).expect("good");
    registers::reset(&simulated, &capabilities, || ()).expect("a reset");
    let layout = Layout::new(admin::ENTRIES);
    let queues = AdminQueues {
        submission: ADMIN as u64,
        completion: (ADMIN + layout.answers) as u64,
        entries: layout.entries,
    };
    registers::start(&simulated, &capabilities, &queues, || ()).expect("a start");
    let memory = Part(simulated.memory.clone(), ADMIN);
    let admin = Admin::new(simulated.clone(), memory, capabilities).expect("memory");
    (simulated, admin, capabilities)
}

/// Memory from an offset on.
struct Part(Shared, usize);

impl Memory for Part {
    fn read_u64(&self, offset: usize) -> u64 {
        self.0.read_u64(self.1 + offset)
    }
    fn write_command(&self, offset: usize, words: [u64; WORDS]) {
        self.0.write_command(self.1 + offset, words);
    }
    fn fence(&self) {}
}

/// A command under way: its blocks, where its data begins in the first page, and what it writes.
#[derive(Clone, Copy)]
struct Asked {
    first: usize,
    count: usize,
    inside: usize,
    value: Option<u8>,
}

/// The driver of pair 1.
struct Rig {
    simulated: Simulated,
    capabilities: Capabilities,
    pair: Pair,
    memory: Part,
    /// The commands under way.
    asked: [Option<Asked>; COMMANDS],
    /// What every block has.
    known: Vec<u8>,
}

fn rig() -> Rig {
    let (simulated, mut admin, capabilities) = started();
    let layout = Layout::new(ENTRIES);
    let made = admin.make_pair(1, layout, RINGS as u64, Some(1), || simulated.settle());
    made.expect("a pair");
    Rig {
        memory: Part(simulated.memory.clone(), RINGS),
        simulated,
        capabilities,
        pair: Pair::new(1, layout, COMMANDS).expect("memory"),
        asked: [None; COMMANDS],
        known: vec![0; BLOCKS],
    }
}

impl Rig {
    fn data(number: usize, inside: usize) -> usize {
        DATA + number * PAGES * PAGE + inside
    }

    /// Submits a read or a write of blocks that no write under way touches.
    fn submit(&mut self, random: &mut u64) {
        let Some(number) = self.asked.iter().position(Option::is_none) else {
            return;
        };
        let inside = below(random, 8) as usize * BLOCK;
        let count = 1 + below(random, ((PAGES * PAGE - inside) / BLOCK) as u64) as usize;
        let first = below(random, (BLOCKS - count) as u64) as usize;
        let value = (below(random, 2) == 0).then_some(below(random, 256) as u8);
        let collide = |asked: &Asked| {
            let apart = asked.first + asked.count <= first || first + count <= asked.first;
            !apart && (asked.value.is_some() || value.is_some())
        };
        if self.asked.iter().flatten().any(collide) {
            return;
        }
        let fill = value.unwrap_or(0xaa);
        let data = Self::data(number, inside);
        self.simulated
            .memory
            .write(data, &vec![fill; count * BLOCK]);
        let command = self.command(number, inside, (first, count), value);
        let submitted = self.pair.submit(&self.memory, number as u16, &command);
        submitted.expect("there is room");
        self.asked[number] = Some(Asked {
            first,
            count,
            inside,
            value,
        });
    }

    fn command(
        &self,
        number: usize,
        inside: usize,
        (first, count): (usize, usize),
        value: Option<u8>,
    ) -> Command {
        let pages = (inside + count * BLOCK).div_ceil(PAGE);
        let address = |page| (Self::data(number, 0) + page * PAGE) as u64;
        let pages: Vec<u64> = (0..pages).map(address).collect();
        let at = LISTS + number * LIST_BYTES;
        let list = List {
            address: at as u64,
            room: LIST_BYTES / 8,
        };
        let put = |entry, page| self.simulated.memory.write_u64(at + 8 * entry, page);
        let pointers = prp::describe(&pages, inside as u64, || list, put).expect("they fit");
        match value {
            Some(_) => command::write(1, first as u64, count as u32, pointers, false),
            None => command::read(1, first as u64, count as u32, pointers),
        }
    }

    /// Tells the controller what it has to know.
    fn tell(&mut self) {
        if let Some(tail) = self.pair.tail(&self.memory) {
            let doorbell = self.capabilities.tail_doorbell(1);
            self.simulated.write32(doorbell, tail);
        }
        if let Some(head) = self.pair.head() {
            let doorbell = self.capabilities.head_doorbell(1);
            self.simulated.write32(doorbell, head);
        }
    }

    /// Takes all answers, and looks at what was read.
    fn take(&mut self) -> usize {
        let mut count = 0;
        while let Some(answer) = self.pair.take(&self.memory).expect("it is honest") {
            assert_eq!(answer.status.meaning(), Meaning::Done);
            let number = usize::from(answer.command);
            let asked = self.asked[number].take();
            let asked = asked.expect("it was asked");
            let known = &mut self.known[asked.first..][..asked.count];
            match asked.value {
                Some(value) => known.fill(value),
                None => self.expect_read(number, asked),
            }
            count += 1;
        }
        count
    }

    fn expect_read(&self, number: usize, asked: Asked) {
        let known = &self.known[asked.first..][..asked.count];
        for (block, value) in known.iter().enumerate() {
            let mut bytes = [0; BLOCK];
            let at = Self::data(number, asked.inside + block * BLOCK);
            self.simulated.memory.read(at, &mut bytes);
            assert_eq!(bytes, [*value; BLOCK], "what was read is not there");
        }
    }
}

#[test]
fn a_controller_comes_up() {
    let (simulated, mut admin, _) = started();
    let pause = || simulated.settle();
    let page = |bytes: &mut [u8]| simulated.memory.read(STRUCTURE, bytes);
    let to = STRUCTURE as u64;
    let mut bytes = [0; PAGE];
    admin
        .identify(Structure::Controller, 0, to, pause)
        .expect("done");
    page(&mut bytes);
    let controller = Controller::read(&bytes).expect("good");
    assert_eq!(
        (&*controller.model, controller.most_bytes),
        ("simu????????????????????????????????????", Some(16384))
    );
    admin
        .identify(Structure::Namespace, 1, to, pause)
        .expect("done");
    page(&mut bytes);
    let namespace = Namespace::read(&bytes).expect("good");
    assert_eq!(namespace.blocks, BLOCKS as u64);
    admin.run(&command::smart(to), pause).expect("done");
    page(&mut bytes);
    let health = bytes
        .first_chunk::<{ smart::BYTES }>()
        .expect("long enough");
    assert_eq!(smart::Health::read(health).temperature, 44 - 273);
    let answer = admin.run(&command::ask_for_pairs(9), pause).expect("done");
    assert_eq!(command::granted_pairs(answer), 4);
    let refused = admin.identify(Structure::Namespace, 2, to, pause);
    assert!(matches!(refused, Err(AdminError::Refused(_))));
}

#[test]
fn answers_that_come_late_are_not_taken_for_others() {
    let (simulated, mut admin, _) = started();
    simulated.is_deaf.set(true);
    let to = STRUCTURE as u64;
    for _ in 0..admin::ENTRIES - 1 {
        let asked = admin.identify(Structure::Controller, 0, to, || simulated.settle());
        assert_eq!(asked, Err(AdminError::NoAnswer));
    }
    let asked = admin.identify(Structure::Controller, 0, to, || ());
    assert_eq!(asked, Err(AdminError::Full));
    simulated.is_deaf.set(false);
    simulated.look();
    simulated.complete(3);
    // The answer to the fourth is taken, and is not that of the new one, which has its number.
    let answer = admin.run(&command::ask_for_pairs(1), || simulated.settle());
    assert_eq!(answer.map(command::granted_pairs), Ok(4));
}

#[test]
fn an_honest_controller_in_any_order() {
    for seed in 1..200 {
        let (mut rig, mut random, mut answers) = (rig(), seed, 0);
        for _ in 0..300 {
            match below(&mut random, 4) {
                0 => rig.submit(&mut random),
                1 => rig.tell(),
                2 => {
                    rig.simulated.look();
                    let has = rig.simulated.state.borrow().has.len() as u64;
                    if has > 0 {
                        rig.simulated.complete(below(&mut random, has) as usize);
                    }
                }
                _ => answers += rig.take(),
            }
        }
        assert!(answers > 20, "seed {seed}: {answers} answers");
        rig.tell();
        rig.simulated.settle();
        rig.take();
        assert_eq!(rig.pair.under_way(), 0);
        let disk = &rig.simulated.state.borrow().disk;
        let blocks = disk.chunks_exact(BLOCK).zip(&rig.known);
        assert!(
            blocks
                .clone()
                .all(|(block, value)| block == [*value; BLOCK])
        );
    }
}

/// Whatever the controller writes, a command has one answer at most, and nothing panics.
#[test]
fn a_controller_that_lies() {
    let (mut faults, mut taken) = (0, 0);
    for seed in 1..2000 {
        let (mut rig, mut random) = (rig(), seed);
        let mut has = [false; COMMANDS];
        for _ in 0..60 {
            let before = rig.asked;
            match below(&mut random, 3) {
                0 => rig.submit(&mut random),
                1 => {
                    rig.tell();
                    rig.simulated.look();
                }
                _ => lie(&rig.simulated, &mut random),
            }
            for (number, has) in has.iter_mut().enumerate() {
                *has |= before[number].is_none() && rig.asked[number].is_some();
            }
            match rig.pair.take(&rig.memory) {
                Ok(None) => {}
                Ok(Some(answer)) => {
                    let has = &mut has[usize::from(answer.command)];
                    assert!(*has, "an answer to what was not asked");
                    (*has, rig.asked[usize::from(answer.command)]) = (false, None);
                    taken += 1;
                }
                Err(_) => {
                    faults += 1;
                    break;
                }
            }
            let under_way = has.iter().filter(|has| **has).count();
            assert_eq!(rig.pair.under_way(), under_way);
        }
    }
    assert!(
        faults > 1000 && taken > 100,
        "{faults} faults, {taken} answers"
    );
}

/// Writes something where the next answer is expected, near the truth as a rule.
fn lie(simulated: &Simulated, random: &mut u64) {
    let any = below(random, u64::MAX);
    let mut choose = |truth: u16, wild: u64| match below(random, 12) {
        0 => (any >> wild) as u16,
        1 => truth ^ 1,
        _ => truth,
    };
    let has = simulated.state.borrow().has.first().copied();
    let number = has.map_or(0, |(_, words)| (words[0] >> 16) as u16);
    let (queue, head) = {
        let state = simulated.state.borrow();
        (1, state.pairs[&1].head)
    };
    let words = (
        any as u32,
        choose(head, 3),
        choose(queue, 5),
        choose(number, 7),
        choose(0, 9),
    );
    let mut state = simulated.state.borrow_mut();
    if has.is_some() {
        state.has.remove(0);
    }
    // Its rings may run over for all that it cares.
    let pair = state.pairs.get_mut(&1).expect("there is one");
    pair.taken = pair.answer;
    drop(state);
    simulated.answer(1, |_, _| words);
}
