//! The file systems of the campaign, and what each stands on.

use crate::parts::{Grants, Parts, Plan, respawn};
use crate::store::pause;
use abi::{AnyHandle, Handle, RVec, RpcError, RpcResult};
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use interfaces::{
    Block, BlockCompletion, BlockOperation, BlockOutcome, BlockRequest, PciBus, PciInfo, VmoFill,
    VmoRights,
};
use isolation::load::loader::MOST_GRANTS;

/// A file system behind the shadow.
pub struct Stage {
    /// The domain that fails.
    pub victim: &'static str,
    /// What it is made of, from what all others stand on to the file system.
    pub plans: Vec<Plan>,
    /// The options of the shadow in front of them, which lives through all runs. `None`: the last
    /// of them goes on where it died, and is asked itself.
    pub shadow: Option<&'static str>,
    /// Who dies in the middle of a run as well, if the victim has.
    pub midway: Option<&'static str>,
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
    let (victim, plans, shadow) = match target {
        "vfs" => (SHADOW, on_memory(true), None),
        "vfs-keep" => ("keep", on_memory(true), None),
        "ramfs" | "keep" => (
            if target == "keep" { "keep" } else { "ramfs" },
            vec![
                plan("keep", "keys=100", |_| Ok(NONE)),
                plan("ramfs", "size=4M", for_ramfs),
            ],
            Some("lasting"),
        ),
        "ext2" => ("ext2", on_memory(false), EXT2_SHADOW),
        "virtio-blk" => ("virtio-blk", on_virtio(), EXT2_SHADOW),
        "disk-shadow" => ("block-shadow", on_virtio(), EXT2_SHADOW),
        "nvme" => (
            "nvme",
            on_device(plan("nvme", "", for_nvme), |parts| {
                for_shadow(parts, "nvme")
            }),
            EXT2_SHADOW,
        ),
        other => return Err(format!("there is no stage for {other:?}")),
    };
    Ok(Stage {
        victim,
        plans,
        shadow,
        midway: (target == "vfs-keep").then_some(SHADOW),
    })
}

const EXT2_OPTIONS: &str = "cache=256K buffers=1M rw";
const EXT2_SHADOW: Option<&str> = Some("log=1M");
/// The shadow that dies itself. Its clients' larger files are in pages.
const SHADOW: &str = "vfs-shadow";
const SHADOW_OPTIONS: &str = "log=1M small=4000 pages=1M";
const PCI_OPTIONS: &str = "window=0xc0000000,0x10000000";
const NONE: Grants = [const { None }; MOST_GRANTS];

type Granting = fn(&'static Parts) -> RpcResult<Grants>;

fn plan(name: &'static str, options: &'static str, grants: Granting) -> Plan {
    Plan {
        name,
        options,
        grants,
        ready: |_, _| Ok(()),
        stays: false,
    }
}

/// A device of the machine, behind the shadow of its driver.
fn on_device(driver: Plan, for_shadow: Granting) -> Vec<Plan> {
    let bus = Plan {
        stays: true,
        ..plan("pci", PCI_OPTIONS, |parts| {
            let mut grants = NONE;
            grants[0] = Some((parts.ground.hardware)()?.into_any());
            Ok(grants)
        })
    };
    let shadow = plan("block-shadow", "", for_shadow);
    let files = plan("ext2", EXT2_OPTIONS, |parts| {
        for_ext2(parts, "block-shadow")
    });
    vec![bus, driver, shadow, files]
}

/// `ext2` on a disk in memory; with a shadow that dies itself, and its keeper.
fn on_memory(with_shadow: bool) -> Vec<Plan> {
    let disk = Plan {
        ready: fill,
        ..plan("memory-disk", "size=4M", |_| Ok(NONE))
    };
    let files = plan("ext2", EXT2_OPTIONS, |parts| for_ext2(parts, "memory-disk"));
    let mut plans = vec![disk, files];
    if with_shadow {
        plans.push(plan("keep", "keys=600", |_| Ok(NONE)));
        plans.push(plan(SHADOW, SHADOW_OPTIONS, for_files));
    }
    plans
}

fn on_virtio() -> Vec<Plan> {
    on_device(plan("virtio-blk", "", for_virtio), |parts| {
        for_shadow(parts, "virtio-blk")
    })
}

fn for_ramfs(parts: &'static Parts) -> RpcResult<Grants> {
    let mut grants = NONE;
    grants[0] = Some((parts.ground.objects)()?.into_any());
    grants[1] = Some(respawn(parts, "keep")?);
    Ok(grants)
}

fn for_files(parts: &'static Parts) -> RpcResult<Grants> {
    let mut grants = NONE;
    grants[0] = Some(respawn(parts, "ext2")?);
    grants[1] = Some((parts.ground.objects)()?.into_any());
    grants[3] = Some(respawn(parts, "keep")?);
    Ok(grants)
}

fn for_ext2(parts: &'static Parts, disk: &str) -> RpcResult<Grants> {
    let mut grants = NONE;
    grants[0] = Some(parts.service(disk)?);
    grants[1] = Some((parts.ground.objects)()?.into_any());
    grants[2] = Some((parts.ground.events)()?.into_any());
    Ok(grants)
}

fn for_shadow(parts: &'static Parts, driver: &str) -> RpcResult<Grants> {
    let mut grants = NONE;
    grants[0] = Some(respawn(parts, driver)?);
    Ok(grants)
}

fn for_virtio(parts: &'static Parts) -> RpcResult<Grants> {
    claim(parts, |info| {
        info.vendor == 0x1af4 && [0x1001, 0x1042].contains(&info.device)
    })
}

fn for_nvme(parts: &'static Parts) -> RpcResult<Grants> {
    claim(parts, |info| info.class == 0x01_0802)
}

/// The right to the first device that fits.
fn claim(parts: &'static Parts, fits: fn(&PciInfo) -> bool) -> RpcResult<Grants> {
    let bus = parts.service("pci")?.downcast::<dyn PciBus>();
    let bus: Handle<dyn PciBus> = bus.map_err(refused)?;
    let mut index = 0;
    while let Some(info) = bus.function(index)? {
        if fits(&info) {
            let device = bus.claim(info.address).map_err(refused)?;
            let mut grants = NONE;
            grants[0] = Some(device.into_any());
            return Ok(grants);
        }
        index += 1;
    }
    Err(RpcError::Refused)
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
