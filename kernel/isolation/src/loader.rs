//! From a signed image file to a running domain.

use crate::call::{Method, guarded};
use crate::domain::{self, ControlBlock, Limits, Reason, State};
use crate::elf::{Elf, Segment};
use crate::heap::LARGEST_OBJECT;
use crate::platform::{ImageSpace, PAGE, Protection, platform};
use crate::verify::{fingerprint_fits, identity, signature_fits};
use crate::{handle, klog};
use abi::api::{ENTRY_FAILED, ENTRY_FINGERPRINT, ENTRY_GRANTS, ENTRY_OK, EntryArgs};
use abi::image::{Image, ImageError, PORT_OFFER, PORT_OPTIONAL};
use abi::shared::KERNEL_OWNER;
use abi::{AnyHandle, RVec, RpcError, Text};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// Most grants of one domain.
pub const MOST_GRANTS: usize = 12;
/// Most offers of one domain.
pub const MOST_OFFERS: usize = 4;

/// Why a file was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadError {
    /// Not an image at all.
    NotAnImage,
    /// Shorter or longer than its header says.
    WrongLength,
    /// A field is wrong.
    Malformed(&'static str),
    /// Built against other interfaces or by another compiler.
    WrongFingerprint,
    /// Altered, or signed by another key.
    BadSignature,
}

/// Why a domain did not start.
#[derive(Debug)]
pub enum StartError {
    /// A wanted grant is missing.
    MissingGrant(Text<32>),
    /// A grant is of another interface.
    WrongGrant(Text<32>),
    /// More grants than wants.
    ExtraGrant,
    /// Its start function gave an error.
    Failed(RpcError),
    /// It crashed while it started.
    Crashed,
    /// No memory for it.
    NoMemory,
}

/// A file that has been verified and may be started any number of times.
pub struct Prepared {
    file: RVec<u8>,
}

/// A domain that has started.
pub struct Instance {
    /// Its control block.
    pub block: Arc<ControlBlock>,
    /// What it offers; owned by the kernel.
    pub offers: [Option<AnyHandle>; MOST_OFFERS],
}

/// Verifies a file: form, fingerprint, signature, and the ELF file in it.
///
/// # Errors
/// What is wrong; the first that is found, in that order.
pub fn prepare(file: RVec<u8>) -> Result<Prepared, LoadError> {
    let image = Image::parse(&file).map_err(|error| match error {
        ImageError::NotAnImage => LoadError::NotAnImage,
        ImageError::WrongLength => LoadError::WrongLength,
        ImageError::BadHeader(what) => LoadError::Malformed(what),
    })?;
    // The signature first: of an altered file nothing can be said but that.
    if !signature_fits(&image) {
        return Err(LoadError::BadSignature);
    }
    if !fingerprint_fits(&image) {
        return Err(LoadError::WrongFingerprint);
    }
    let elf = Elf::parse(image.elf()).map_err(LoadError::Malformed)?;
    elf.relocations()
        .try_for_each(|one| one.map(drop))
        .map_err(LoadError::Malformed)?;
    Ok(Prepared { file })
}

/// The largest file that is looked at, in bytes.
pub const LARGEST_FILE: usize = LARGEST_OBJECT;

impl Prepared {
    /// The image's header.
    pub fn image(&self) -> Image<'_> {
        Image::parse(&self.file)
            .expect("prepare checked it, and the file is owned by the kernel since")
    }

    /// Starts an instance with these grants (in the order of its wants), which belong to the kernel.
    ///
    /// # Errors
    /// Why it did not start; nothing of it is left then, or the reaper is at it.
    pub fn start(
        &self,
        name: &str,
        limits: Limits,
        grants: [Option<AnyHandle>; MOST_GRANTS],
        options: RVec<u8>,
    ) -> Result<Instance, StartError> {
        check_grants(&self.image(), &grants)?;
        let elf = Elf::parse(self.image().elf()).expect("prepare checked it");
        let space = load(&elf).ok_or(StartError::NoMemory)?;
        let entry = space.start().as_ptr() as usize + elf.entry as usize;
        let block = domain::create(name, limits).map_err(|_| StartError::NoMemory)?;
        block.set_image(space);
        match enter(&block, entry, grants, options) {
            Ok(offers) => {
                block.enter_state(State::Running);
                Ok(Instance { block, offers })
            }
            Err(error) => {
                crate::kill::kill(&block, Reason::Exited);
                Err(error)
            }
        }
    }
}

/// Compares what is granted with what the image declares.
fn check_grants(
    image: &Image<'_>,
    grants: &[Option<AnyHandle>; MOST_GRANTS],
) -> Result<(), StartError> {
    let mut given = grants.iter();
    for port in image.ports().filter(|port| port.flags & PORT_OFFER == 0) {
        match given.next().and_then(Option::as_ref) {
            Some(grant) if grant.interface() == port.interface => {}
            Some(_) => return Err(StartError::WrongGrant(Text::new(port.name))),
            None if port.flags & PORT_OPTIONAL != 0 => {}
            None => return Err(StartError::MissingGrant(Text::new(port.name))),
        }
    }
    if given.any(Option::is_some) {
        Err(StartError::ExtraGrant)
    } else {
        Ok(())
    }
}

/// Maps, copies, relocates and protects.
fn load(elf: &Elf<'_>) -> Option<Box<dyn ImageSpace>> {
    let pages = elf.span().div_ceil(PAGE as u64) as usize;
    let space = platform().image_space(pages)?;
    let base = space.start().as_ptr();
    for segment in elf.segments() {
        let content = elf.content(segment);
        // SAFETY: the segment lies within the span (checked by `Elf::parse`), and the space is ours alone.
        unsafe {
            base.add(segment.address as usize)
                .copy_from_nonoverlapping(content.as_ptr(), content.len())
        };
    }
    for (place, value) in elf.relocations().flatten() {
        // SAFETY: eight bytes within a writable segment (checked by `Elf::relocation`).
        unsafe {
            base.add(place as usize)
                .cast::<u64>()
                .write_unaligned(base as u64 + value)
        };
    }
    elf.segments()
        .iter()
        .for_each(|segment| protect(&*space, segment));
    let (first, end) = (elf.relro.0.div_ceil(PAGE as u64), elf.relro.1 / PAGE as u64);
    if end > first {
        space.protect(first as usize, (end - first) as usize, Protection::Read);
    }
    Some(space)
}

fn protect(space: &dyn ImageSpace, segment: &Segment) {
    let first = segment.address as usize / PAGE;
    let end = (segment.address + segment.memory).div_ceil(PAGE as u64) as usize;
    let protection = match (segment.write, segment.execute) {
        (true, _) => Protection::ReadWrite,
        (_, true) => Protection::ReadExecute,
        _ => Protection::Read,
    };
    space.protect(first, end - first, protection);
}

/// What the entry function of a domain is called with, and its answer.
struct Entry {
    function: usize,
    args: EntryArgs,
    result: u64,
}

static ENTRY: Method = Method::internal("start", crate::call::UNBOUNDED);

/// Calls the entry of the new domain; what it offers, owned by the kernel.
fn enter(
    block: &Arc<ControlBlock>,
    function: usize,
    grants: [Option<AnyHandle>; MOST_GRANTS],
    options: RVec<u8>,
) -> Result<[Option<AnyHandle>; MOST_OFFERS], StartError> {
    let mut offers: [Option<AnyHandle>; MOST_OFFERS] = [const { None }; MOST_OFFERS];
    let mut granted = Vec::with_capacity(MOST_GRANTS);
    for grant in grants {
        let grant = grant.map(|grant| handle::give(grant, block.id)).transpose();
        granted.push(grant.map_err(|_| StartError::NoMemory)?);
    }
    let mut options = Some(options);
    if let Some(options) = &mut options {
        let transfer = give_to(block.id);
        // SAFETY: the kernel owns the text and gives it to the new domain.
        let given = unsafe { abi::Exchangeable::transfer(options, &transfer) };
        given.map_err(|_| StartError::NoMemory)?;
    }
    let args = EntryArgs {
        fingerprint: identity().fingerprint,
        api: crate::entry::API,
        grants: granted.as_mut_ptr(),
        grant_count: granted.len(),
        options: &raw mut options,
        offers: offers.as_mut_ptr(),
        offer_count: offers.len(),
        crash: 0,
    };
    let mut entry = Entry {
        function,
        args,
        result: ENTRY_FAILED,
    };
    // SAFETY: the function is the image's entry point, which takes `EntryArgs` (the fingerprint says so,
    // and the image's runtime compares it first).
    let called = unsafe { guarded(block, &ENTRY, call_entry, (&raw mut entry).cast()) };
    settle(
        block,
        called,
        &entry,
        &mut granted,
        &mut options,
        &mut offers,
    )?;
    block
        .crash_entry
        .store(entry.args.crash, core::sync::atomic::Ordering::Relaxed);
    for offer in offers.iter_mut().flatten() {
        // SAFETY: the domain left the handle for us; it passes to the kernel.
        let taken = unsafe { handle::take(offer, Arc::as_ptr(block), KERNEL_OWNER) };
        taken.map_err(|_| StartError::NoMemory)?;
    }
    Ok(offers)
}

fn give_to(to: u32) -> abi::Transfer {
    unsafe fn no_handles(
        _: &abi::Transfer,
        _: abi::handle::RawHandle,
        _: u64,
    ) -> abi::RpcResult<abi::handle::RawHandle> {
        Err(RpcError::Refused)
    }
    abi::Transfer {
        from: domain::kernel_block().cast(),
        to,
        wrap: no_handles,
    }
}

/// Judges how the entry went. If it crashed, what it may have half-written is left alone: it belongs to the
/// dead domain and is reclaimed with it.
fn settle(
    block: &Arc<ControlBlock>,
    called: Result<(), RpcError>,
    entry: &Entry,
    granted: &mut Vec<Option<AnyHandle>>,
    options: &mut Option<RVec<u8>>,
    offers: &mut [Option<AnyHandle>; MOST_OFFERS],
) -> Result<(), StartError> {
    if called.is_err() {
        granted.drain(..).for_each(core::mem::forget);
        core::mem::forget(options.take());
        offers
            .iter_mut()
            .for_each(|offer| core::mem::forget(offer.take()));
        return Err(StartError::Crashed);
    }
    match entry.result {
        ENTRY_OK => Ok(()),
        ENTRY_FINGERPRINT | ENTRY_GRANTS => {
            klog!(
                "{}: its runtime refuses to start (code {})",
                block.name(),
                entry.result
            );
            Err(StartError::Failed(RpcError::Refused))
        }
        code => Err(StartError::Failed(match code >> 8 {
            1 => RpcError::DomainCrashed,
            2 => RpcError::NoMemory,
            3 => RpcError::StackLow,
            4 => RpcError::Interrupted,
            _ => RpcError::Refused,
        })),
    }
}

/// Runs inside the new domain.
unsafe extern "C" fn call_entry(data: *mut u8) {
    // SAFETY: `data` is the `Entry` that `enter` keeps in its frame; the function is the image's entry.
    unsafe {
        let entry = data.cast::<Entry>();
        let function: unsafe extern "C" fn(*mut EntryArgs) -> u64 =
            core::mem::transmute((*entry).function);
        (*entry).result = function(&raw mut (*entry).args);
    }
}
