//! The lines of a note.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

/// What a word points to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// So many bytes into the image of the domain with this number; 0: into the kernel's code.
    Code(u64, u64),
    /// So many bytes above the innermost stack pointer.
    Stack(u64),
    /// Nothing that matters.
    Other,
}

/// What a thread did in one domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The domain's number; 0 for the kernel.
    pub domain: u64,
    /// Where it was, or whither the call from there returns.
    pub ip: Target,
    /// Its stack pointer, from the innermost one.
    pub sp: u64,
    /// Its rbp.
    pub bp: Target,
}

/// A note, as far as it has been read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Note {
    /// Names and builds, by number.
    pub images: BTreeMap<u64, (String, u64)>,
    /// The innermost first.
    pub parts: Vec<Part>,
    /// Words of the stack, by their places.
    pub words: BTreeMap<u64, Target>,
    /// Why it ends where it does; empty if it is whole.
    pub cut: String,
}

/// What a line was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noted {
    /// More of the note.
    More,
    /// The last line.
    End,
    /// Not a line of a note.
    Nonsense,
}

/// Whose stack a line is about, the dead domain's number or a processor, and the rest of the line;
/// `None` for all other lines.
pub fn of(text: &str) -> Option<(&str, &str)> {
    let (whose, rest) = text.strip_prefix("stack ")?.split_once(": ")?;
    let number = whose.strip_prefix("cpu").unwrap_or(whose);
    number.parse::<u64>().ok()?;
    Some((whose, rest))
}

/// Of a line that stands for a whole note: of which domain the same stack was told before, and how
/// often it was there by now.
pub fn again(text: &str) -> Option<(u64, u64)> {
    let (of, rest) = text.strip_prefix("as of ")?.split_once(", ")?;
    let times = rest.strip_suffix(" times")?;
    Some((of.parse().ok()?, times.parse().ok()?))
}

impl Note {
    /// Adds a line.
    pub fn add(&mut self, text: &str) -> Noted {
        if let Some(cut) = text.strip_prefix("end") {
            self.cut = cut.trim().into();
            return Noted::End;
        }
        let added = match text.strip_prefix("in ") {
            Some(part) => self.add_part(part),
            None if text.contains('=') => self.add_words(text),
            None => self.add_image(text),
        };
        added.map_or(Noted::Nonsense, |()| Noted::More)
    }

    fn add_image(&mut self, text: &str) -> Option<()> {
        let (number, rest) = text.split_once(" is ")?;
        let (name, build) = rest.rsplit_once(' ')?;
        let build = u64::from_str_radix(build, 16).ok()?;
        self.images
            .insert(number.parse().ok()?, (name.into(), build));
        Some(())
    }

    fn add_part(&mut self, text: &str) -> Option<()> {
        let (domain, rest) = text.split_once(" at ")?;
        let mut words = rest.split(' ');
        self.parts.push(Part {
            domain: domain.parse().ok()?,
            ip: target(words.next()?)?,
            sp: u64::from_str_radix(words.next()?, 16).ok()?,
            bp: target(words.next()?)?,
        });
        Some(())
    }

    fn add_words(&mut self, text: &str) -> Option<()> {
        for word in text.split_whitespace() {
            let (place, word) = word.split_once('=')?;
            let place = u64::from_str_radix(place, 16).ok()?;
            self.words.insert(place, target(word)?);
        }
        Some(())
    }
}

fn target(text: &str) -> Option<Target> {
    let hex = |text| u64::from_str_radix(text, 16).ok();
    if text == "?" {
        return Some(Target::Other);
    }
    if let Some(offset) = text.strip_prefix('^') {
        return hex(offset).map(Target::Stack);
    }
    let (domain, offset) = text.split_once('+')?;
    Some(Target::Code(domain.parse().ok()?, hex(offset)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_read_as_it_is_written() {
        let mut note = Note::default();
        for line in [
            "0 is kernel cdfa5d2d84e99d82",
            "9 is my domain 0ff475ab16808da8",
            "in 9 at 0+3ea0a 0 ?",
            "8=0+3ea0a 2a0=^298",
            "in 10 at 9+3 4d0 ^4f0",
        ] {
            assert_eq!(note.add(line), Noted::More, "{line}");
        }
        assert_eq!(note.add("end more calls"), Noted::End);
        assert_eq!(note.cut, "more calls");
        assert_eq!(note.images[&9], ("my domain".into(), 0x0ff4_75ab_1680_8da8));
        assert_eq!(note.words[&0x2a0], Target::Stack(0x298));
        let ip = Target::Code(9, 3);
        let bp = Target::Stack(0x4f0);
        assert_eq!(
            note.parts[1],
            Part {
                domain: 10,
                ip,
                sp: 0x4d0,
                bp
            }
        );
    }

    #[test]
    fn nonsense_is_no_note() {
        for line in [
            "",
            "in 9",
            "in 9 at",
            "in x at 0+1 0 ?",
            "in 9 at 0+1 zz ?",
            "1=",
            "=",
            "x=1+1",
            "1=^",
            "1=+",
            "9 is",
            "9 is ext2",
            "9 is ext2 xyz",
            "99999999999999999999 is a 1",
        ] {
            assert_eq!(Note::default().add(line), Noted::Nonsense, "{line}");
        }
        assert_eq!(of("stack: 9 is"), None);
        assert_eq!(of("stack x: 9 is"), None);
        assert_eq!(of("ext2: domain 9 crashed"), None);
    }
}
