//! Numbers that look random and depend on their seed alone (SplitMix64).

/// Where they come from.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Those of number `index` of the run with this seed.
    pub fn of(seed: u64, index: u64) -> Self {
        let mut random = Random(seed);
        let start = random.next();
        Random(start ^ index.wrapping_mul(0xd134_2543_de82_ef95))
    }

    /// The next one.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`, or 0.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    /// Whether something happens that does so once in `times`.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }
}
