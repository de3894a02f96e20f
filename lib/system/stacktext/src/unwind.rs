//! From one frame to its caller, by the unwind tables that the compiler writes for each function.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::note::{Note, Target};
use crate::rule::Step;
use crate::{Files, Symbols};

/// Bytes between a return address and where the caller's stack begins.
const WORD: u64 = 8;

/// Most frames that are told of a stack.
const MOST_FRAMES: usize = 200;
/// Where a function is, or its call returns to.
#[derive(Clone, Copy)]
struct Place {
    ip: Target,
    sp: u64,
    bp: Option<u64>,
    /// It is where the thread was, and not a return address.
    is_exact: bool,
}

impl Place {
    /// An offset inside of the instruction that is meant by the one of `ip`.
    fn inside(&self, offset: u64) -> u64 {
        offset.saturating_sub(u64::from(!self.is_exact))
    }
}

impl Step {
    /// The caller, to which the call returns at `ip`.
    fn caller(&self, ip: Target) -> Place {
        Place {
            ip,
            sp: self.cfa,
            bp: self.bp,
            is_exact: false,
        }
    }
}

/// A stack in words, the innermost frame first.
pub(crate) fn lines(note: &Note, files: &mut impl Files) -> Vec<String> {
    let frames = frames(note, files);
    let died = frames[way_out(&frames)..].iter().enumerate();
    let mut lines: Vec<_> = died
        .map(|(number, frame)| format!("    #{number:<2} {frame}"))
        .collect();
    if !note.cut.is_empty() {
        lines.push(format!("    (here the log ends: {})", note.cut));
    }
    lines
}

/// The frames of a stack, the innermost first.
pub(crate) fn frames(note: &Note, files: &mut impl Files) -> Vec<Frame> {
    let mut told = Teller {
        note,
        files,
        frames: Vec::new(),
    };
    for number in 0..note.parts.len() {
        told.part(number);
    }
    told.frames
}

/// One function on the stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The name of its domain, or `kernel`.
    pub domain: String,
    /// Its name.
    pub function: String,
    /// `at`, file and line, or why there is nothing to be said.
    pub place: String,
    /// It is a part of the next one, into which it was inlined.
    pub is_inlined: bool,
}

impl fmt::Display for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.domain, self.function)?;
        match self.place.is_empty() {
            true => Ok(()),
            false => write!(f, " {}", self.place),
        }
    }
}

/// How many of the innermost frames do nothing but end the domain: what is of interest is whose
/// line it was.
fn way_out(frames: &[Frame]) -> usize {
    let ends = |frame: &Frame| ENDING.iter().any(|name| frame.function.starts_with(name));
    let ending = frames.iter().take_while(|frame| ends(frame)).count();
    let panics = |frame: &Frame| frame.function.ends_with("::rust_begin_unwind");
    match frames.iter().take(DEEPEST_PANIC).rposition(panics) {
        None => ending,
        Some(panic) => {
            let behind = frames[panic + 1..].iter();
            let library = behind.take_while(|frame| frame.place.starts_with("at rust/"));
            let shown = panic + 1 + library.count();
            if shown < frames.len() { shown } else { 0 }
        }
    }
}

/// Kernel functions that end a domain whose thread runs.
const ENDING: [&str; 3] = [
    "isolation::platform::here",
    "isolation::call::stack::",
    "isolation::call::end::",
];
/// Among so many of the innermost frames is the panic, if there is one.
const DEEPEST_PANIC: usize = 12;

struct Teller<'a, F> {
    note: &'a Note,
    files: &'a mut F,
    frames: Vec<Frame>,
}

impl<'a, F: Files> Teller<'a, F> {
    /// The frames of one part, up to the call that the next one made.
    fn part(&mut self, number: usize) {
        let part = self.note.parts[number];
        let end = self.note.parts.get(number + 1).map(|next| next.sp);
        let bp = match part.bp {
            Target::Stack(at) => Some(at),
            _ => None,
        };
        let start = Place {
            ip: part.ip,
            sp: part.sp,
            bp,
            // A return address stands behind its call; where the thread itself was is exact.
            is_exact: number == 0,
        };
        let told = self.frames.len();
        if let (Some((why, sp)), Some(end)) = (self.walk(start, end), end) {
            self.resume(part.domain, why, sp, end);
        }
        let name = self.note.images.get(&part.domain);
        // The kernel's own part, the last, has no name.
        if let Some((name, _)) = name.filter(|(name, _)| !name.is_empty())
            && self.frames[told..]
                .iter()
                .all(|frame| frame.domain != *name)
        {
            self.say(
                name,
                "",
                "(its last call has taken the place of its frames)",
            );
        }
    }

    /// Tells the frames from `place` on, up to where the stack pointer is `end`. If they do not
    /// lead there: why, and how far they did.
    fn walk(&mut self, mut place: Place, end: Option<u64>) -> Option<(&'static str, u64)> {
        loop {
            let Target::Code(domain, offset) = place.ip else {
                return Some(("no code is there: the stack is damaged", place.sp));
            };
            let step = self.frame(domain, offset, &place)?;
            // The call that the next part made: its own first frame is the caller.
            if end.is_some_and(|end| step.cfa >= end) {
                return None;
            }
            if step.cfa <= place.sp || self.frames.len() > MOST_FRAMES {
                return Some(("the stack is damaged, or deeper than is told", place.sp));
            }
            let Some(word) = self.note.words.get(&step.cfa.wrapping_sub(WORD)) else {
                return Some(("frames that are not in the log", place.sp));
            };
            place = step.caller(*word);
        }
    }

    /// Goes on behind frames of `domain` that are not in the log, above `sp`: where a return
    /// address leads to the call at `end` without a rest.
    fn resume(&mut self, domain: u64, why: &str, sp: u64, end: u64) {
        self.say("??", "", &format!("({why})"));
        let from = sp.saturating_add(WORD).min(end);
        let above = self.note.words.range(from..end);
        let own = |word: &Target| matches!(word, Target::Code(number, _) if *number == domain);
        let returns: Vec<_> = above
            .filter(|(_, word)| own(word))
            .map(|(at, word)| (*at, *word))
            .collect();
        let told = self.frames.len();
        for (at, ip) in returns {
            let place = Place {
                ip,
                sp: at.saturating_add(WORD),
                bp: None,
                is_exact: false,
            };
            if self.leads_to(place, end) {
                self.walk(place, Some(end));
                return;
            }
        }
        self.frames.truncate(told);
    }

    /// Whether the frames from `place` on lead to where the stack pointer is `end`.
    fn leads_to(&mut self, mut place: Place, end: u64) -> bool {
        for _ in 0..MOST_FRAMES {
            let Target::Code(domain, offset) = place.ip else {
                return false;
            };
            let Some(step) = self.step(domain, offset, &place) else {
                return false;
            };
            if step.cfa >= end || step.cfa <= place.sp {
                return step.cfa == end;
            }
            let Some(word) = self.note.words.get(&step.cfa.wrapping_sub(WORD)) else {
                return false;
            };
            place = step.caller(*word);
        }
        false
    }

    /// How to get to the caller of the function at `offset` in the image of `domain`.
    fn step(&mut self, domain: u64, offset: u64, place: &Place) -> Option<Step> {
        let words = &self.note.words;
        let saved = |at: u64| match words.get(&at) {
            Some(Target::Stack(value)) => Some(*value),
            _ => None,
        };
        let (_, build) = self.image(domain)?;
        let file = self.files.get(build, domain == 0).ok()?;
        let rule = file.rule(place.inside(offset))?;
        rule.step(place.sp, place.bp, saved)
    }

    /// Tells of one frame; how to get to its caller, or `None` if nobody knows.
    fn frame(&mut self, domain: u64, offset: u64, place: &Place) -> Option<Step> {
        let unnamed = format!("+{offset:#x}");
        let Some((name, build)) = self.image(domain) else {
            self.say(&format!("domain {domain}"), &unnamed, "(it is gone)");
            return None;
        };
        let file = match self.files.get(build, domain == 0) {
            Ok(file) => file,
            Err(why) => {
                let why = format!("({why})");
                self.say(name, &unnamed, &why);
                return None;
            }
        };
        let named = file.names(place.inside(offset));
        let all = named.len();
        for (number, named) in named.iter().enumerate() {
            let place = named.place.as_ref().map(|place| format!("at {place}"));
            self.say(name, &named.function, &place.unwrap_or_default());
            if let Some(frame) = self.frames.last_mut() {
                frame.is_inlined = number + 1 < all;
            }
        }
        if named.is_empty() {
            self.say(name, &unnamed, "");
        }
        self.step(domain, offset, place)
    }

    /// Name and build of a domain. A kernel that panics does not say which one it is: that is the
    /// one that was booted.
    fn image(&self, domain: u64) -> Option<(&'a str, Option<u64>)> {
        match self.note.images.get(&domain) {
            Some((name, build)) => Some((name, Some(*build))),
            None => (domain == 0).then_some(("kernel", None)),
        }
    }

    fn say(&mut self, domain: &str, function: &str, place: &str) {
        self.frames.push(Frame {
            domain: domain.into(),
            function: function.into(),
            place: place.into(),
            is_inlined: false,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(told: &[(&str, &str)]) -> Vec<Frame> {
        let frame = |(function, place): &(&str, &str)| Frame {
            domain: "a".into(),
            function: (*function).into(),
            place: (*place).into(),
            is_inlined: false,
        };
        told.iter().map(frame).collect()
    }

    #[test]
    fn what_only_ends_a_domain_is_not_shown() {
        let end = ("isolation::call::end::crash_here", "");
        let unwind = ("__rustc::rust_begin_unwind", "at runtime/src/lib.rs:1");
        let library = (
            "core::panicking::panic_fmt",
            "at rust/core/src/panicking.rs:80",
        );
        let own = ("ext2::read", "at lib/fs/ext2/src/lib.rs:3");
        assert_eq!(way_out(&frames(&[end, unwind, library, library, own])), 4);
        assert_eq!(way_out(&frames(&[end, end, own, library])), 2);
        assert_eq!(
            way_out(&frames(&[library, own])),
            0,
            "a hang in the library"
        );
        assert_eq!(
            way_out(&frames(&[end, unwind, library])),
            0,
            "nothing would be left"
        );
        assert_eq!(way_out(&[]), 0);
    }
}
