//! A hash table in a domain: for P7 of the benchmark list. `lab/peers/hash/table.c` does the same
//! in C.
#![no_std]
#![forbid(unsafe_code)]

use core::num::NonZeroU64;
use domain_rt::sync::Mutex;
use interfaces::{Handle, RpcError, RpcResult, TableBench};
use probing::Table;

/// Makes the domain's object, without a table yet.
///
/// # Errors
/// There is no memory for it.
pub fn start() -> RpcResult<Handle<dyn TableBench>> {
    Handle::new(Bench(Mutex::new(None)))
}

struct Bench(Mutex<Option<Table>>);

/// Key number `number`: all are different, and in no order.
fn key(number: u64) -> Option<NonZeroU64> {
    NonZeroU64::new((number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

impl Bench {
    fn with<R>(&self, work: impl FnOnce(&mut Table) -> Option<R>) -> RpcResult<R> {
        let mut table = self.0.lock();
        table.as_mut().and_then(work).ok_or(RpcError::Refused)
    }
}

impl TableBench for Bench {
    fn make(&self, bits: u32) -> RpcResult<()> {
        let mut table = self.0.lock();
        *table = None;
        *table = Some(Table::new(bits).map_err(|_| RpcError::NoMemory)?);
        Ok(())
    }

    fn clear(&self) -> RpcResult<()> {
        self.with(|table| {
            table.clear();
            Some(())
        })
    }

    fn insert(&self, count: u64) -> RpcResult<u64> {
        self.with(|table| {
            for number in 0..count {
                table.insert(key(number)?, number).ok()?;
            }
            Some(table.len() as u64)
        })
    }

    fn lookup(&self, count: u64) -> RpcResult<u64> {
        self.with(|table| {
            (0..count).try_fold(0u64, |sum, number| {
                Some(sum.wrapping_add(table.get(key(number)?)?))
            })
        })
    }
}
