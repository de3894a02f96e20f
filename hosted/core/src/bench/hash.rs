//! A hash table in a domain, from 2^12 to 2^26 entries, three quarters full (P7). A program in C
//! does the same.

use super::{launch, prepare, say, tell, tsc};
use crate::host::host;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use interfaces::TableBench;
use isolation::Reason;
use isolation::death::kill::kill;

/// Two to the power of these is how many entries there is room for.
const BITS: [u32; 8] = [12, 14, 16, 18, 20, 22, 24, 26];
/// Bytes of an entry.
const ENTRY: u64 = 16;
/// At least so many operations are measured for each size.
const OPERATIONS: u64 = 1 << 21;
/// At least so many rounds for each size.
const ROUNDS: u64 = 2;

/// All sizes that there is memory for.
pub fn hash() -> Result<(), String> {
    let image = prepare("domains/hash-bench")?;
    let (instance, table) = launch::<dyn TableBench>(&image, None, None)?;
    for bits in BITS {
        if ENTRY << bits > (host().memory)(1) / 10 * 9 {
            crate::log::print(format_args!("no memory for a table of 2^{bits} entries"));
            break;
        }
        one_size(&*table, bits)?;
    }
    kill(&instance.block, Reason::Exited);
    Ok(())
}

fn one_size(table: &dyn TableBench, bits: u32) -> Result<(), String> {
    let count = (1u64 << bits) / 4 * 3;
    let (mut inserts, mut lookups) = (Vec::new(), Vec::new());
    table.make(bits).map_err(say)?;
    for _ in 0..(OPERATIONS / count).max(ROUNDS) {
        table.clear().map_err(say)?;
        let begin = tsc();
        let used = table.insert(count).map_err(say)?;
        let filled = tsc();
        let sum = table.lookup(count).map_err(say)?;
        let found = tsc();
        if used != count || sum != count * (count - 1) / 2 {
            return Err(format!("{used} keys of {count}, sum {sum}"));
        }
        inserts.push(filled - begin);
        lookups.push(found - filled);
    }
    tell(
        &format!("P7i{bits}"),
        &format!("hash table of 2^{bits}, insert"),
        "ticks",
        &inserts,
        count,
    );
    tell(
        &format!("P7l{bits}"),
        &format!("hash table of 2^{bits}, lookup"),
        "ticks",
        &lookups,
        count,
    );
    Ok(())
}
