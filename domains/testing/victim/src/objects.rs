//! What the victim does with memory objects.

use interfaces::{
    Handle, MemoryError, MemoryObjects, RVec, RpcError, RpcResult, VmoFill, VmoOwner, VmoRights,
    VmoView,
};

/// Bytes of a page.
const PAGE: u64 = 4096;

/// What a page of a memory object begins with that was written to.
pub fn canary(page: u64) -> [u8; 8] {
    (page + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes()
}

const READ_WRITE: VmoRights = VmoRights {
    read: true,
    write: true,
    map: false,
    execute: false,
};

/// The error of the call that stands for one of a memory object.
pub fn rpc(error: MemoryError) -> RpcError {
    match error {
        MemoryError::Rpc(error) => error,
        _ => RpcError::Refused,
    }
}

/// Makes an object and writes to its pages until there is no memory; how many it wrote to.
pub fn fill(
    objects: &Handle<dyn MemoryObjects>,
    pages: u64,
) -> RpcResult<(Handle<dyn VmoOwner>, u64)> {
    let owner = objects.create(pages, VmoFill::Zero).map_err(rpc)?;
    let view = owner.view(READ_WRITE).map_err(rpc)?;
    let mut done = 0;
    while done < pages {
        let mark = RVec::from_slice(&canary(done))?;
        match view.write(done * PAGE, &mark) {
            Ok(_) => done += 1,
            Err(MemoryError::Rpc(RpcError::NoMemory)) => break,
            Err(error) => return Err(rpc(error)),
        }
    }
    Ok((owner, done))
}

/// Has the object charged to this domain; whether its quota lets it.
pub fn adopt(object: &Handle<dyn VmoOwner>) -> RpcResult<bool> {
    match object.adopt() {
        Ok(()) => Ok(true),
        Err(MemoryError::Rpc(RpcError::NoMemory)) => Ok(false),
        Err(error) => Err(rpc(error)),
    }
}

/// Reads and writes pages at random, until one holds what nobody wrote; which.
pub fn churn(object: &Handle<dyn VmoView>, seed: u64) -> RpcResult<u64> {
    let pages = object.limit()?;
    let mut random = seed;
    loop {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let page = (random >> 33) % pages;
        let (seen, _) = match object.read(page * PAGE, RVec::filled(1, 8)?) {
            Ok(seen) => seen,
            Err(MemoryError::Loading | MemoryError::Absent) => continue,
            Err(error) => return Err(rpc(error)),
        };
        // What is read while somebody writes is a mix of both.
        let mut bytes = seen.iter().zip(canary(page));
        if !bytes.all(|(seen, right)| *seen == 0 || *seen == right) {
            return Ok(page);
        }
        match object.write(page * PAGE, &RVec::from_slice(&canary(page))?) {
            Ok(_) | Err(MemoryError::Rpc(RpcError::NoMemory)) => {}
            Err(error) => return Err(rpc(error)),
        }
    }
}

/// Does what an owner does with pages, at random, without end.
pub fn tend(object: &Handle<dyn VmoOwner>, seed: u64) -> RpcResult<u64> {
    let pages = object.info()?.limit;
    let mut random = seed;
    let mut below = |end: u64| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % end
    };
    loop {
        let first = below(pages);
        let count = 1 + below(20.min(pages - first));
        let done = match below(8) {
            0 | 1 => object.load(first, count),
            2 | 3 => end_loads(object, first, count),
            4 => object.clean(first, count).map(|_| 0),
            5 => object.commit(first, count),
            6 => object.evict(first, count),
            _ => object.cut(first, count),
        };
        match done {
            Ok(_) | Err(MemoryError::Present | MemoryError::Rpc(RpcError::NoMemory)) => {}
            Err(error) => return Err(rpc(error)),
        }
    }
}

/// Ends loads of pages, each with the bytes that are its own.
fn end_loads(object: &Handle<dyn VmoOwner>, first: u64, count: u64) -> Result<u64, MemoryError> {
    let content = RVec::filled(0, (count * PAGE) as usize);
    let mut content = content.map_err(MemoryError::Rpc)?;
    for (page, bytes) in (first..).zip(content.chunks_exact_mut(PAGE as usize)) {
        bytes[..8].copy_from_slice(&canary(page));
    }
    object.end_load(first, &content)
}
