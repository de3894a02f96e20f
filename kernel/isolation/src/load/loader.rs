//! From a signed image file to a running domain.

mod place;

pub use place::{pages, place, renew};

use crate::call::handle;
use crate::call::thread::starter;
use crate::call::{Method, guarded, internal};
use crate::domain::account::{Charge, Kind};
use crate::domain::debugger::{Change, image_changes};
use crate::domain::group::Seat;
use crate::domain::{self, BlockRef, Claim, ControlBlock, Limits, Reason};
use crate::klog;
use crate::load::elf::Elf;
use crate::load::verify::{fingerprint_fits, identity, signature_fits};
use crate::memory::heap::LARGEST_OBJECT;
use crate::memory::kept::{Kept, Loaded};
use crate::memory::relief;
use crate::platform::{PAGE, platform};
use abi::api::{ENTRY_FINGERPRINT, ENTRY_GRANTS, ENTRY_OK, EntryArgs};
use abi::image::{Image, ImageError, PORT_OFFER, PORT_OPTIONAL};
use abi::shared::KERNEL_OWNER;
use abi::{AnyHandle, RVec, RpcError, Text};
use alloc::sync::Arc;
use core::mem::ManuallyDrop;
use core::ptr::null_mut;
use core::sync::atomic::Ordering;

/// Most grants of one domain.
pub const MOST_GRANTS: usize = 16;
/// Most offers of one domain.
pub const MOST_OFFERS: usize = 4;

/// Why a file was not accepted, and why a domain did not start: as the interfaces have it.
pub use interfaces::{LoadError, StartError};

/// A verified file.
pub struct File {
    bytes: RVec<u8>,
    /// What the headers of the ELF file in it say, which was checked once for all instances.
    layout: Elf<'static>,
    kept: Arc<Kept>,
    /// Of the domain that had it verified; `None`: the kernel did.
    _charge: Option<Charge>,
}

/// A file that has been verified and may be started any number of times.
///
/// The file is its payer's: it ends with this, or with the domain that pays for it. Otherwise a
/// domain could hand on what stands for it, end, and leave the memory on nobody's account.
pub struct Prepared {
    payer: BlockRef,
    /// The payer's number for the file.
    number: u64,
}

/// A domain that has started.
pub struct Instance {
    /// Its control block.
    pub block: Arc<ControlBlock>,
    /// What it offers; owned by the kernel.
    pub offers: [Option<AnyHandle>; MOST_OFFERS],
}

/// Verifies a file for the kernel itself: form, signature, fingerprint, and the ELF file in it.
///
/// # Errors
/// What is wrong; the first that is found, in that order.
pub fn prepare(file: RVec<u8>) -> Result<Prepared, LoadError> {
    prepare_for(BlockRef::Kernel, file)
}

/// As [`prepare`], for a domain, which pays for the memory of the file. It must be in the call.
///
/// # Errors
/// [`LoadError::Rpc`] with [`RpcError::NoMemory`], then as for [`prepare`].
pub fn prepare_for(payer: BlockRef, file: RVec<u8>) -> Result<Prepared, LoadError> {
    let charge = payer.domain().map(|payer| {
        // Not its length: more of it may be in memory than it shows.
        let bytes = file.taken() + size_of::<File>();
        Charge::new(payer.clone(), Kind::Notes, bytes).ok_or(LoadError::Rpc(RpcError::NoMemory))
    });
    let charge = charge.transpose()?;
    let layout = verify(&file)?.detached();
    // What notes the file lies in the kernel's heap.
    if !platform().can_note() {
        return Err(LoadError::Rpc(RpcError::NoMemory));
    }
    let number = payer.block().note_file(Arc::new(File {
        bytes: file,
        layout,
        kept: Arc::new(Kept::new()),
        _charge: charge,
    }));
    Ok(Prepared { payer, number })
}

/// What [`prepare`] looks at; the ELF file in the image.
///
/// # Errors
/// As [`prepare`].
pub fn verify(file: &[u8]) -> Result<Elf<'_>, LoadError> {
    let image = Image::parse(file).map_err(|error| match error {
        ImageError::NotAnImage => LoadError::NotAnImage,
        ImageError::WrongLength => LoadError::WrongLength,
        ImageError::BadHeader(what) => malformed(what),
    })?;
    // The signature first: of an altered file nothing can be said but that.
    if !signature_fits(&image) {
        return Err(LoadError::BadSignature);
    }
    if !fingerprint_fits(&image) {
        return Err(LoadError::WrongFingerprint);
    }
    let elf = Elf::parse(image.elf()).map_err(malformed)?;
    elf.relocations()
        .try_for_each(|one| one.map(drop))
        .map_err(malformed)?;
    Ok(elf)
}

fn malformed(what: &'static str) -> LoadError {
    LoadError::Malformed(Text::new(what))
}

/// The largest file that is looked at, in bytes.
pub const LARGEST_FILE: usize = LARGEST_OBJECT;

impl File {
    /// The image's header.
    pub fn image(&self) -> Image<'_> {
        Image::parse(&self.bytes)
            .expect("prepare checked it, and the file is owned by the kernel since")
    }

    /// The image in memory as it is before it runs: what a former instance left, or a new copy if
    /// `may_take` says so.
    fn load(&self, elf: &Elf<'_>, may_take: impl Fn() -> bool) -> Option<Loaded> {
        let space = match self.kept.take() {
            Some(space) => {
                renew(elf, &*space);
                space
            }
            None => {
                let pages = pages(elf);
                let space = relief::or_wait(pages * PAGE, || {
                    may_take().then(|| platform().image_space(pages)).flatten()
                })?;
                place(elf, &*space);
                space
            }
        };
        Some(Loaded::new(space, &self.kept))
    }

    /// A new domain with `image`, which is this file's and has not run yet, and the address of its
    /// entry.
    fn create(
        &self,
        image: &Image<'_>,
        name: &str,
        limits: Limits,
    ) -> Option<(Arc<ControlBlock>, usize)> {
        let elf = self.layout.attached(image.elf());
        let starter = starter();
        let mut seat = Seat::new(starter.as_deref(), &limits.group).ok()?;
        let pages = pages(&elf);
        if seat.charge(pages * PAGE) == Claim::Refused {
            return None;
        }
        let loaded = self.load(&elf, || seat.may_take(pages, &limits))?;
        let block = domain::create(name, limits, starter.as_ref(), seat, loaded).ok()?;
        let build = image.signature().first_chunk().copied();
        let build = u64::from_be_bytes(build.unwrap_or_default());
        block.build.store(build, Ordering::Relaxed);
        image_changes(Change::Placed, &block);
        let entry = block.image_start() + elf.entry as usize;
        Some((block, entry))
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        drop(self.payer.block().forget_file(self.number));
    }
}

impl Prepared {
    /// The file, unless the domain that pays for it is gone. Whoever gets it keeps it in memory, so
    /// it is not to be kept for long.
    pub fn file(&self) -> Option<Arc<File>> {
        let held = self.payer.block().file(self.number)?;
        held.downcast().ok()
    }

    /// Starts an instance with these grants (in the order of its wants), which belong to the
    /// kernel.
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
        let (block, entry) = {
            // Not for longer: its start function may run as long as it likes.
            let file = self
                .file()
                .ok_or(StartError::Rpc(RpcError::DomainCrashed))?;
            let image = file.image();
            check_grants(&image, &grants)?;
            file.create(&image, name, limits)
                .ok_or(StartError::Rpc(RpcError::NoMemory))?
        };
        match enter(&block, entry, grants, options) {
            Ok(offers) => {
                block.enter_running();
                Ok(Instance { block, offers })
            }
            Err(error) => {
                crate::death::kill::kill(&block, Reason::Exited);
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

/// The call of a domain's entry function, from what it is granted to what it offers.
struct Entry<'a> {
    block: &'a Arc<ControlBlock>,
    function: usize,
    args: EntryArgs,
    granted: [Option<AnyHandle>; MOST_GRANTS],
    options: Option<RVec<u8>>,
    offers: [Option<AnyHandle>; MOST_OFFERS],
    /// Whether everything here belongs to the kernel (again).
    settled: bool,
    result: Result<u64, RpcError>,
}

/// Milliseconds that a start function may run. It is long: a file system may have a journal to
/// replay.
const START_BUDGET: u32 = 60_000;

static ENTRY: Method = internal("start", START_BUDGET);

/// Calls the entry of the new domain; what it offers, owned by the kernel.
fn enter(
    block: &Arc<ControlBlock>,
    function: usize,
    granted: [Option<AnyHandle>; MOST_GRANTS],
    options: RVec<u8>,
) -> Result<[Option<AnyHandle>; MOST_OFFERS], StartError> {
    let mut entry = ManuallyDrop::new(Entry {
        block,
        function,
        args: no_args(),
        granted,
        options: Some(options),
        offers: [const { None }; MOST_OFFERS],
        settled: true,
        result: Err(RpcError::DomainCrashed),
    });
    // SAFETY: the function is the image's entry point, which takes `EntryArgs` (the fingerprint
    // says so, and the image's runtime compares it first).
    let called = unsafe { guarded(block, &ENTRY, call_entry, (&raw mut entry).cast()) };
    if !entry.settled {
        // It died with everything in hand: that is reclaimed with it, and perhaps has been by now.
        return Err(StartError::Crashed);
    }
    let entry = ManuallyDrop::into_inner(entry);
    match called.and(entry.result) {
        Ok(code) => judge(block, code)?,
        Err(RpcError::DomainCrashed) => return Err(StartError::Crashed),
        Err(RpcError::NoMemory) => return Err(StartError::Rpc(RpcError::NoMemory)),
        Err(error) => return Err(StartError::Failed(error)),
    }
    block.crash_entry.store(entry.args.crash, Ordering::Relaxed);
    block
        .restock_entry
        .store(entry.args.restock, Ordering::Relaxed);
    Ok(entry.offers)
}

/// Arguments that point nowhere yet.
fn no_args() -> EntryArgs {
    EntryArgs {
        fingerprint: identity().fingerprint,
        api: crate::load::entry::API,
        grants: null_mut(),
        grant_count: 0,
        options: null_mut(),
        offers: null_mut(),
        offer_count: 0,
        crash: 0,
        restock: 0,
    }
}

/// What an answer of an entry function means.
fn judge(block: &ControlBlock, code: u64) -> Result<(), StartError> {
    match code {
        ENTRY_OK => Ok(()),
        ENTRY_FINGERPRINT | ENTRY_GRANTS => {
            klog!(
                "{}: its runtime refuses to start (code {code})",
                block.name()
            );
            Err(StartError::Failed(RpcError::Refused))
        }
        // The runtime wrote it, so it is an error's number.
        code => Err(StartError::Failed(
            RpcError::from_number(code >> 8).unwrap_or(RpcError::Refused),
        )),
    }
}

/// Runs with the record of the call into the new domain linked, so that the domain, even if it dies
/// meanwhile, is not cleared away while things pass from and to it.
///
/// # Safety
/// `data` is the `Entry` in the frame of [`enter`], which nobody else uses meanwhile.
unsafe extern "C" fn call_entry(data: *mut u8) {
    // SAFETY: `data` is the `Entry` that `enter` keeps in its frame; the function is the image's
    // entry. Everything passes as `settled` says: it is false while the domain may own some of it.
    unsafe {
        let entry = &mut *data.cast::<Entry<'_>>();
        let function: unsafe extern "C" fn(*mut EntryArgs) -> u64 =
            core::mem::transmute(entry.function);
        let domain = (Arc::as_ptr(entry.block), entry.block.id);
        let given = entry.pass((domain::kernel_block(), KERNEL_OWNER), domain);
        if given.is_ok() {
            entry.args.grants = entry.granted.as_mut_ptr();
            entry.args.grant_count = entry.granted.len();
            entry.args.options = &raw mut entry.options;
            entry.args.offers = entry.offers.as_mut_ptr();
            entry.args.offer_count = entry.offers.len();
            entry.settled = false;
            entry.result = Ok(function(&raw mut entry.args));
        }
        let taken = entry.pass(domain, (domain::kernel_block(), KERNEL_OWNER));
        if let Err(error) = given.and(taken) {
            entry.result = Err(error);
        }
        entry.settled = true;
    }
}

impl Entry<'_> {
    /// Passes everything that is there from one domain to another, each given by control block and
    /// number. What cannot pass is dropped by whom it belongs to; an error says that there was
    /// such.
    ///
    /// # Safety
    /// It really passes; one of the two is the kernel, the other the callee of the top record.
    unsafe fn pass(
        &mut self,
        (from, _): (*const ControlBlock, u32),
        (_, to): (*const ControlBlock, u32),
    ) -> Result<(), RpcError> {
        let handles = self.granted.iter_mut().chain(&mut self.offers);
        let mut result = Ok(());
        for handle in handles.flatten() {
            // SAFETY: the caller's duty is passed on.
            result = result.and(unsafe { handle::pass(handle, from, to) });
        }
        // SAFETY: as above; an `RVec` holds no handles.
        result.and(unsafe { handle::pass(&mut self.options, from, to) })
    }
}
