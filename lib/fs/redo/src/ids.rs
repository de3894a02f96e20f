//! Inode numbers as clients know them, and as the file system knows them now: the same, until a
//! file that was made again after a crash got another number than before.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// The first number for clients that no file system has.
const FRESH: u64 = 1 << 32;

/// The two kinds of numbers. What is not in the tables has the same number in both.
#[derive(Clone, Debug, Default)]
pub struct Ids {
    /// From the client's number to the file system's; `None`: it leads to nothing any more.
    forward: BTreeMap<u64, Option<u64>>,
    /// From the file system's number to the client's.
    back: BTreeMap<u64, u64>,
    /// How many fresh numbers were given out.
    fresh: u64,
    /// Counts changes of all this.
    version: u64,
}

/// Bytes of one number in the [packed](Ids::pack) form: the client's and the file system's.
const PAIR: usize = 16;
/// Stands for no number there.
const NOTHING: u64 = u64::MAX;

impl Ids {
    /// Nothing was renumbered.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same numbers again, from what [`pack`](Self::pack) made. `None`: it did not make this.
    pub fn unpack(packed: &[u8]) -> Option<Self> {
        let mut words = packed.chunks_exact(8).map(|word| {
            let word = word.try_into().expect("eight bytes are a word");
            u64::from_le_bytes(word)
        });
        let mut ids = Ids {
            fresh: words.next()?,
            ..Ids::new()
        };
        while let Some(client) = words.next() {
            match words.next()? {
                NOTHING => ids.bury(client),
                real => ids.bind(client, real),
            }
        }
        Some(ids)
    }

    /// All of this, for somebody who comes later. `None`: there is no memory for it.
    pub fn pack(&self) -> Option<Vec<u8>> {
        let mut packed = Vec::new();
        let bytes = 8 + self.forward.len() * PAIR;
        packed.try_reserve_exact(bytes).ok()?;
        packed.extend_from_slice(&self.fresh.to_le_bytes());
        for (client, real) in &self.forward {
            packed.extend_from_slice(&client.to_le_bytes());
            packed.extend_from_slice(&real.unwrap_or(NOTHING).to_le_bytes());
        }
        Some(packed)
    }

    /// Counts changes: as long as it stays, so do all numbers.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Whether all numbers are the same.
    pub fn is_trivial(&self) -> bool {
        self.forward.is_empty()
    }

    /// The file system's number for a client's; `None` if it leads to nothing.
    pub fn real(&self, client: u64) -> Option<u64> {
        match self.forward.get(&client) {
            Some(&real) => real,
            None => Some(client),
        }
    }

    /// The client's number for one of the file system's.
    pub fn client(&mut self, real: u64) -> u64 {
        match self.back.get(&real) {
            Some(&client) => client,
            None => self.give(real),
        }
    }

    /// The client's number for an inode that was made just now. What had the file system's number
    /// before is gone.
    pub fn born(&mut self, real: u64) -> u64 {
        if let Some(gone) = self.back.remove(&real) {
            self.forward.remove(&gone);
            self.version += 1;
        }
        self.give(real)
    }

    /// A number for an inode that has none: the same, if no other inode goes by it.
    fn give(&mut self, real: u64) -> u64 {
        if !self.forward.contains_key(&real) {
            return real;
        }
        let client = FRESH + self.fresh;
        self.fresh += 1;
        self.bind(client, real);
        client
    }

    fn bind(&mut self, client: u64, real: u64) {
        self.version += 1;
        if client != real {
            self.forward.insert(client, Some(real));
            self.back.insert(real, client);
        }
    }

    /// The inodes with these numbers of the file system (first) have others now (second), or are
    /// lost.
    pub fn renumber(&mut self, changes: &[(u64, Option<u64>)]) {
        self.version += u64::from(!changes.is_empty());
        let clients: Vec<u64> = changes.iter().map(|&(old, _)| self.client(old)).collect();
        for (&(old, _), client) in changes.iter().zip(&clients) {
            self.back.remove(&old);
            self.forward.remove(client);
        }
        for (&(_, new), client) in changes.iter().zip(clients) {
            let Some(new) = new else {
                self.bury(client);
                continue;
            };
            // What went by the new number is gone, unless it was renumbered just now.
            if let Some(gone) = self.back.remove(&new) {
                self.forward.remove(&gone);
            }
            self.bind(client, new);
        }
    }

    /// The client's number leads to nothing from now on, and nobody else gets it.
    pub fn bury(&mut self, client: u64) {
        self.version += 1;
        if let Some(Some(real)) = self.forward.insert(client, None) {
            self.back.remove(&real);
        }
    }

    /// A buried number may be given out again.
    pub fn forget(&mut self, client: u64) {
        if self.forward.get(&client) == Some(&None) {
            self.version += 1;
            self.forward.remove(&client);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_the_same_at_first() {
        let mut ids = Ids::new();
        assert_eq!((ids.real(7), ids.client(7), ids.born(9)), (Some(7), 7, 9));
        assert!(ids.is_trivial());
    }

    #[test]
    fn clients_keep_their_numbers() {
        let mut ids = Ids::new();
        ids.renumber(&[(12, Some(13)), (13, Some(12)), (14, Some(20))]);
        assert_eq!(
            [12, 13, 14].map(|it| ids.real(it)),
            [Some(13), Some(12), Some(20)]
        );
        assert_eq!([12, 13, 20].map(|it| ids.client(it)), [13, 12, 14]);
        ids.renumber(&[(13, Some(12)), (12, Some(13))]);
        assert_eq!(
            [12, 13, 14].map(|it| ids.real(it)),
            [Some(12), Some(13), Some(20)]
        );
        ids.renumber(&[(20, Some(14))]);
        assert!(ids.is_trivial());
    }

    #[test]
    fn a_number_in_use_is_not_given_to_another() {
        let mut ids = Ids::new();
        ids.renumber(&[(12, Some(15))]);
        let other = ids.born(12);
        assert!(other >= FRESH);
        assert_eq!(ids.real(other), Some(12));
        assert_eq!(ids.real(12), Some(15));
        assert_eq!(ids.client(12), other);
    }

    #[test]
    fn a_reused_number_leads_to_the_new_inode_only() {
        let mut ids = Ids::new();
        ids.renumber(&[(12, Some(15))]);
        // 15 was removed and is made anew: what clients called 12 is gone.
        assert_eq!(ids.born(15), 15);
        assert_eq!(ids.real(15), Some(15));
        assert!(ids.is_trivial());
    }

    #[test]
    fn a_lost_inode_s_number_leads_to_nothing() {
        let mut ids = Ids::new();
        ids.renumber(&[(11, None), (12, Some(11))]);
        assert_eq!([11, 12].map(|it| ids.real(it)), [None, Some(11)]);
        assert_eq!(ids.client(11), 12);
    }

    #[test]
    fn a_buried_number_leads_to_nothing_until_it_is_forgotten() {
        let mut ids = Ids::new();
        ids.bury(12);
        assert_eq!(ids.real(12), None);
        let other = ids.born(12);
        assert!(other >= FRESH && ids.real(other) == Some(12));
        ids.forget(12);
        ids.forget(other);
        assert_eq!(ids.real(12), Some(12));
        assert_eq!(ids.real(other), Some(12));
    }

    #[test]
    fn numbers_are_the_same_after_they_were_packed() {
        let mut ids = Ids::new();
        ids.renumber(&[(12, Some(15)), (11, None), (15, Some(12))]);
        let (fresh, before) = (ids.client(11), ids.version());
        let packed = ids.pack().expect("there is memory");
        let mut again = Ids::unpack(&packed).expect("it was packed");
        for client in [11, 12, 13, 15, fresh] {
            assert_eq!(again.real(client), ids.real(client), "{client}");
        }
        assert_eq!([11, 12, 15].map(|it| again.client(it)), [fresh, 15, 12]);
        // A number that was given out is not given to another.
        again.bury(14);
        assert_eq!((again.client(14), ids.version()), (fresh + 1, before));
    }

    #[test]
    fn half_of_a_packed_number_is_refused() {
        let mut ids = Ids::new();
        ids.renumber(&[(12, Some(15))]);
        let packed = ids.pack().expect("there is memory");
        assert!(Ids::unpack(&packed[..16]).is_none() && Ids::unpack(&[]).is_none());
    }

    #[test]
    fn what_changes_a_number_changes_the_version() {
        let mut ids = Ids::new();
        let mut seen = ids.version();
        let mut is_new = |ids: &Ids| core::mem::replace(&mut seen, ids.version()) != ids.version();
        ids.client(7);
        assert!(!is_new(&ids));
        ids.renumber(&[(12, Some(15))]);
        assert!(is_new(&ids));
        ids.client(12);
        assert!(is_new(&ids));
        ids.born(15);
        assert!(is_new(&ids));
        ids.bury(9);
        assert!(is_new(&ids));
        ids.forget(9);
        assert!(is_new(&ids));
    }
}
