//! Makes a [`Table`](crate::Table).

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use crate::Named;
use crate::rule::{Cfa, Rule, SavedBp};
use crate::table::{MAGIC, NO_RULE, SAME, UNKNOWN, sum};

/// A table in the making.
#[derive(Default)]
pub struct Writer {
    names: Vec<[u32; 2]>,
    rules: Vec<[u32; 3]>,
    frames: Vec<[u32; 4]>,
    texts: Vec<u8>,
    /// Where they are already.
    known_frames: BTreeMap<[u32; 4], u32>,
    known_texts: BTreeMap<String, u32>,
}

impl Writer {
    /// From `offset` on the code is of these functions, the innermost first. Offsets ascend.
    pub fn names(&mut self, offset: u32, names: &[Named]) {
        let mut next = 0;
        for named in names.iter().rev() {
            let place = named.place.as_deref().and_then(|it| it.rsplit_once(':'));
            let line = place.and_then(|(_, line)| line.parse().ok());
            let (file, line) = match (place, line) {
                (Some((file, _)), Some(line)) => (file, line),
                _ => ("", 0),
            };
            let frame = [self.text(&named.function), self.text(file), line, next];
            next = self.frame(frame);
        }
        if self.names.last().map_or(0, |[_, last]| *last) != next {
            self.names.push([offset, next]);
        }
    }

    /// From `offset` on this rule holds. Offsets ascend.
    pub fn rule(&mut self, offset: u32, rule: Option<Rule>) {
        let [cfa, bp] = rule.map_or([NO_RULE, 0], written);
        let new = [cfa.cast_unsigned(), bp.cast_unsigned()];
        let last = self.rules.last();
        if last.map_or([NO_RULE.cast_unsigned(), 0], |[_, cfa, bp]| [*cfa, *bp]) != new {
            self.rules.push([offset, new[0], new[1]]);
        }
    }

    /// The file, of `build`.
    pub fn finish(self, build: u64) -> Vec<u8> {
        let mut rest = Vec::new();
        let names = self.names.as_flattened().iter();
        let numbers = names
            .chain(self.rules.as_flattened())
            .chain(self.frames.as_flattened());
        numbers.for_each(|number| rest.extend(number.to_le_bytes()));
        rest.extend(&self.texts);
        let counts = [self.names.len(), self.rules.len(), self.frames.len()];
        let mut file = Vec::from(MAGIC);
        file.extend(build.to_le_bytes());
        for count in counts.into_iter().chain([self.texts.len()]) {
            file.extend((count as u32).to_le_bytes());
        }
        file.extend(sum(&rest).to_le_bytes());
        file.extend([0; 4]);
        file.extend(rest);
        file
    }

    fn frame(&mut self, frame: [u32; 4]) -> u32 {
        let number = self.frames.len() as u32 + 1;
        *self.known_frames.entry(frame).or_insert_with(|| {
            self.frames.push(frame);
            number
        })
    }

    fn text(&mut self, text: &str) -> u32 {
        if let Some(place) = self.known_texts.get(text) {
            return *place;
        }
        let place = self.texts.len() as u32;
        self.texts.extend((text.len() as u32).to_le_bytes());
        self.texts.extend(text.as_bytes());
        // The next begins at a whole number, too.
        self.texts.resize(self.texts.len().next_multiple_of(4), 0);
        self.known_texts.insert(text.into(), place);
        place
    }
}

/// A rule in two numbers.
fn written(rule: Rule) -> [i32; 2] {
    let cfa = match rule.cfa {
        Cfa::Sp(offset) => offset << 1,
        Cfa::Bp(offset) => offset << 1 | 1,
    };
    let bp = match rule.bp {
        SavedBp::Same => SAME,
        SavedBp::Unknown => UNKNOWN,
        SavedBp::At(offset) => offset,
    };
    [cfa, bp]
}
