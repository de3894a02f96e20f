//! A plan: which fault happens in which run. Drawn from a seed and the run's number alone, so that
//! every run can be done again.

use core::fmt;

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An instruction is replaced by one that does not exist.
    Opcode,
    /// An instruction is replaced by a call of itself, which uses up the stack.
    Overflow,
    /// An instruction is replaced by a jump to itself.
    Hang,
    /// The domain is ended from outside.
    Kill,
    /// The domain is ended from outside when the clients are done, and the shadow then has one call
    /// for the next, which does not go through its queue: before that ends with the run, or late,
    /// when all had been ended.
    Aside,
    /// The domain has less memory than it needs.
    Memory,
    /// The medium answers late.
    Delay,
    /// The medium answers that it is gone.
    Failure,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 8] = [
        Kind::Opcode,
        Kind::Overflow,
        Kind::Hang,
        Kind::Kill,
        Kind::Aside,
        Kind::Memory,
        Kind::Delay,
        Kind::Failure,
    ];

    /// Its name in plans and ledgers.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Opcode => "opcode",
            Kind::Overflow => "overflow",
            Kind::Hang => "hang",
            Kind::Kill => "kill",
            Kind::Aside => "aside",
            Kind::Memory => "memory",
            Kind::Delay => "delay",
            Kind::Failure => "failure",
        }
    }

    /// How often it is drawn, out of a hundred.
    fn weight(self) -> u64 {
        match self {
            Kind::Opcode => 48,
            Kind::Overflow => 8,
            Kind::Hang => 5,
            Kind::Kill => 19,
            Kind::Aside => 1,
            Kind::Memory => 8,
            Kind::Delay => 4,
            Kind::Failure => 7,
        }
    }

    /// The bytes that replace an instruction of `length` bytes. They are never longer than it, so
    /// that no other instruction is changed; empty if this kind plants nothing.
    pub fn code(self, length: u8) -> &'static [u8] {
        match self {
            // The one-byte instruction was taken out of 64-bit mode.
            Kind::Opcode if length < 2 => &[0x06],
            Kind::Opcode => &[0x0f, 0x0b],
            Kind::Overflow => &[0xe8, 0xfb, 0xff, 0xff, 0xff],
            Kind::Hang => &[0xeb, 0xfe],
            _ => &[],
        }
    }
}

/// An instruction of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// Offset of its first byte in the loaded image.
    pub place: u32,
    /// Its bytes.
    pub length: u8,
}

/// One fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The run's number.
    pub run: u64,
    /// What goes wrong.
    pub kind: Kind,
    /// The instruction that is replaced; of no meaning for other kinds.
    pub at: Instruction,
    /// Kill: microseconds after the start. Aside: 1 if the call comes late. Memory: KiB that are
    /// missing. Delay: microseconds. Failure and delay: see also `count`.
    pub amount: u32,
    /// Delay and failure: which request to the medium it is, from 1.
    pub count: u32,
    /// The seed of the workload.
    pub seed: u64,
}

impl Fault {
    /// One that never comes.
    pub fn harmless(run: u64) -> Self {
        Fault {
            run,
            kind: Kind::Delay,
            at: Instruction {
                place: 0,
                length: 1,
            },
            amount: 1,
            count: u32::MAX,
            seed: run,
        }
    }

    /// The same, or an end from outside where it would be a fault of a device's driver.
    pub fn without_device(self) -> Self {
        match self.kind {
            Kind::Aside | Kind::Memory | Kind::Delay | Kind::Failure => Fault {
                kind: Kind::Kill,
                amount: self.amount % LATEST_KILL as u32,
                ..self
            },
            _ => self,
        }
    }
}

/// Numbers that look random (SplitMix64).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A sequence that `seed` decides.
    pub fn new(seed: u64) -> Self {
        Random(seed)
    }

    /// The next number.
    pub fn next_number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`, which is not 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next_number() % end
    }
}

/// Longest time from the start of a run to a kill, in microseconds.
const LATEST_KILL: u64 = 250;
/// Longest delay of the medium, in microseconds.
const LONGEST_DELAY: u64 = 2000;
/// KiB of private memory that may be missing.
const MOST_MISSING: u64 = 60;
/// The last request to the medium that may go wrong.
const LAST_REQUEST: u64 = 24;

/// How often an instruction is drawn until one is long enough.
const MOST_TRIES: u32 = 10_000;

/// The fault of run number `run`. `text` are the instructions that may be replaced.
///
/// Returns `None` if there is none long enough.
pub fn draw(seed: u64, run: u64, text: &[Instruction]) -> Option<Fault> {
    let mut random = Random::new(seed ^ run.wrapping_mul(0xd134_2543_de82_ef95));
    let mut ball = random.below(100);
    let mut kind = Kind::Kill;
    for candidate in Kind::ALL {
        if ball < candidate.weight() {
            kind = candidate;
            break;
        }
        ball -= candidate.weight();
    }
    let needed = kind.code(2).len() as u8;
    let needed = if kind == Kind::Opcode { 1 } else { needed };
    if text.is_empty() {
        return None;
    }
    let at = (0..MOST_TRIES)
        .map(|_| text[random.below(text.len() as u64) as usize])
        .find(|at| at.length >= needed)?;
    let amount = match kind {
        Kind::Kill => random.below(LATEST_KILL),
        Kind::Aside => random.below(2),
        Kind::Memory => random.below(MOST_MISSING),
        Kind::Delay => 1 + random.below(LONGEST_DELAY),
        _ => 0,
    };
    Some(Fault {
        run,
        kind,
        at,
        amount: amount as u32,
        count: 1 + random.below(LAST_REQUEST) as u32,
        seed: random.next_number(),
    })
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Fault {
            run,
            kind,
            at,
            amount,
            count,
            seed,
        } = self;
        write!(
            f,
            "{run} {} {} {} {amount} {count} {seed}",
            kind.name(),
            at.place,
            at.length
        )
    }
}

/// The fault that a line of a plan says.
pub fn parse(line: &str) -> Option<Fault> {
    let mut words = line.split_ascii_whitespace();
    let run = words.next()?.parse().ok()?;
    let name = words.next()?;
    let kind = Kind::ALL.into_iter().find(|kind| kind.name() == name)?;
    let at = Instruction {
        place: words.next()?.parse().ok()?,
        length: words.next()?.parse().ok()?,
    };
    let fault = Fault {
        run,
        kind,
        at,
        amount: words.next()?.parse().ok()?,
        count: words.next()?.parse().ok()?,
        seed: words.next()?.parse().ok()?,
    };
    words.next().is_none().then_some(fault)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use alloc::vec::Vec;

    fn text() -> Vec<Instruction> {
        (0..100)
            .map(|n| Instruction {
                place: n * 8,
                length: (n % 7) as u8 + 1,
            })
            .collect()
    }

    #[test]
    fn a_run_is_the_same_every_time_and_unlike_the_next() {
        let text = text();
        let draw_some = |seed| -> Vec<_> { (0..50).map(|run| draw(seed, run, &text)).collect() };
        assert_eq!(draw_some(1), draw_some(1));
        assert_ne!(draw_some(1), draw_some(2));
        let mut seeds: Vec<_> = draw_some(1)
            .into_iter()
            .flatten()
            .map(|fault| fault.seed)
            .collect();
        seeds.sort_unstable();
        seeds.dedup();
        assert_eq!(seeds.len(), 50);
    }

    #[test]
    fn every_kind_is_drawn_as_often_as_it_should_be() {
        let text = text();
        assert_eq!(Kind::ALL.iter().map(|kind| kind.weight()).sum::<u64>(), 100);
        let faults: Vec<_> = (0..20_000).filter_map(|run| draw(7, run, &text)).collect();
        for kind in Kind::ALL {
            let share = faults.iter().filter(|fault| fault.kind == kind).count() as u64 / 200;
            assert!(share.abs_diff(kind.weight()) <= 2, "{kind:?}: {share} %");
        }
    }

    #[test]
    fn what_is_planted_fits_into_the_instruction() {
        let text = text();
        for fault in (0..20_000).filter_map(|run| draw(3, run, &text)) {
            let code = fault.kind.code(fault.at.length);
            assert!(code.len() <= usize::from(fault.at.length), "{fault}");
        }
    }

    #[test]
    fn without_instructions_nothing_is_drawn() {
        assert_eq!(draw(1, 1, &[]), None);
        let short = [Instruction {
            place: 0,
            length: 1,
        }];
        let mut drawn = (0..1000).filter_map(|run| draw(1, run, &short));
        assert!(!drawn.any(|fault| fault.kind == Kind::Overflow));
    }

    #[test]
    fn a_line_says_the_fault() {
        for fault in (0..1000).filter_map(|run| draw(5, run, &text())) {
            assert_eq!(parse(&fault.to_string()), Some(fault));
        }
        for bad in [
            "",
            "1",
            "1 opcode",
            "1 what 2 3 4 5 6",
            "x kill 1 2 3 4 5",
            "1 kill 1 2 3 4 5 6",
            "1 kill 1 999 3 4 5",
        ] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
