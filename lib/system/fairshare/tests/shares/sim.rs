//! A machine made up for the policy: processors, a clock, and threads that spin, sleep or keep
//! time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use fairshare::{
    Attributes, Guarded, Left, MOST_PROCESSORS, Moment, NEVER, Policy, Queue, Share, Task, WORDS,
    Why,
};

pub const MS: u64 = 1_000_000;
pub const SECOND: u64 = 1_000 * MS;

/// Numbers that look random and are the same each time.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub fn from(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low + 1)
    }
}

/// What a thread does.
#[derive(Clone, Copy, Debug)]
pub enum Does {
    /// Runs for ever.
    Spin,
    /// Runs and sleeps in turn, each of a random length up to twice this.
    Sleep(u64, u64),
    /// Each so often it has so much to do.
    Periodic(u64, u64),
    /// Runs so long and gives way.
    Yield(u64),
}

pub struct Thread {
    pub id: usize,
    pub asked: Mutex<Attributes>,
    words: [AtomicU64; WORDS],
    pub cpu: AtomicUsize,
    pub does: Does,
    /// Nanoseconds that it has run.
    pub ran: AtomicU64,
    /// What is left of its present piece of work.
    left: AtomicU64,
    /// When it became ready after sleep; 0: it has run since.
    woken: AtomicU64,
    /// Longest time from there to running.
    pub latency: AtomicU64,
    /// When its present period began, for periodic ones.
    began: AtomicU64,
    pub missed: AtomicU64,
    /// It is in a service whenever it is looked at.
    pub service: bool,
}

#[derive(Clone)]
pub struct Ref(pub Arc<Thread>);

impl Task for Ref {
    fn attributes(&self) -> Attributes {
        *self.0.asked.lock().expect("no test panics with it")
    }
    fn words(&self) -> &[AtomicU64; WORDS] {
        &self.0.words
    }
    fn last_cpu(&self) -> usize {
        self.0.cpu.load(Ordering::Relaxed)
    }
}

pub struct Cell(Mutex<Queue<Ref>>);

impl Guarded<Queue<Ref>> for Cell {
    fn with<R>(&self, body: impl FnOnce(&mut Queue<Ref>) -> R) -> R {
        body(&mut self.0.try_lock().expect("nobody holds two"))
    }
}

#[derive(Clone)]
struct Running {
    thread: Ref,
    since: u64,
    until: u64,
}

pub struct Machine {
    pub policy: Box<Policy<Cell>>,
    pub threads: Vec<Ref>,
    running: Vec<Option<Running>>,
    again: Vec<u64>,
    kicked: Vec<bool>,
    sleeping: BinaryHeap<Reverse<(u64, usize)>>,
    pub now: u64,
    pub random: Random,
    pub online: usize,
    /// Threads that are ready and not running.
    pub ready: usize,
    /// Nanoseconds for which a processor idled while somebody was ready.
    pub wasted: u64,
    pub switches: u64,
    /// The end of a slice is noticed up to so many nanoseconds late.
    pub late: u64,
}

impl Machine {
    pub fn new(online: usize, seed: u64) -> Self {
        let queues = [const { Cell(Mutex::new(Queue::new())) }; MOST_PROCESSORS];
        Self {
            policy: Box::new(Policy::new(queues)),
            threads: Vec::new(),
            running: vec![None; online],
            again: vec![NEVER; online],
            kicked: vec![true; online],
            sleeping: BinaryHeap::new(),
            now: 1,
            random: Random(seed * 0x9e37_79b9 + 1),
            online,
            ready: 0,
            wasted: 0,
            switches: 0,
            late: 0,
        }
    }

    fn at(&self, cpu: usize) -> Moment {
        Moment {
            now: self.now,
            cpu,
            online: self.online,
        }
    }

    pub fn group(&self, group: u32, weight: u32, percent: u32) {
        self.policy.open(group, Share { weight, percent });
    }

    /// Starts a thread.
    pub fn spawn(&mut self, asked: Attributes, does: Does, service: bool) -> Ref {
        assert!(self.policy.admit(self.threads.len() + 1, self.online));
        let thread = Ref(Arc::new(Thread {
            id: self.threads.len(),
            asked: Mutex::new(asked),
            words: [const { AtomicU64::new(0) }; WORDS],
            cpu: AtomicUsize::new(0),
            does,
            ran: AtomicU64::new(0),
            left: AtomicU64::new(0),
            woken: AtomicU64::new(0),
            latency: AtomicU64::new(0),
            began: AtomicU64::new(self.now),
            missed: AtomicU64::new(0),
            service,
        }));
        self.begin_work(&thread);
        self.threads.push(thread.clone());
        self.enqueue(thread.clone(), Why::New, 0);
        thread
    }

    fn begin_work(&mut self, thread: &Ref) {
        let work = match thread.0.does {
            Does::Spin => NEVER,
            Does::Sleep(work, _) => self.random.from(1, 2 * work),
            Does::Periodic(work, _) | Does::Yield(work) => work,
        };
        thread.0.left.store(work, Ordering::Relaxed);
    }

    fn enqueue(&mut self, thread: Ref, why: Why, here: usize) {
        let placed = self.policy.enqueue(thread, why, self.at(here));
        let placed = placed.unwrap_or_else(|_| panic!("there was room"));
        self.ready += 1;
        assert!(placed.cpu < self.online);
        if placed.preempt || self.running[placed.cpu].is_none() {
            self.kicked[placed.cpu] = true;
        }
    }

    /// Counts what `cpu`'s thread has run until now.
    fn count(&mut self, cpu: usize, left: Left) {
        let Some(running) = self.running[cpu].clone() else {
            return;
        };
        let used = self.now - running.since;
        let thread = &running.thread.0;
        thread.ran.fetch_add(used, Ordering::Relaxed);
        let work = thread.left.load(Ordering::Relaxed);
        if work != NEVER {
            thread.left.store(work - used, Ordering::Relaxed);
        }
        self.policy
            .ran(&running.thread, used, left, thread.service, self.at(cpu));
        if let Some(running) = &mut self.running[cpu] {
            running.since = self.now;
        }
    }

    fn take_off(&mut self, cpu: usize, left: Left) -> Option<Ref> {
        self.count(cpu, left);
        Some(self.running[cpu].take()?.thread)
    }

    /// The thread of `cpu` has done its piece.
    fn finished(&mut self, cpu: usize, thread: &Ref) {
        if let Does::Yield(_) = thread.0.does {
            self.take_off(cpu, Left::Yielded);
            self.begin_work(thread);
            return self.enqueue(thread.clone(), Why::Ran, cpu);
        }
        self.take_off(cpu, Left::Waits);
        let wake = match thread.0.does {
            Does::Periodic(_, period) => {
                let next = thread.0.began.load(Ordering::Relaxed) + period;
                if self.now > next {
                    thread.0.missed.fetch_add(1, Ordering::Relaxed);
                }
                thread.0.began.store(next, Ordering::Relaxed);
                next.max(self.now)
            }
            Does::Sleep(_, sleep) => self.now + self.random.from(1, 2 * sleep),
            _ => NEVER,
        };
        self.sleeping.push(Reverse((wake, thread.0.id)));
    }

    fn switch(&mut self, cpu: usize) {
        self.kicked[cpu] = false;
        if let Some(thread) = self.take_off(cpu, Left::Preempted) {
            self.enqueue(thread, Why::Ran, cpu);
        }
        let picked = self.policy.pick::<Ref>(self.at(cpu));
        assert!(picked.until > self.now, "the policy asks for no time");
        self.again[cpu] = picked.until;
        self.kicked[cpu] = false;
        let Some(thread) = picked.task else { return };
        self.switches += 1;
        self.ready -= 1;
        thread.0.cpu.store(cpu, Ordering::Relaxed);
        let woken = thread.0.woken.swap(0, Ordering::Relaxed);
        if woken != 0 {
            thread
                .0
                .latency
                .fetch_max(self.now - woken, Ordering::Relaxed);
        }
        let asked = thread.attributes();
        let all = (1_u64 << self.online) - 1;
        assert!(
            asked.affinity & all == 0 || asked.affinity >> cpu & 1 == 1,
            "not allowed here"
        );
        let until = self.noticed(picked.until);
        self.running[cpu] = Some(Running {
            thread,
            since: self.now,
            until,
        });
    }

    /// When a processor notices that it is `until`.
    fn noticed(&mut self, until: u64) -> u64 {
        match self.late {
            0 => until,
            late => until.saturating_add(self.random.from(0, late)),
        }
    }

    fn step(&mut self, cpu: usize) {
        let Some(running) = self.running[cpu].clone() else {
            if self.again[cpu] <= self.now {
                self.kicked[cpu] = true;
            }
            return;
        };
        let done = running
            .since
            .saturating_add(running.thread.0.left.load(Ordering::Relaxed));
        if done <= self.now {
            self.finished(cpu, &running.thread);
            self.kicked[cpu] = true;
        } else if running.until <= self.now {
            self.count(cpu, Left::Still);
            let service = running.thread.0.service;
            match self
                .policy
                .slice_over(&running.thread, service, self.at(cpu))
            {
                Some(until) => {
                    assert!(until > self.now, "the policy asks for no time");
                    let until = self.noticed(until);
                    if let Some(running) = &mut self.running[cpu] {
                        running.until = until;
                    }
                }
                None => self.kicked[cpu] = true,
            }
        }
    }

    fn next_event(&self) -> u64 {
        let each = (0..self.online).map(|cpu| match &self.running[cpu] {
            None => self.again[cpu],
            Some(running) => {
                let left = running.thread.0.left.load(Ordering::Relaxed);
                running.until.min(running.since.saturating_add(left))
            }
        });
        let wake = self.sleeping.peek().map_or(NEVER, |Reverse((at, _))| *at);
        each.min().unwrap_or(NEVER).min(wake)
    }

    /// Lets `ns` nanoseconds pass.
    pub fn run(&mut self, ns: u64) {
        let end = self.now + ns;
        loop {
            while let Some(cpu) = (0..self.online).find(|cpu| self.kicked[*cpu]) {
                self.switch(cpu);
            }
            let next = self.next_event().max(self.now).min(end);
            let idle = self
                .running
                .iter()
                .filter(|running| running.is_none())
                .count();
            if self.ready > 0 {
                self.wasted += idle.min(self.ready) as u64 * (next - self.now);
            }
            self.now = next;
            if next == end {
                break;
            }
            while let Some(Reverse((at, id))) = self.sleeping.peek().copied()
                && at <= self.now
            {
                self.sleeping.pop();
                let thread = self.threads[id].clone();
                self.begin_work(&thread);
                thread.0.woken.store(self.now, Ordering::Relaxed);
                let here = self.random.from(0, self.online as u64 - 1) as usize;
                self.enqueue(thread, Why::Woken, here);
            }
            (0..self.online).for_each(|cpu| self.step(cpu));
        }
        for cpu in 0..self.online {
            self.count(cpu, Left::Still);
        }
    }
}

/// Nanoseconds that a thread has run.
pub fn ran(thread: &Ref) -> u64 {
    thread.0.ran.load(Ordering::Relaxed)
}

/// Whether `is` differs from `wanted` by at most `percent` of it.
pub fn near(is: u64, wanted: u64, percent: f64) -> bool {
    (is as f64 - wanted as f64).abs() <= wanted as f64 * percent / 100.0
}

/// What a usual thread of this group asks for.
pub fn of(group: u32) -> Attributes {
    Attributes {
        group,
        ..Attributes::NORMAL
    }
}

/// Starts threads of this group that run for ever.
pub fn spin(machine: &mut Machine, group: u32, count: usize) -> Vec<Ref> {
    (0..count)
        .map(|_| machine.spawn(of(group), Does::Spin, false))
        .collect()
}

/// Nanoseconds that all of them have run together.
pub fn total(threads: &[Ref]) -> u64 {
    threads.iter().map(ran).sum()
}
