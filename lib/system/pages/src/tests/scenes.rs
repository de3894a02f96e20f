//! What happens to pages at the same time, and what must hold then.

use super::memory::{FOREIGN, Kit, OWN, Shared};
use crate::seal::change;
use crate::{Frames, Missing, Step};
use core::sync::atomic::Ordering;
use std::vec;
use std::vec::Vec;

/// What one thread does.
pub type Act<W> = fn(&Shared<W>);

/// Threads, and what must hold at their end.
pub struct Scene<W> {
    pub threads: Vec<Act<W>>,
    pub end: Act<W>,
}

const WRITTEN: u64 = 5;

fn read<W: Kit>(shared: &Shared<W>) {
    let page = &shared.pages[0];
    let seen = page.read(&shared.memory, |frame| {
        let first = shared.memory.get(frame);
        W::pause();
        [first, shared.memory.get(frame)]
    });
    match seen {
        Ok(seen) => assert_eq!(seen, [OWN, OWN], "another's bytes were read"),
        Err(missing) => assert_ne!(missing, Missing::Cut),
    }
}

fn write<W: Kit>(shared: &Shared<W>, value: u64) -> Result<((), bool), Missing> {
    let memory = &shared.memory;
    let written = shared.pages[0].write(memory, |frame| {
        memory.put(frame, value);
        Some(())
    })?;
    Ok(written.expect("it was copied"))
}

fn content<W: Kit>(shared: &Shared<W>) -> Option<u64> {
    let memory = &shared.memory;
    shared.pages[0].read(memory, |frame| memory.get(frame)).ok()
}

/// A page is removed under a reader, and its frame goes to somebody else.
pub fn a_freeze_and_a_reader<W: Kit>() -> Scene<W> {
    let remove: Act<W> = |shared| {
        shared.pages[0].remove(&shared.memory);
        shared.somebody_else();
    };
    Scene {
        threads: vec![read, remove],
        end: |_| {},
    }
}

/// A page is removed under a reader, and loaded again into the same frame.
pub fn a_reload_and_a_reader<W: Kit>() -> Scene<W> {
    let reload: Act<W> = |shared| {
        shared.pages[0].remove(&shared.memory);
        let Ok(held) = shared.pages[0].load(shared.frame()) else {
            return;
        };
        W::pause();
        shared.memory.put(held.frame(), OWN);
        assert!(shared.pages[0].end_load(&held), "nobody broke it off");
    };
    Scene {
        threads: vec![read, reload],
        end: |_| {},
    }
}

/// A page is removed under a device that writes to it, and its frame goes to somebody else.
pub fn a_freeze_and_a_device<W: Kit>() -> Scene<W> {
    let device: Act<W> = |shared| {
        let Ok(held) = shared.pages[0].hold(&shared.memory) else {
            return;
        };
        let lent = held.lend().ok().expect("it is the only one");
        W::pause();
        shared.memory.put(lent.frame(), WRITTEN);
        let marked = shared.pages[0].mark_lent(&lent);
        drop(lent);
        if marked.is_ok() {
            shared.note.put(1);
        }
    };
    let remove: Act<W> = |shared| {
        shared.pages[0].remove(&shared.memory);
        shared.somebody_else();
    };
    let nothing_lost: Act<W> = |shared| {
        let is_marked = shared.note.load(Ordering::Relaxed) == 1;
        let is_there = shared.pages[0].tags().dirty && content(shared) == Some(WRITTEN);
        assert!(!is_marked || is_there, "what a device has written is lost");
    };
    Scene {
        threads: vec![device, remove],
        end: nothing_lost,
    }
}

/// A page is cut under a device that writes to it.
pub fn a_cut_and_a_device<W: Kit>() -> Scene<W> {
    let device: Act<W> = a_freeze_and_a_device().threads[0];
    let cut: Act<W> = |shared| {
        shared.pages[0].cut(&shared.memory);
        shared.somebody_else();
        shared.add(0, OWN);
    };
    // The device may have come after the cut, too.
    let marked_if_written: Act<W> = |shared| {
        let is_written = match content(shared) {
            Some(OWN) => false,
            Some(WRITTEN) => true,
            other => panic!("a page holds {other:?}"),
        };
        let is_marked = shared.pages[0].tags().dirty;
        assert_eq!(is_marked, is_written, "the mark is on another frame");
    };
    Scene {
        threads: vec![device, cut],
        end: marked_if_written,
    }
}

/// A device fills a page, whose loader ends the load when the device has done so, and somebody
/// reads.
pub fn a_load_by_a_device<W: Kit>() -> Scene<W> {
    let load: Act<W> = |shared| {
        shared.pages[0].cut(&shared.memory);
        let held = shared.pages[0].load(shared.frame());
        let held = held.ok().expect("nobody else loads");
        let again = held.again().expect("it is one of few");
        let lent = again.lend().ok().expect("it is the only one");
        shared.note.put(lent.frame());
        core::mem::forget(lent);
        while held.is_lent() {
            W::pause();
        }
        assert!(shared.pages[0].end_load(&held), "nobody broke it off");
    };
    let device: Act<W> = |shared| {
        let frame = loop {
            match shared.note.load(Ordering::Acquire) {
                0 => W::pause(),
                frame => break frame,
            }
        };
        shared.memory.put(frame, FOREIGN);
        W::pause();
        shared.memory.put(frame, OWN);
        let memory = &shared.memory;
        memory.end_loan(frame);
    };
    Scene {
        threads: vec![read, load, device],
        end: |_| {},
    }
}

/// Writes a page that was cleaned to the disk, which takes so long.
fn write_back<W: Kit>(shared: &Shared<W>, pauses: usize) {
    let held = shared.pages[0].hold(&shared.memory);
    let held = held.expect("a page that is written back stays");
    let bytes = shared.memory.get(held.frame());
    for _ in 0..pauses {
        W::pause();
    }
    shared.disk.put(bytes);
    drop(held);
    assert!(shared.pages[0].commit(), "nobody else ends it");
}

/// A page is removed while it is written back, and its frame goes to somebody else.
pub fn a_write_back_and_a_remove<W: Kit>() -> Scene<W> {
    let save: Act<W> = |shared| {
        if write(shared, WRITTEN).is_err() {
            return;
        }
        assert!(shared.pages[0].clean(&shared.memory), "it is dirty");
        W::pause();
        write_back(shared, 1);
        assert_eq!(shared.disk.load(Ordering::Relaxed), WRITTEN);
    };
    let remove: Act<W> = a_freeze_and_a_device().threads[1];
    Scene {
        threads: vec![save, remove],
        end: |_| {},
    }
}

/// A page is written while two write it back.
pub fn a_write_and_a_clean<W: Kit>() -> Scene<W> {
    let write_twice: Act<W> = |shared| {
        for value in [WRITTEN, WRITTEN + 1] {
            write(shared, value).expect("the page stays");
        }
    };
    let clean: Act<W> = |shared| {
        if shared.pages[0].clean(&shared.memory) {
            write_back(shared, 1);
        }
    };
    let nothing_lost: Act<W> = |shared| {
        let tags = shared.pages[0].tags();
        let disk = shared.disk.load(Ordering::Relaxed);
        let saved = content(shared) == Some(disk);
        assert!(tags.dirty || tags.writeback || saved, "a write is lost");
    };
    Scene {
        threads: vec![write_twice, clean, clean],
        end: nothing_lost,
    }
}

/// Two write a page back, and the first one's disk is slow.
pub fn two_cleans<W: Kit>() -> Scene<W> {
    let slow: Act<W> = |shared| {
        write(shared, WRITTEN).expect("the page stays");
        assert!(shared.pages[0].clean(&shared.memory), "it is dirty");
        shared.note.put(1);
        write_back(shared, 20);
    };
    let quick: Act<W> = |shared| {
        while shared.note.load(Ordering::Acquire) == 0 {
            W::pause();
        }
        write(shared, WRITTEN + 1).expect("the page stays");
        if shared.pages[0].clean(&shared.memory) {
            write_back(shared, 0);
        }
    };
    Scene {
        threads: vec![slow, quick],
        end: (a_write_and_a_clean().end),
    }
}

/// A page is written while somebody removes it.
pub fn a_write_and_a_remove<W: Kit>() -> Scene<W> {
    let write_once: Act<W> = |shared| match write(shared, WRITTEN) {
        Ok(_) => shared.note.put(1),
        Err(missing) => assert_eq!(missing, Missing::Absent, "nobody cuts"),
    };
    let remove: Act<W> = |shared| _ = shared.pages[0].remove(&shared.memory);
    let written_stays: Act<W> = |shared| {
        if shared.note.load(Ordering::Relaxed) == 1 {
            assert!(shared.pages[0].tags().dirty, "a written page is clean");
            assert_eq!(content(shared), Some(WRITTEN), "a write is lost");
        }
    };
    Scene {
        threads: vec![write_once, remove],
        end: written_stays,
    }
}

/// A page is written while it is cut and comes back as another.
pub fn a_write_and_a_cut<W: Kit>() -> Scene<W> {
    let write_once: Act<W> = |shared| _ = write(shared, WRITTEN);
    let replace: Act<W> = |shared| {
        shared.pages[0].cut(&shared.memory);
        assert!(shared.add(0, OWN), "the page is empty");
    };
    let marked_is_written: Act<W> = |shared| {
        let wanted = match shared.pages[0].tags().dirty {
            true => WRITTEN,
            false => OWN,
        };
        assert_eq!(content(shared), Some(wanted), "the mark is wrong");
    };
    Scene {
        threads: vec![write_once, replace],
        end: marked_is_written,
    }
}

/// A load breaks off while one waits for it, and its device writes all the same.
pub fn a_load_that_breaks_off<W: Kit>() -> Scene<W> {
    let load: Act<W> = |shared| {
        let page = &shared.pages[1];
        let held = page.load(shared.frame()).ok();
        let held = held.expect("the page is empty");
        W::pause();
        assert!(page.break_off(&held), "nobody else ends it");
        shared.memory.put(held.frame(), WRITTEN);
        drop(held);
    };
    let wait: Act<W> = |shared| {
        let memory = &shared.memory;
        loop {
            let wakes = memory.wakes();
            match shared.pages[1].read(memory, |frame| memory.get(frame)) {
                Err(Missing::Loading) => {}
                Err(_) => return,
                Ok(_) => panic!("what no load brought was read"),
            }
            while memory.wakes() == wakes {
                W::pause();
            }
        }
    };
    Scene {
        threads: vec![load, wait, Shared::somebody_else],
        end: |_| {},
    }
}

/// A page is cut under a reader while another removes it.
pub fn a_cut_and_a_reader<W: Kit>() -> Scene<W> {
    let cut: Act<W> = |shared| {
        shared.pages[0].cut(&shared.memory);
        shared.somebody_else();
    };
    let remove: Act<W> = |shared| _ = shared.pages[0].remove(&shared.memory);
    Scene {
        threads: vec![read, cut, remove],
        end: |shared| assert_eq!(content(shared), None, "it was cut"),
    }
}

/// An object is sealed while somebody writes.
pub fn a_write_and_a_seal<W: Kit>() -> Scene<W> {
    let write_once: Act<W> = |shared| {
        if let Ok(writing) = shared.seal.begin_write() {
            write(shared, WRITTEN).expect("the page stays");
            drop(writing);
        }
    };
    let seal: Act<W> = |shared| {
        if shared.seal.close() {
            let before = content(shared);
            W::pause();
            assert!(shared.seal.is_final(), "a write is under way");
            assert_eq!(content(shared), before, "a write after the seal");
        }
    };
    Scene {
        threads: vec![write_once, seal],
        end: |shared| assert!(shared.seal.begin_write().is_err(), "it is sealed"),
    }
}

/// Two write to a page, and tell of it; who is told writes it back.
pub fn writes_and_a_look<W: Kit>() -> Scene<W> {
    let write_and_tell: Act<W> = |shared| {
        let tell = || {
            if shared.alarm.marked() {
                change(&shared.note, |count| Some(count + 1));
            }
        };
        let first = (&shared.memory).breaks(Step::TellLast);
        if first {
            tell();
        }
        let ((), was_clean) = write(shared, WRITTEN).expect("the page stays");
        if was_clean && !first {
            tell();
        }
    };
    let look_when_told: Act<W> = |shared| {
        let quiet_late = (&shared.memory).breaks(Step::QuietFirst);
        for _ in 0..3 {
            if change(&shared.note, |_| Some(0)) == Some(0) {
                W::pause();
                continue;
            }
            if !quiet_late {
                shared.alarm.look();
            }
            if shared.pages[0].clean(&shared.memory) {
                shared.pages[0].commit();
            }
            if quiet_late {
                shared.alarm.look();
            }
        }
    };
    let dirty_is_told: Act<W> = |shared| {
        let told = shared.note.load(Ordering::Relaxed) > 0;
        assert!(told || !shared.pages[0].tags().dirty, "nobody will look");
    };
    Scene {
        threads: vec![write_and_tell, write_and_tell, look_when_told],
        end: dirty_is_told,
    }
}

/// A test of each scene by `$check`.
macro_rules! each {
    ($check:ident, $kit:ty) => {
        $crate::tests::scenes::each!($check, $kit:
            a_freeze_and_a_reader a_reload_and_a_reader a_write_and_a_clean two_cleans
            a_write_and_a_remove a_write_back_and_a_remove
            a_write_and_a_cut a_load_that_breaks_off a_cut_and_a_reader
            a_write_and_a_seal writes_and_a_look
            a_freeze_and_a_device a_cut_and_a_device a_load_by_a_device);
    };
    ($check:ident, $kit:ty: $($name:ident)*) => { $(
        #[test]
        fn $name() {
            $check($crate::tests::scenes::$name::<$kit>);
        }
    )* };
}

pub(super) use each;
