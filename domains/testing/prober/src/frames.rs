//! Frames that many have a share of, and those who have it die at random moments.
//!
//! An object's pages are read and written by three domains: one copies, two have them in address
//! spaces of their own, which they fork. Two more spaces have them, with somebody who looks into
//! them all the time, until they go at a random moment, too. Meanwhile the owner takes pages away.
//! Every page that was ever written to holds a number of its own, so a frame that is given to
//! somebody else too early is seen as a page with another's bytes; one that is lost is missing in
//! the end. After each round the heaps are looked at.

use crate::lab::{Lab, Victim, say, settle};
use crate::spaces::{ALL, AT, PAGE, WRITE, map, object, peek, poke, space};
use crate::{Test, Verdict, ensure};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use domain_rt::{log, thread, time};
use interfaces::{CrashReason, Handle, RVec, SpaceError, VmoFill, VmoOwner, VmoRights};

/// The tests of this file.
pub const TESTS: &[Test] = &[("frames-shared-among-dying-domains", dying)];

const PAGES: u64 = 96;
/// Domains that die in each round.
const DOMAINS: u64 = 3;

/// Numbers that look random, from a seed.
struct Random(u64);

impl Random {
    /// A number below `end`.
    fn below(&mut self, end: u64) -> u64 {
        let next = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = next.wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// What a page begins with that was written to.
fn canary(page: u64) -> [u8; 8] {
    (page + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes()
}

/// Whether a page holds what was written to it, or nothing. What is read while somebody writes the
/// first bytes of a page is a mix of both.
fn is_own(page: u64, seen: &[u8]) -> bool {
    let mut both = seen.iter().zip(canary(page));
    both.all(|(seen, right)| *seen == 0 || *seen == right)
}

/// What all who look at pages share.
#[derive(Clone, Default)]
struct Watch {
    wrong: Arc<AtomicU64>,
    looks: Arc<AtomicU64>,
}

impl Watch {
    fn note(&self, page: u64, what: &dyn core::fmt::Debug) {
        log!("page {page}: {what:?}");
        self.wrong.fetch_add(1, Ordering::SeqCst);
    }
}

fn dying(lab: &Lab) -> Verdict {
    let rounds = if lab.seed == 0 { 6 } else { 100 };
    let deaths = AtomicU64::new(0);
    let watch = Watch::default();
    let mut random = Random(lab.seed);
    lab.conserves_memory(|| {
        for number in 0..rounds {
            let round = round(lab, &watch, &mut random);
            round.map_err(|why| alloc::format!("round {number}: {why}"))?;
            deaths.fetch_add(DOMAINS, Ordering::Relaxed);
        }
        settle(lab)
    })?;
    let wrong = watch.wrong.load(Ordering::SeqCst);
    ensure!(wrong == 0, "{wrong} times a page was not right");
    if lab.spaces.is_some() {
        let looks = watch.looks.load(Ordering::SeqCst);
        ensure!(looks > 0, "nobody has looked");
    }
    log!(
        "{} deaths beside shared frames",
        deaths.load(Ordering::Relaxed)
    );
    Ok(())
}

fn round(lab: &Lab, watch: &Watch, random: &mut Random) -> Verdict {
    let owner = object(lab, PAGES, VmoFill::Zero)?;
    let mut spaces = Vec::new();
    for first in 0..2 {
        spaces.extend(look_on(lab, &owner, watch, first)?);
    }
    let mut alive = Vec::new();
    for index in 0..DOMAINS {
        alive.push(start(lab, &owner, watch, index, random.below(1 << 30))?);
    }
    let view = owner
        .view(VmoRights {
            write: false,
            ..ALL
        })
        .map_err(say)?;
    while !(alive.is_empty() && spaces.is_empty()) {
        time::sleep(20_000 + random.below(900_000));
        take_away(&owner, random)?;
        let next = random.below((alive.len() + spaces.len()) as u64) as usize;
        if next < spaces.len() {
            spaces.swap_remove(next).store(true, Ordering::SeqCst);
            continue;
        }
        let victim = alive.swap_remove(next - spaces.len());
        let has_died = victim.has_died()?;
        ensure!(!has_died, "a domain has ended by itself");
        victim.domain.kill().map_err(say)?;
        for page in 0..PAGES {
            let buffer = RVec::filled(0xaa, 8).map_err(say)?;
            let (seen, _) = view.read(page * PAGE, buffer).map_err(say)?;
            if !is_own(page, &seen) {
                watch.note(page, &&seen[..]);
            }
        }
        let why = victim.gone()?;
        ensure!(why == CrashReason::Killed, "it ended by {why:?}");
    }
    lab.audit()
}

/// Has a thread read and write the object's pages in a space of its own, until it is told that this
/// is over; how. None where there are no spaces.
fn look_on(
    lab: &Lab,
    owner: &Handle<dyn VmoOwner>,
    watch: &Watch,
    first: u64,
) -> Result<Option<Arc<AtomicBool>>, String> {
    let Some(space) = space(lab)? else {
        return Ok(None);
    };
    let is_over = Arc::new(AtomicBool::new(false));
    let seen_over = is_over.clone();
    map(&space, AT, owner, PAGES, WRITE)?;
    let watch = watch.clone();
    let look = move || {
        let mut page = first;
        while !seen_over.load(Ordering::SeqCst) {
            page = (page * 37 + 11) % PAGES;
            let at = AT + page * PAGE;
            let seen = peek(&space, at);
            // Between a fault and the second attempt the page may be taken away again.
            let is_right = match &seen {
                Ok(seen) => is_own(page, seen),
                Err(error) => *error == SpaceError::NotMapped,
            };
            let written = poke(&space, at, canary(page));
            let is_fine = matches!(written, Ok(()) | Err(SpaceError::NotMapped));
            if !is_right || !is_fine {
                watch.note(page, &(seen, written));
            }
            watch.looks.fetch_add(1, Ordering::Relaxed);
        }
    };
    thread::spawn("looks on", look).map_err(say)?;
    Ok(Some(is_over))
}

/// Starts a domain that uses the object until it is ended: the first by copies, the others in
/// spaces.
fn start(
    lab: &Lab,
    owner: &Handle<dyn VmoOwner>,
    watch: &Watch,
    index: u64,
    seed: u64,
) -> Result<Victim, String> {
    let victim = lab.start()?;
    let view = owner.view(ALL).map_err(say)?;
    let subject = victim.subject.duplicate().map_err(say)?;
    let maker = lab.spaces.as_ref().filter(|_| index > 0);
    let maker = maker.map(|it| it.duplicate().map_err(say)).transpose()?;
    let watch = watch.clone();
    thread::spawn("uses it", move || {
        let page = match maker {
            Some(maker) => subject.fork_often(maker, view, seed),
            None => subject.churn(view, seed),
        };
        if let Ok(page) = page {
            watch.note(page, &"holds another's bytes");
        }
    })
    .map_err(say)?;
    Ok(victim)
}

/// Takes pages away from all who have them: off the object, or as clean ones that can be had again.
fn take_away(owner: &Handle<dyn VmoOwner>, random: &mut Random) -> Verdict {
    let (from, count) = (random.below(PAGES), 1 + random.below(40));
    let count = count.min(PAGES - from);
    if random.below(2) == 0 {
        owner.cut(from, count).map_err(say)?;
    } else {
        owner.clean(from, count).map_err(say)?;
        owner.commit(from, count).map_err(say)?;
        owner.evict(from, count).map_err(say)?;
    }
    Ok(())
}
