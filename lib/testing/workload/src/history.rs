//! All moments of a work, and what a crash may leave of them.
//!
//! After a crash the names must be those of one moment: the last acknowledged one or a later one.
//! So a rename was done or not, and never half. The content of a file that did not change since it
//! was acknowledged must be the same, byte for byte. Of a file that did change, the length must be
//! that of one of the moments, and each byte that of one of them, or a zero that a truncation left:
//! never what another file had.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::model::{Model, Node};
use crate::operation::{Operation, Workload};

/// What was found at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// A directory.
    Directory,
    /// A file with this content.
    File(Vec<u8>),
    /// A symbolic link to there.
    Link(String),
}

/// What was found, by path relative to the directory of the work.
pub type Tree = BTreeMap<String, Found>;

/// What was on the disk when an operation returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acknowledged {
    /// Everything.
    All,
    /// This file.
    File(u32),
}

/// All moments of a work.
pub struct History {
    /// What the files should be after so many operations.
    moments: Vec<Model>,
    /// After so many operations this was acknowledged.
    acknowledged: Vec<(usize, Acknowledged)>,
    /// After so many operations the content of this file was. That says nothing of names.
    data: Vec<(usize, u32)>,
}

impl History {
    /// The first `operations` operations of `seed`.
    pub fn of(seed: u64, operations: usize) -> Self {
        let mut work = Workload::new(seed);
        let mut history = History {
            moments: Vec::from([work.model().clone()]),
            acknowledged: Vec::from([(0, Acknowledged::All)]),
            data: Vec::new(),
        };
        for done in 1..=operations {
            let what = match work.advance() {
                Operation::Sync => Some(Acknowledged::All),
                Operation::SyncFile { file, .. } => Some(Acknowledged::File(file)),
                Operation::SyncData { file, .. } => {
                    history.data.push((done, file));
                    None
                }
                _ => None,
            };
            history.moments.push(work.model().clone());
            history
                .acknowledged
                .extend(what.map(|acknowledged| (done, acknowledged)));
        }
        history
    }

    /// How often something is acknowledged.
    pub fn acknowledgements(&self) -> usize {
        // The first is that of the start.
        self.acknowledged.len() - 1
    }

    /// How many operations may have begun when nothing behind the first `done`, the last of which
    /// was acknowledged, was acknowledged yet.
    pub fn begun(&self, done: usize) -> usize {
        let next = self.acknowledged.iter().find(|(number, _)| *number > done);
        next.map_or(self.moments.len() - 1, |(number, _)| *number)
    }

    /// Whether `tree` is what a crash may leave when `done` operations, the last of which was
    /// acknowledged, were done, and no more than `begun` had begun.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check(&self, done: usize, begun: usize, tree: &Tree) -> Result<(), String> {
        let possible = &self.moments[done..=begun];
        let mut wrong = String::new();
        let mut best = usize::MAX;
        for (moment, number) in possible.iter().zip(done..) {
            match self.compare(moment, done, begun, tree) {
                Ok(()) => return Ok(()),
                Err((count, text)) if count < best => {
                    best = count;
                    wrong = format!("as after operation {number}, but {text}");
                }
                Err(_) => {}
            }
        }
        Err(format!("between operations {done} and {begun}: {wrong}"))
    }

    /// Compares with one moment; how many things are wrong, and the first.
    fn compare(
        &self,
        moment: &Model,
        done: usize,
        begun: usize,
        tree: &Tree,
    ) -> Result<(), (usize, String)> {
        let mut wrong = Vec::new();
        for path in tree.keys() {
            if !moment.names().contains_key(path) {
                wrong.push(format!("{path} is there"));
            }
        }
        for (path, node) in moment.names() {
            let result = match (node, tree.get(path)) {
                (_, None) => Err(String::from("it is not there")),
                (Node::Directory, Some(Found::Directory)) => Ok(()),
                (Node::Link(one), Some(Found::Link(other))) if one == other => Ok(()),
                (Node::File(file), Some(Found::File(bytes))) => {
                    self.content(*file, done, begun, bytes)
                }
                _ => Err(String::from("it is something else")),
            };
            wrong.extend(result.err().map(|text| format!("{path}: {text}")));
        }
        match wrong.is_empty() {
            true => Ok(()),
            false => Err((wrong.len(), wrong.swap_remove(0))),
        }
    }

    /// The last moment before `done` at which all of the file was acknowledged.
    fn safe_since(&self, file: u32, done: usize) -> usize {
        let covers = |what: &Acknowledged| match what {
            Acknowledged::All => true,
            Acknowledged::File(one) => *one == file,
        };
        let before = self.acknowledged.iter().rev();
        let mut before = before.filter(|(number, what)| *number <= done && covers(what));
        let all = before.next().map_or(0, |(number, _)| *number);
        let mut data = self.data.iter().rev();
        let data = data.find(|(number, one)| *number <= done && *one == file);
        data.map_or(all, |(number, _)| all.max(*number))
    }

    fn content(&self, file: u32, done: usize, begun: usize, found: &[u8]) -> Result<(), String> {
        let since = self.safe_since(file, done);
        let moments = self.moments[since..=begun].iter();
        let mut versions: Vec<_> = moments.filter_map(|moment| moment.content(file)).collect();
        versions.dedup_by(|one, other| Arc::ptr_eq(one, other));
        // Mostly so, and much faster than a look at each byte.
        if versions.iter().any(|one| ***one == *found) {
            return Ok(());
        }
        if !versions.iter().any(|one| one.len() == found.len()) {
            return Err(format!("{} bytes long", found.len()));
        }
        let shortest = versions.iter().map(|one| one.len()).min().unwrap_or(0);
        let is_possible = |(at, byte): &(usize, &u8)| {
            let zero = **byte == 0 && *at >= shortest;
            zero || versions.iter().any(|one| one.get(*at) == Some(*byte))
        };
        let wrong = found.iter().enumerate().find(|pair| !is_possible(pair));
        match wrong {
            None => Ok(()),
            Some((at, _)) => Err(format!(
                "wrong at byte {at} of {} ({} versions)",
                found.len(),
                versions.len()
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEED: u64 = 5;
    const LENGTH: usize = 150;

    fn tree(model: &Model) -> Tree {
        let found = |node: &Node| match node {
            Node::Directory => Found::Directory,
            Node::Link(target) => Found::Link(target.clone()),
            Node::File(file) => Found::File(model.content(*file).expect("a file").to_vec()),
        };
        let names = model.names().iter();
        names
            .map(|(path, node)| (path.clone(), found(node)))
            .collect()
    }

    /// The last acknowledged number of operations before `number`.
    fn acknowledged(history: &History, number: usize) -> usize {
        let before = history.acknowledged.iter().rev();
        let mut before = before.filter(|(at, _)| *at <= number);
        before.next().expect("0 is").0
    }

    #[test]
    fn every_moment_may_be_found_and_none_before_the_acknowledged_one() {
        let history = History::of(SEED, LENGTH);
        let mut refused = 0;
        for number in 0..=LENGTH {
            let done = acknowledged(&history, number);
            let begun = history.begun(done);
            let found = tree(&history.moments[number]);
            history.check(done, begun, &found).expect("possible");
            let later = history.check(begun, history.begun(begun), &found);
            refused += usize::from(later.is_err());
        }
        assert!(refused > LENGTH / 3, "{refused}");
    }

    #[test]
    fn a_lost_byte_a_lost_name_and_a_strange_name_are_seen() {
        let history = History::of(SEED, LENGTH);
        let done = acknowledged(&history, LENGTH);
        let good = tree(&history.moments[done]);
        let check = |tree: &Tree| history.check(done, done, tree);
        check(&good).expect("as it should be");
        for path in good.keys() {
            let mut bad = good.clone();
            match bad.get_mut(path) {
                Some(Found::File(bytes)) if !bytes.is_empty() => {
                    let middle = bytes.len() / 2;
                    bytes[middle] ^= 0x55;
                }
                _ => drop(bad.remove(path)),
            }
            assert!(check(&bad).is_err(), "{path}");
        }
        let mut bad = good;
        bad.insert("strange".into(), Found::Directory);
        assert!(check(&bad).is_err());
    }

    #[test]
    fn bytes_of_another_file_are_seen_where_a_file_changed() {
        let history = History::of(SEED, LENGTH);
        let mut seen = 0;
        for (number, moment) in history.moments.iter().enumerate().step_by(40) {
            let done = acknowledged(&history, number);
            for (path, found) in tree(moment) {
                let mut bad = tree(moment);
                let Found::File(bytes) = found else { continue };
                let garbage = bytes.iter().map(|byte| byte ^ 0x5a).collect();
                bad.insert(path, Found::File(garbage));
                if bytes.len() > 100 {
                    assert!(history.check(done, number, &bad).is_err());
                    seen += 1;
                }
            }
        }
        assert!(seen > 5);
    }
}
