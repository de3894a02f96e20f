//! What a power cut leaves on the medium behind a volatile write cache.
//!
//! What a flush covers that was answered is there. Of what was written later each sector may be
//! there or not, in any of the contents that it was given: a cache writes in any order, and only
//! sectors are written whole.

use machine::nbd::{Event, Tape};
use workload::Random;

const SECTOR: usize = 512;

/// How writes that no flush covers are treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// From some write on all are lost; at times all of them.
    Drop,
    /// Any subset of sectors is lost, and of what is there any content may be the last.
    Reorder,
    /// The same, and flushes do nothing: a disk that lies, on which no file system is safe.
    Lie,
}

/// The content of the medium after the first `position` events, and how many writes were lost,
/// wholly or in part.
pub fn after_cut(
    tape: &Tape,
    position: usize,
    loss: Loss,
    random: &mut Random,
) -> (Vec<u8>, usize) {
    let events = &tape.events[..position];
    let mut writes = Vec::new();
    let mut safe = 0;
    for event in events {
        match event {
            Event::Write { offset, data } => writes.push((*offset, &data[..])),
            Event::Flush { .. } if loss == Loss::Lie => {}
            Event::Flush { writes } => safe = safe.max(*writes),
        }
    }
    let mut medium = tape.base.clone();
    let (flushed, cached) = writes.split_at(safe);
    for (offset, data) in flushed {
        put(&mut medium, *offset, data);
    }
    let lost = match loss {
        Loss::Drop => drop_some(&mut medium, cached, random),
        Loss::Reorder | Loss::Lie => reorder(&mut medium, cached, random),
    };
    (medium, lost)
}

fn put(medium: &mut [u8], offset: usize, data: &[u8]) {
    medium[offset..offset + data.len()].copy_from_slice(data);
}

fn drop_some(medium: &mut [u8], cached: &[(usize, &[u8])], random: &mut Random) -> usize {
    let kept = match random.below(2) {
        0 => 0,
        _ => random.below(cached.len() as u64 + 1) as usize,
    };
    for (offset, data) in &cached[..kept] {
        put(medium, *offset, data);
    }
    cached.len() - kept
}

fn reorder(medium: &mut [u8], cached: &[(usize, &[u8])], random: &mut Random) -> usize {
    let mut order: Vec<usize> = (0..cached.len()).collect();
    for at in (1..order.len()).rev() {
        order.swap(at, random.below(at as u64 + 1) as usize);
    }
    // One of so many sectors is lost; 1: all are there, in another order.
    let share = [1, 2, 2, 8][random.below(4) as usize];
    let mut lost = 0;
    for (offset, data) in order.iter().map(|at| cached[*at]) {
        let mut whole = true;
        for (sector, at) in data.chunks(SECTOR).zip((offset..).step_by(SECTOR)) {
            match share > 1 && random.below(share) == 0 {
                true => whole = false,
                false => put(medium, at, sector),
            }
        }
        lost += usize::from(!whole);
    }
    lost
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tape() -> Tape {
        let write = |sector: usize, value: u8| Event::Write {
            offset: sector * SECTOR,
            data: vec![value; 2 * SECTOR],
        };
        Tape {
            base: vec![0; 8 * SECTOR],
            // The third write was under way when the flush came.
            events: vec![
                write(0, 1),
                write(2, 2),
                write(4, 3),
                Event::Flush { writes: 2 },
                write(0, 4),
            ],
        }
    }

    #[test]
    fn what_was_flushed_is_always_there_and_the_rest_sometimes() {
        for loss in [Loss::Drop, Loss::Reorder] {
            let mut seen = std::collections::BTreeSet::new();
            for number in 0..200 {
                let (medium, lost) = after_cut(&tape(), 5, loss, &mut Random::new(1, number));
                assert_eq!(medium[2 * SECTOR..4 * SECTOR], [2; 2 * SECTOR]);
                assert!(
                    medium[..2 * SECTOR]
                        .iter()
                        .all(|byte| [1, 4].contains(byte))
                );
                assert!(
                    medium[4 * SECTOR..6 * SECTOR]
                        .iter()
                        .all(|byte| [0, 3].contains(byte))
                );
                assert!(lost <= 2);
                seen.insert((medium[0], medium[SECTOR], medium[4 * SECTOR]));
            }
            let torn = seen.iter().any(|(first, second, _)| first != second);
            assert_eq!(torn, loss == Loss::Reorder);
            // Only another order has the last write without the one before it.
            assert_eq!(seen.contains(&(4, 4, 0)), loss == Loss::Reorder);
            assert!(seen.contains(&(1, 1, 0)) && seen.contains(&(4, 4, 3)));
        }
    }

    #[test]
    fn before_the_flush_nothing_is_sure() {
        let all = (0..50).map(|number| {
            let (medium, _) = after_cut(&tape(), 3, Loss::Drop, &mut Random::new(2, number));
            medium[2 * SECTOR]
        });
        let all: std::collections::BTreeSet<u8> = all.collect();
        assert_eq!(all, [0, 2].into());
    }
}
