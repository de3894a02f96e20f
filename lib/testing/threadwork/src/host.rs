//! The host as a system, for tests.

use std::sync::{Condvar, Mutex, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use crate::{Place, Shared, System};

pub struct Host;

impl System for Host {
    type Error = std::io::Error;
    type Shared<T: Send + 'static> = Locked<T>;

    fn now() -> u64 {
        static START: OnceLock<Instant> = OnceLock::new();
        1 + START.get_or_init(Instant::now).elapsed().as_nanos() as u64
    }
    fn sleep(nanoseconds: u64) {
        thread::sleep(Duration::from_nanos(nanoseconds));
    }
    fn yield_now() {
        thread::yield_now();
    }
    fn spawn(body: impl FnOnce() + Send + 'static) -> Result<(), std::io::Error> {
        thread::Builder::new().spawn(body).map(drop)
    }
}

pub struct Locked<T> {
    data: Mutex<T>,
    places: [Condvar; 2],
}

impl<T: Send + 'static> Shared<T> for Locked<T> {
    fn new(data: T) -> Self {
        Locked {
            data: Mutex::new(data),
            places: Default::default(),
        }
    }
    fn until<R>(&self, place: Place, mut step: impl FnMut(&mut T) -> Option<R>) -> R {
        let mut data = self.data.lock().expect("nobody panics with it");
        loop {
            if let Some(result) = step(&mut data) {
                return result;
            }
            let waited = self.places[place as usize].wait(data);
            data = waited.expect("nobody panics with it");
        }
    }
    fn wake_one(&self, place: Place) {
        self.places[place as usize].notify_one();
    }
    fn wake_all(&self, place: Place) {
        self.places[place as usize].notify_all();
    }
}

mod tests {
    use super::Host;
    use crate::team::{Queue, Team};
    use crate::work;
    use std::sync::Arc;
    use std::vec::Vec;

    #[test]
    fn a_team_starts_together_and_hands_in_all_results() {
        let team = Team::<Host, usize>::make(20, |number| number).expect("threads start");
        team.start();
        let mut results = team.results();
        results.sort_unstable();
        assert_eq!(results, Vec::from_iter(0..20));
    }

    #[test]
    fn a_queue_keeps_order_and_bound() {
        let queue = Arc::new(Queue::<Host>::new(2));
        let other = queue.clone();
        let team = Team::<Host, ()>::make(1, move |_| (1..=100).for_each(|n| other.push(n)));
        let team = team.expect("a thread starts");
        team.start();
        assert!((1..=100).all(|n| queue.pop() == n));
        team.results();
    }

    #[test]
    fn every_load_ends_and_counts() {
        let delays = work::wake_ups::<Host>(3, 5).expect("threads start");
        assert_eq!(delays.len(), 3 * 4);
        assert!(delays.is_sorted() && delays[0] > 0);
        assert!(work::messages::<Host>(2, 3, 10).expect("threads start") > 0);
        work::yields::<Host>(4, 1000).expect("threads start");
        let (shares, _) = work::spin::<Host>(4, 0, 20_000_000).expect("threads start");
        assert_eq!(shares.len(), 4);
    }
}
