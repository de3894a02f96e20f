//! The file systems of the campaign, and what each stands on.

use crate::parts::{Grants, Parts, Plan, respawn};
use crate::store::pause;
use abi::{AnyHandle, Handle, RVec, RpcError, RpcResult};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use interfaces::{
    Block, BlockCompletion, BlockOperation, BlockOutcome, BlockRequest, VmoFill, VmoRights,
};
use isolation::load::loader::MOST_GRANTS;

/// A file system behind the shadow.
pub struct Stage {
    /// What it keeps its files in.
    pub below: Plan,
    /// The file system.
    pub files: Plan,
    /// The options of the shadow.
    pub shadow: &'static str,
}

/// The disk that `ext2` begins with, in the archive.
const IMAGE: &str = "faults/ext2.img";
const SECTOR: usize = 512;
const PAGE: usize = 4096;
/// Bytes of a request that puts it there; the image has a whole number of them.
const CHUNK: usize = 64 * 1024;

/// The stage on which `target` fails.
///
/// # Errors
/// There is none.
pub fn stage(target: &str) -> Result<Stage, String> {
    match target {
        "ramfs" | "keep" => Ok(Stage {
            below: Plan {
                name: "keep",
                options: "keys=100",
                grants: |_| Ok(NONE),
                ready: |_, _| Ok(()),
            },
            files: Plan {
                name: "ramfs",
                options: "size=4M",
                grants: for_ramfs,
                ready: |_, _| Ok(()),
            },
            shadow: "lasting",
        }),
        "ext2" => Ok(Stage {
            below: Plan {
                name: "memory-disk",
                options: "size=4M",
                grants: |_| Ok(NONE),
                ready: fill,
            },
            files: Plan {
                name: "ext2",
                options: "cache=256K buffers=1M",
                grants: for_ext2,
                ready: |_, _| Ok(()),
            },
            shadow: "log=1M",
        }),
        other => Err(format!("there is no stage for {other:?}")),
    }
}

const NONE: Grants = [const { None }; MOST_GRANTS];

fn for_ramfs(parts: &'static Parts) -> RpcResult<Grants> {
    let mut grants = NONE;
    grants[0] = Some((parts.ground.objects)()?.into_any());
    grants[1] = Some(respawn(parts, |parts| &parts.below)?);
    Ok(grants)
}

fn for_ext2(parts: &'static Parts) -> RpcResult<Grants> {
    let mut grants = NONE;
    let disk = parts.below.instance(parts, 0);
    grants[0] = Some(disk.map_err(refused)?.service);
    grants[1] = Some((parts.ground.objects)()?.into_any());
    grants[2] = Some((parts.ground.events)()?.into_any());
    Ok(grants)
}

/// Puts the image on a new disk, which is empty. Every byte is written, so that the disk takes as
/// much memory in each run.
fn fill(parts: &'static Parts, disk: &AnyHandle) -> RpcResult<()> {
    let image = (parts.ground.image)(IMAGE).ok_or(RpcError::Refused)?;
    let disk = disk.duplicate()?.downcast::<dyn Block>();
    let disk: Handle<dyn Block> = disk.map_err(refused)?;
    let objects = (parts.ground.objects)()?;
    let pages = image.len().div_ceil(PAGE) as u64;
    let owner = objects.create(pages, VmoFill::Zero).map_err(refused)?;
    let view = owner.view(RIGHTS).map_err(refused)?;
    for (chunk, at) in image.chunks(CHUNK).zip((0..).step_by(CHUNK)) {
        view.write(at, &RVec::from_slice(chunk)?).map_err(refused)?;
    }
    let queue = disk.open(None).map_err(refused)?;
    queue.register(0, view).map_err(refused)?;
    let chunks = (0..image.len() / CHUNK).map(write);
    let requests = RVec::from_slice(&chunks.collect::<Vec<_>>())?;
    let count = requests.len() as u32;
    if queue.submit(&requests, count).map_err(refused)? != count {
        return Err(RpcError::Refused);
    }
    let mut left = requests.len();
    while left > 0 {
        let room = RVec::filled(NO_ANSWER, left)?;
        let (answers, count) = queue.completions(room).map_err(refused)?;
        let answers = &answers[..count as usize];
        if answers.iter().any(|it| it.outcome != BlockOutcome::Done) {
            return Err(RpcError::Refused);
        }
        left -= answers.len();
        pause(10_000);
    }
    Ok(())
}

/// The request to write a chunk of the image to its place.
fn write(chunk: usize) -> BlockRequest {
    let sector = (chunk * CHUNK / SECTOR) as u64;
    BlockRequest {
        tag: chunk as u64,
        operation: BlockOperation::Write,
        sector,
        sectors: (CHUNK / SECTOR) as u32,
        slot: 0,
        at: sector,
        durable: false,
        barrier: false,
    }
}

fn refused<E>(_: E) -> RpcError {
    RpcError::Refused
}

const NO_ANSWER: BlockCompletion = BlockCompletion {
    tag: 0,
    outcome: BlockOutcome::Done,
};
const RIGHTS: VmoRights = VmoRights {
    read: true,
    write: true,
    map: false,
    execute: false,
};
