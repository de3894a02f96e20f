//! Writes that wait for the driver's thread.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use domain_rt::sync::{Condvar, Mutex, Wait};
use domain_rt::time;
use interfaces::{Block, BlockError, Handle, RVec, RpcError};

struct Job {
    number: u64,
    sector: u64,
    data: Vec<u8>,
}

struct State {
    jobs: VecDeque<Job>,
    answers: BTreeMap<u64, Result<(), BlockError>>,
    last: u64,
}

/// The queue.
pub struct Queue {
    state: Mutex<State>,
    asked: Condvar,
    answered: Condvar,
    /// How long a write may take, in nanoseconds; then the device is gone.
    patience: u64,
}

impl Queue {
    /// An empty one. A write may take `patience` milliseconds.
    pub fn new(patience: u64) -> Self {
        let state = State {
            jobs: VecDeque::new(),
            answers: BTreeMap::new(),
            last: 0,
        };
        Queue {
            state: Mutex::new(state),
            asked: Condvar::new(),
            answered: Condvar::new(),
            patience: patience.saturating_mul(1_000_000),
        }
    }

    /// Has `data` written and waits for it.
    pub fn write(&self, sector: u64, data: &[u8]) -> Result<(), BlockError> {
        let deadline = time::now().saturating_add(self.patience);
        let mut state = self.state.lock();
        state.last += 1;
        let number = state.last;
        let data = data.to_vec();
        state.jobs.push_back(Job {
            number,
            sector,
            data,
        });
        self.asked.notify_one();
        loop {
            if let Some(answer) = state.answers.remove(&number) {
                return answer;
            }
            let wait;
            (state, wait) = self.answered.wait_until(state, deadline);
            match wait {
                Wait::Interrupted => return Err(BlockError::Rpc(RpcError::Interrupted)),
                Wait::TimedOut if !state.answers.contains_key(&number) => {
                    return Err(BlockError::Gone);
                }
                Wait::TimedOut | Wait::Woken => {}
            }
        }
    }

    /// The work of the driver's thread, without end.
    pub fn work(&self, medium: &Handle<dyn Block>) {
        let mut state = self.state.lock();
        loop {
            let Some(job) = state.jobs.pop_front() else {
                (state, _) = self.asked.wait(state);
                continue;
            };
            drop(state);
            let answer = carry_out(medium, &job);
            state = self.state.lock();
            state.answers.insert(job.number, answer);
            self.answered.notify_all();
        }
    }
}

fn carry_out(medium: &Handle<dyn Block>, job: &Job) -> Result<(), BlockError> {
    let data = RVec::from_slice(&job.data)?;
    medium.write(job.sector, &data)
}
