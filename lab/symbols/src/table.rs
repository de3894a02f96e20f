//! How to get from a function to its caller: the unwind tables that the compiler writes.

use gimli::{
    BaseAddresses, CfaRule, DebugFrame, EndianRcSlice, LittleEndian, Register, RegisterRule,
    UnwindContext, UnwindSection, X86_64,
};

type Bytes = EndianRcSlice<LittleEndian>;

/// Bytes between a return address and where the caller's stack begins.
pub const WORD: u64 = 8;

/// The unwind tables of one file.
pub struct Table(DebugFrame<Bytes>);

/// Where a caller is found.
pub struct Step {
    /// The canonical frame address: the caller's stack pointer.
    pub cfa: u64,
    /// The caller's rbp, from the innermost stack pointer; `None`: nobody knows.
    pub bp: Option<u64>,
}

impl Table {
    /// From the section `.debug_frame`.
    pub fn new(section: Vec<u8>) -> Table {
        let mut frames = DebugFrame::from(EndianRcSlice::new(section.into(), LittleEndian));
        frames.set_address_size(WORD as u8);
        Table(frames)
    }

    /// The caller of the function at `address`, which has this stack pointer and rbp. `None`: the
    /// tables do not say.
    pub fn step(
        &self,
        address: u64,
        sp: u64,
        bp: Option<u64>,
        saved: impl Fn(u64) -> Option<u64>,
    ) -> Option<Step> {
        let mut context = UnwindContext::new();
        let bases = BaseAddresses::default();
        let row = self
            .0
            .unwind_info_for_address(&bases, &mut context, address, DebugFrame::cie_from_offset)
            .ok()?;
        let cfa = match *row.cfa() {
            CfaRule::RegisterAndOffset {
                register: X86_64::RSP,
                offset,
            } => sp.checked_add_signed(offset)?,
            CfaRule::RegisterAndOffset {
                register: X86_64::RBP,
                offset,
            } => bp?.checked_add_signed(offset)?,
            _ => return None,
        };
        let rule = |register: Register| row.register(register);
        let bp = match rule(X86_64::RBP) {
            RegisterRule::Offset(offset) => saved(cfa.checked_add_signed(offset)?),
            RegisterRule::SameValue | RegisterRule::Undefined => bp,
            _ => None,
        };
        Some(Step { cfa, bp })
    }
}
