//! How to get from a function to its caller: the unwind tables that the compiler writes.

use gimli::{
    BaseAddresses, CfaRule, CieOrFde, DebugFrame, EndianRcSlice, LittleEndian, RegisterRule,
    UnwindContext, UnwindSection, UnwindTableRow, X86_64,
};
use stacktext::{Cfa, Rule, SavedBp};

/// Bytes of an address.
const WORD: u8 = 8;

type Bytes = EndianRcSlice<LittleEndian>;

/// The unwind tables of one file.
pub struct Table(DebugFrame<Bytes>);

impl Table {
    /// From the section `.debug_frame`.
    pub fn new(section: Vec<u8>) -> Table {
        let mut frames = DebugFrame::from(EndianRcSlice::new(section.into(), LittleEndian));
        frames.set_address_size(WORD);
        Table(frames)
    }

    /// How to get from the function at `address` to its caller. `None`: the tables do not say.
    pub fn rule(&self, address: u64) -> Option<Rule> {
        let mut context = UnwindContext::new();
        let bases = BaseAddresses::default();
        let row = self.0.unwind_info_for_address(
            &bases,
            &mut context,
            address,
            DebugFrame::cie_from_offset,
        );
        rule_of(row.ok()?)
    }

    /// All rules: from which address on each holds, in the order of those.
    pub fn rules(&self) -> Vec<(u64, Option<Rule>)> {
        let mut rows = self.rows();
        rows.sort_by_key(|(start, ..)| *start);
        let (mut rules, mut covered) = (Vec::new(), 0);
        for (start, end, rule) in rows {
            // What the linker left out has an address that others have, too.
            if start < covered || end <= start {
                continue;
            }
            if start > covered {
                rules.push((covered, None));
            }
            rules.push((start, rule));
            covered = end;
        }
        rules.push((covered, None));
        rules
    }

    fn rows(&self) -> Vec<(u64, u64, Option<Rule>)> {
        let bases = BaseAddresses::default();
        let (mut context, mut found) = (UnwindContext::new(), Vec::new());
        let mut entries = self.0.entries(&bases);
        while let Ok(Some(entry)) = entries.next() {
            let CieOrFde::Fde(partial) = entry else {
                continue;
            };
            let Ok(fde) = partial.parse(DebugFrame::cie_from_offset) else {
                continue;
            };
            let Ok(mut rows) = fde.rows(&self.0, &bases, &mut context) else {
                continue;
            };
            while let Ok(Some(row)) = rows.next_row() {
                found.push((row.start_address(), row.end_address(), rule_of(row)));
            }
        }
        found
    }
}

fn rule_of(row: &UnwindTableRow<usize>) -> Option<Rule> {
    let cfa = match *row.cfa() {
        CfaRule::RegisterAndOffset {
            register: X86_64::RSP,
            offset,
        } => Cfa::Sp(offset.try_into().ok()?),
        CfaRule::RegisterAndOffset {
            register: X86_64::RBP,
            offset,
        } => Cfa::Bp(offset.try_into().ok()?),
        _ => return None,
    };
    let bp = match row.register(X86_64::RBP) {
        RegisterRule::Offset(offset) => SavedBp::At(offset.try_into().ok()?),
        RegisterRule::SameValue | RegisterRule::Undefined => SavedBp::Same,
        _ => SavedBp::Unknown,
    };
    Some(Rule { cfa, bp })
}
