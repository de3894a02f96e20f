//! Plug-ins: domains that answer requests of the program that hosts them, are started again when
//! they crash, and are replaced by another version while they are called.
//!
//! A call takes a share in the present [`Life`] and counts itself in; an update closes the gate,
//! waits until nobody is counted in, has the state handed over, and opens the gate to the
//! successor. A call that was slow between the two steps may count itself in with an instance that
//! is replaced already; it sees by the gate, which counts, that it was closed meanwhile, and tries
//! again. So no call fails through an update. If a call runs longer than the update waits, or the
//! state cannot be handed over, the old instance stays. An instance that does not come to an end
//! with giving or taking state is ended, for calls wait meanwhile.

use crate::host::bytes;
use abi::{Handle, RVec, RpcError};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering};
use hosted_core::{CRASHED, DONE, FAILED, NO_MEMORY, PlugWish, REFUSED};
use interfaces::{PlugIn, PlugInError};
use isolation::Reason;
use isolation::death::kill::kill;
use isolation::domain::{ControlBlock, Limits};
use isolation::load::loader::{self, MOST_GRANTS, Prepared};
use isolation::lock::Lock;
use isolation::platform::{Attributes, WaitResult, platform};

/// Nanoseconds that an update waits for calls that run.
const UPDATE_PATIENCE: u64 = 1_000_000_000;
/// Nanoseconds that giving state, or taking it, may take, whether it computes or waits.
const STATE_PATIENCE: u64 = 5_000_000_000;

/// An instance of a plug-in.
struct Life {
    block: Arc<ControlBlock>,
    service: Handle<dyn PlugIn>,
    /// Calls under way.
    calls: AtomicU32,
}

/// A plug-in through all its instances.
struct Plug {
    present: Lock<Present>,
    /// How often the gate was opened or closed. Odd: it is closed.
    gate: AtomicU32,
    /// 1 while an instance is being replaced.
    replacing: AtomicU32,
}

#[derive(Clone)]
struct Present {
    image: Arc<Prepared>,
    options: Arc<Vec<u8>>,
    life: Arc<Life>,
}

static PLUGS: Lock<Vec<Option<Arc<Plug>>>> = Lock::new(Vec::new());

/// Whether a gate with this count is closed.
fn is_closed(count: u32) -> bool {
    count % 2 == 1
}

/// Where an answer or an explanation goes: an `extern "C" fn(context, address, length)` and its
/// context.
struct Sink(usize, usize);

impl Sink {
    fn put(&self, text: &[u8]) {
        // SAFETY: the launcher passes the address of such a function; the text is lent for the
        // call.
        unsafe {
            let take: extern "C" fn(usize, usize, usize) = core::mem::transmute(self.0);
            take(self.1, text.as_ptr() as usize, text.len());
        }
    }

    fn fail(&self, why: &str) -> u32 {
        self.put(why.as_bytes());
        FAILED
    }
}

fn prepare(image: &[u8]) -> Result<Arc<Prepared>, String> {
    let file = RVec::from_slice(image).map_err(|error| error.to_string())?;
    let prepared =
        loader::prepare(file).map_err(|error| format!("the image is refused: {error:?}"))?;
    Ok(Arc::new(prepared))
}

/// Starts an instance.
fn begin(image: &Prepared, options: &[u8]) -> Result<Arc<Life>, String> {
    let limits = Limits::default();
    let options = RVec::from_slice(options).map_err(|error| error.to_string())?;
    let grants = [const { None }; MOST_GRANTS];
    let file = image.file().ok_or("its file is gone")?;
    let started = image.start(file.image().name(), limits, grants, options);
    let mut instance = started.map_err(|error| format!("the plug-in does not start: {error:?}"))?;
    let service = instance.offers[0]
        .take()
        .and_then(|offer| offer.downcast().ok());
    match service {
        Some(service) => Ok(Arc::new(Life {
            block: instance.block,
            service,
            calls: AtomicU32::new(0),
        })),
        None => {
            kill(&instance.block, Reason::Exited);
            Err("the image is not a plug-in's".to_string())
        }
    }
}

/// The plug-in with this number.
fn find(number: u32) -> Option<Arc<Plug>> {
    PLUGS.lock().get((number as usize).checked_sub(1)?)?.clone()
}

impl Plug {
    /// The present instance, with the call counted in.
    fn enter(&self) -> Arc<Life> {
        loop {
            let seen = self.gate.load(Ordering::SeqCst);
            if is_closed(seen) {
                platform().wait(&self.gate, seen, None);
                continue;
            }
            let life = self.present.lock().life.clone();
            life.calls.fetch_add(1, Ordering::SeqCst);
            if self.gate.load(Ordering::SeqCst) == seen {
                return life;
            }
            self.leave(&life);
        }
    }

    fn leave(&self, life: &Life) {
        life.calls.fetch_sub(1, Ordering::SeqCst);
        if is_closed(self.gate.load(Ordering::SeqCst)) {
            platform().wake(&life.calls, u32::MAX);
        }
    }

    fn call(&self, request: &[u8]) -> Result<RVec<u8>, PlugInError> {
        let request = RVec::from_slice(request)?;
        let life = self.enter();
        let answer = life.service.handle(request);
        self.leave(&life);
        if matches!(answer, Err(PlugInError::Rpc(RpcError::DomainCrashed))) {
            self.restart(&life);
        }
        answer
    }

    /// Runs `replace` while nobody else replaces the instance.
    fn alone<R>(&self, replace: impl FnOnce() -> R) -> R {
        while self.replacing.swap(1, Ordering::SeqCst) == 1 {
            platform().wait(&self.replacing, 1, None);
        }
        let result = replace();
        self.replacing.store(0, Ordering::SeqCst);
        platform().wake(&self.replacing, u32::MAX);
        result
    }

    /// Puts a new instance in the place of `dead`, if that has not been done. If none can be
    /// started, the next call tries again. An instance that says that it has crashed, and has not,
    /// comes to its end here.
    fn restart(&self, dead: &Arc<Life>) {
        self.alone(|| {
            let present = self.present.lock().clone();
            if !Arc::ptr_eq(&present.life, dead) {
                return;
            }
            kill(&dead.block, Reason::Exited);
            match begin(&present.image, &present.options) {
                Ok(life) => {
                    let former = core::mem::replace(&mut self.present.lock().life, life);
                    drop(former);
                }
                Err(why) => isolation::klog!("{}: not started again: {why}", dead.block.name()),
            }
        });
    }

    /// Replaces the instance by one of another image.
    fn update(&self, image: &[u8], options: &[u8]) -> Result<(), String> {
        let image = prepare(image)?;
        let successor = begin(&image, options)?;
        self.alone(|| {
            let former = self.present.lock().clone();
            self.gate.fetch_add(1, Ordering::SeqCst);
            let handed = self
                .quiet(&former.life)
                .and_then(|()| hand_over(&former.life, &successor));
            if handed.is_ok() {
                let next = Present {
                    image,
                    options: Arc::new(options.to_vec()),
                    life: successor.clone(),
                };
                let last = core::mem::replace(&mut *self.present.lock(), next);
                drop(last);
            }
            self.gate.fetch_add(1, Ordering::SeqCst);
            platform().wake(&self.gate, u32::MAX);
            kill(
                if handed.is_ok() {
                    &former.life.block
                } else {
                    &successor.block
                },
                Reason::Exited,
            );
            handed
        })
    }

    /// Waits until no call is under way.
    fn quiet(&self, life: &Life) -> Result<(), String> {
        let deadline = platform().now() + UPDATE_PATIENCE;
        loop {
            match life.calls.load(Ordering::SeqCst) {
                0 => return Ok(()),
                calls => {
                    if platform().wait(&life.calls, calls, Some(deadline)) == WaitResult::TimedOut {
                        return Err("a call takes too long; the old version stays".to_string());
                    }
                }
            }
        }
    }
}

/// Has the state handed over.
fn hand_over(from: &Life, to: &Life) -> Result<(), String> {
    let state = bounded(from, |service| service.hand_over())?
        .map_err(|error| format!("nothing is handed over: {error:?}"))?;
    bounded(to, |service| service.take_over(state))?
        .map_err(|error| format!("the successor does not take over: {error:?}"))
}

/// A call that a thread watches, and the instance that is ended if it takes too long.
struct Watch {
    block: Arc<ControlBlock>,
    deadline: u64,
    /// 1 when the call is done.
    done: AtomicU32,
}

/// A call that ends within [`STATE_PATIENCE`], if only because the instance is ended then.
fn bounded<R>(life: &Life, call: impl FnOnce(&Handle<dyn PlugIn>) -> R) -> Result<R, String> {
    let watch = Arc::new(Watch {
        block: life.block.clone(),
        deadline: platform().now() + STATE_PATIENCE,
        done: AtomicU32::new(0),
    });
    let of_thread = Arc::into_raw(watch.clone()) as usize;
    if platform()
        .spawn("limit", await_end, of_thread, &Attributes::KERNEL)
        .is_none()
    {
        // SAFETY: it came from `into_raw` just now, and there is no thread that has it.
        drop(unsafe { Arc::from_raw(of_thread as *const Watch) });
        return Err("no memory for a thread".to_string());
    }
    let result = call(&life.service);
    watch.done.store(1, Ordering::SeqCst);
    platform().wake(&watch.done, 1);
    Ok(result)
}

extern "C" fn await_end(watch: usize) {
    // SAFETY: `bounded` gave this share to this thread alone, by `into_raw`.
    let watch = unsafe { Arc::from_raw(watch as *const Watch) };
    while watch.done.load(Ordering::SeqCst) == 0 {
        let waited = platform().wait(&watch.done, 0, Some(watch.deadline));
        if waited == WaitResult::TimedOut && watch.done.load(Ordering::SeqCst) == 0 {
            return kill(&watch.block, Reason::Hang);
        }
    }
}

/// Runs `work` on the parts of a wish (input, options, sink), with the root record that calls need.
///
/// # Safety
/// `wish` is valid, and so are the bytes and the function that it names, until this returns.
unsafe fn grant(
    wish: *mut PlugWish,
    work: impl FnOnce(&mut u32, &[u8], &[u8], &Sink) -> u32,
) -> u32 {
    // SAFETY: by the caller's duty.
    let (wish, input, options) = unsafe {
        let wish = &mut *wish;
        let (input, options) = (wish.input, wish.options);
        (
            wish,
            bytes(input[0], input[1]),
            bytes(options[0], options[1]),
        )
    };
    let sink = Sink(wish.sink[0], wish.sink[1]);
    isolation::call::thread::with_root(|| work(&mut wish.number, input, options, &sink))
}

/// See [`hosted_core::Core::plug_load`].
///
/// # Safety
/// `wish` is valid, and so is what it names, until this returns.
pub unsafe extern "C" fn load(wish: *mut PlugWish) -> u32 {
    let work = |number: &mut u32, image: &[u8], options: &[u8], sink: &Sink| {
        let made = prepare(image).and_then(|image| Ok((begin(&image, options)?, image)));
        let (life, image) = match made {
            Ok(made) => made,
            Err(why) => return sink.fail(&why),
        };
        let present = Lock::new(Present {
            image,
            options: Arc::new(options.to_vec()),
            life,
        });
        let plug = Plug {
            present,
            gate: AtomicU32::new(0),
            replacing: AtomicU32::new(0),
        };
        let mut plugs = PLUGS.lock();
        plugs.push(Some(Arc::new(plug)));
        *number = plugs.len() as u32;
        DONE
    };
    // SAFETY: by the caller's duty.
    unsafe { grant(wish, work) }
}

/// See [`hosted_core::Core::plug_call`].
///
/// # Safety
/// As for [`load`].
pub unsafe extern "C" fn call(wish: *mut PlugWish) -> u32 {
    let work = |number: &mut u32, request: &[u8], _: &[u8], sink: &Sink| {
        let Some(plug) = find(*number) else {
            return sink.fail("there is no such plug-in");
        };
        match plug.call(request) {
            Ok(answer) => {
                sink.put(&answer);
                DONE
            }
            Err(PlugInError::Refused(why)) => {
                sink.put(why.as_str().as_bytes());
                REFUSED
            }
            Err(PlugInError::Rpc(RpcError::DomainCrashed)) => CRASHED,
            Err(PlugInError::Rpc(RpcError::NoMemory)) => NO_MEMORY,
            Err(PlugInError::Rpc(error)) => sink.fail(&error.to_string()),
        }
    };
    // SAFETY: by the caller's duty.
    unsafe { grant(wish, work) }
}

/// See [`hosted_core::Core::plug_update`].
///
/// # Safety
/// As for [`load`].
pub unsafe extern "C" fn update(wish: *mut PlugWish) -> u32 {
    let work = |number: &mut u32, image: &[u8], options: &[u8], sink: &Sink| {
        let Some(plug) = find(*number) else {
            return sink.fail("there is no such plug-in");
        };
        match plug.update(image, options) {
            Ok(()) => DONE,
            Err(why) => sink.fail(&why),
        }
    };
    // SAFETY: by the caller's duty.
    unsafe { grant(wish, work) }
}

/// See [`hosted_core::Core::plug_end`].
pub extern "C" fn end(number: u32) {
    isolation::call::thread::with_root(|| {
        let index = (number as usize).wrapping_sub(1);
        let plug = PLUGS.lock().get_mut(index).and_then(Option::take);
        if let Some(plug) = plug {
            let block = plug.present.lock().life.block.clone();
            kill(&block, Reason::Exited);
            drop(plug);
        }
    });
}
