//! What is wrong with a request, as far as that can be said at once.

use interfaces::{BlockOperation, BlockOutcome, BlockRequest, QueueLimits};

/// Whether the bytes of such a request are in a memory object.
#[inline]
pub fn has_data(operation: BlockOperation) -> bool {
    matches!(operation, BlockOperation::Read | BlockOperation::Write)
}

/// Whether a request is a read or write for which [`check`] finds nothing wrong. As nearly all are,
/// it says so with less ado; of a few it does not.
#[inline(always)]
pub fn is_plain(limits: &QueueLimits, request: &BlockRequest) -> bool {
    let sectors = u64::from(request.sectors);
    let may = match request.operation {
        BlockOperation::Read => true,
        BlockOperation::Write => !limits.read_only,
        _ => false,
    };
    may && request.sectors.wrapping_sub(1) < limits.request_sectors
        && request.sector < limits.sectors
        && sectors <= limits.sectors - request.sector
        && request.at <= u64::MAX >> 1
}

/// Whether a device with these limits can carry the request out, but for its memory object.
///
/// # Errors
/// The answer to the request.
pub fn check(limits: &QueueLimits, request: &BlockRequest) -> Result<(), BlockOutcome> {
    let most = match request.operation {
        BlockOperation::Flush => return Ok(()),
        BlockOperation::Read | BlockOperation::Write => limits.request_sectors,
        BlockOperation::Discard => limits.discard_sectors,
        BlockOperation::WriteZeroes => limits.zeroes_sectors,
    };
    if request.operation != BlockOperation::Read && limits.read_only {
        return Err(BlockOutcome::ReadOnly);
    }
    if most == 0 {
        return Err(BlockOutcome::Unsupported);
    }
    let end = request.sector.checked_add(request.sectors.into());
    let fits = end.is_some_and(|end| end <= limits.sectors);
    if !fits || request.sectors == 0 || request.sectors > most {
        return Err(BlockOutcome::OutOfRange);
    }
    match request.at.checked_add(request.sectors.into()) {
        None if has_data(request.operation) => Err(BlockOutcome::Memory),
        _ => Ok(()),
    }
}
