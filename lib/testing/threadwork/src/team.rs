//! Threads that are made first, start together, and hand in a result each; and queues between them.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::{Place, Shared, System};

struct State<R> {
    /// Threads that are there.
    ready: usize,
    started: bool,
    results: Vec<R>,
}

/// What a thread can hand in: it borrows nothing. (A bound by a lifetime may not stand at a
/// struct.)
pub trait Given: Send + 'static {}

impl<R: Send + 'static> Given for R {}

/// Threads that wait for their start, or are under way.
pub struct Team<S: System, R: Given> {
    count: usize,
    state: Arc<S::Shared<State<R>>>,
}

impl<S: System, R: Given> Team<S, R> {
    /// Makes `count` threads; number `n` will do `work(n)`.
    ///
    /// # Errors
    /// If one of them does not start. Those that did wait for ever.
    pub fn make(
        count: usize,
        work: impl Fn(usize) -> R + Clone + Send + 'static,
    ) -> Result<Self, S::Error> {
        let state = Arc::new(S::Shared::new(State {
            ready: 0,
            started: false,
            results: Vec::with_capacity(count),
        }));
        for number in 0..count {
            let (state, work) = (state.clone(), work.clone());
            S::spawn(move || member::<S, R>(&state, || work(number)))?;
        }
        Ok(Team { count, state })
    }

    /// Waits until the last one is there.
    pub fn gather(&self) {
        let all_are_there = |state: &mut State<R>| (state.ready == self.count).then_some(());
        self.state.until(Place::Giving, all_are_there);
    }

    /// Lets all go at once, as soon as the last one is there; the time.
    pub fn start(&self) -> u64 {
        let all_are_there = |state: &mut State<R>| {
            state.started = state.ready == self.count;
            state.started.then_some(())
        };
        self.state.until(Place::Giving, all_are_there);
        let now = S::now();
        self.state.wake_all(Place::Taking);
        now
    }

    /// Waits for the last one; what each said, in the order in which they ended.
    pub fn results(self) -> Vec<R> {
        let all_are_done = |state: &mut State<R>| {
            let done = state.results.len() == self.count;
            done.then(|| core::mem::take(&mut state.results))
        };
        self.state.until(Place::Giving, all_are_done)
    }
}

/// A thread of a team.
fn member<S: System, R: Given>(state: &Arc<S::Shared<State<R>>>, work: impl FnOnce() -> R) {
    state.change(|state| state.ready += 1);
    state.wake_one(Place::Giving);
    state.until(Place::Taking, |state| state.started.then_some(()));
    let mut result = Some(work());
    state.change(|state| state.results.extend(result.take()));
    state.wake_one(Place::Giving);
}

/// A queue with a bound, between threads.
pub struct Queue<S: System> {
    bound: usize,
    items: S::Shared<VecDeque<u64>>,
}

impl<S: System> Queue<S> {
    /// An empty one for at most `bound` items.
    pub fn new(bound: usize) -> Self {
        let items = S::Shared::new(VecDeque::with_capacity(bound));
        Queue { bound, items }
    }

    /// Adds an item, and waits for room before that.
    pub fn push(&self, item: u64) {
        self.items.until(Place::Giving, |items| {
            (items.len() < self.bound).then(|| items.push_back(item))
        });
        self.items.wake_one(Place::Taking);
    }

    /// Takes the first item, and waits for one before that.
    pub fn pop(&self) -> u64 {
        let item = self.items.until(Place::Taking, VecDeque::pop_front);
        self.items.wake_one(Place::Giving);
        item
    }
}
