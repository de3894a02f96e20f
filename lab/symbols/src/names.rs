//! From an address to functions, files and lines.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use addr2line::Context;
use anyhow::Result;
use gimli::{
    DW_TAG_inlined_subroutine, DW_TAG_subprogram, Dwarf, EndianArcSlice, LittleEndian, SectionId,
};
use stacktext::Named;

type Bytes = EndianArcSlice<LittleEndian>;

/// Functions and lines of one file.
pub struct Names {
    context: Context<Bytes>,
    dwarf: Arc<Dwarf<Bytes>>,
    /// Functions by address, in the order of those.
    symbols: Vec<(u64, String)>,
    root: PathBuf,
    /// What was asked for before.
    known: RefCell<HashMap<u64, Rc<[Named]>>>,
}

impl Names {
    /// From the sections of a file.
    pub fn new(
        section: &dyn Fn(&str) -> Vec<u8>,
        symbols: Vec<(u64, String)>,
        root: &Path,
    ) -> Result<Names> {
        let load = |id: SectionId| {
            let bytes: Arc<[u8]> = section(id.name()).into();
            Ok::<_, gimli::Error>(EndianArcSlice::new(bytes, LittleEndian))
        };
        let dwarf = Arc::new(Dwarf::load(load)?);
        Ok(Names {
            context: Context::from_arc_dwarf(dwarf.clone())?,
            dwarf,
            symbols,
            root: root.to_path_buf(),
            known: RefCell::default(),
        })
    }

    /// The functions at `address`, the innermost first; none if nobody knows.
    pub fn at(&self, address: u64) -> Rc<[Named]> {
        let known = self.known.borrow().get(&address).cloned();
        known.unwrap_or_else(|| {
            let found: Rc<[Named]> = self.look_up(address).into();
            self.known.borrow_mut().insert(address, found.clone());
            found
        })
    }

    /// From the first function to the last one.
    pub fn code(&self) -> Option<Range<u64>> {
        let [first, last] = [self.symbols.first()?, self.symbols.last()?].map(|(at, _)| *at);
        Some(first..last)
    }

    /// The addresses at which [`at`](Names::at) may begin to say something else, in order.
    ///
    /// # Errors
    /// If the debug information is damaged.
    pub fn places(&self) -> Result<Vec<u64>> {
        let lines = self.context.find_location_range(0, u64::MAX)?;
        let mut places: Vec<_> = lines
            .flat_map(|(start, length, _)| [start, start.saturating_add(length)])
            .collect();
        places.extend(self.symbols.iter().map(|(at, _)| *at));
        self.ends_of_functions(&mut places)?;
        places.sort_unstable();
        places.dedup();
        Ok(places)
    }

    /// Where functions begin and end, and those that were inlined into them.
    fn ends_of_functions(&self, places: &mut Vec<u64>) -> Result<()> {
        let mut units = self.dwarf.units();
        while let Some(header) = units.next()? {
            let unit = self.dwarf.unit(header)?;
            let mut entries = unit.entries();
            while let Some((_, entry)) = entries.next_dfs()? {
                if ![DW_TAG_subprogram, DW_TAG_inlined_subroutine].contains(&entry.tag()) {
                    continue;
                }
                let mut ranges = self.dwarf.die_ranges(&unit, entry)?;
                while let Some(range) = ranges.next()? {
                    places.extend([range.begin, range.end]);
                }
            }
        }
        Ok(())
    }

    /// As [`at`](Names::at), for who asks once.
    pub fn look_up(&self, address: u64) -> Vec<Named> {
        let mut found = Vec::new();
        if let Ok(mut frames) = self.context.find_frames(address).skip_all_loads() {
            while let Ok(Some(frame)) = frames.next() {
                let name = frame
                    .function
                    .as_ref()
                    .and_then(|name| Some(name.demangle().ok()?.into_owned()));
                let place = frame
                    .location
                    .and_then(|place| Some(format!("{}:{}", self.short(place.file?), place.line?)));
                if let Some(name) = name {
                    found.push(Named {
                        function: plain(&name),
                        place,
                    });
                }
            }
        }
        if found.is_empty() {
            let after = self.symbols.partition_point(|(at, _)| *at <= address);
            if let Some((_, name)) = after.checked_sub(1).map(|index| &self.symbols[index]) {
                let name = addr2line::demangle_auto(name.into(), None);
                found.push(Named {
                    function: plain(&name),
                    place: None,
                });
            }
        }
        found
    }

    /// A path relative to the repository, or to the library of the compiler.
    fn short<'a>(&self, path: &'a str) -> std::borrow::Cow<'a, str> {
        if let Ok(inside) = Path::new(path).strip_prefix(&self.root) {
            return inside.to_string_lossy().into_owned().into();
        }
        match path.find("/library/") {
            Some(at) => format!("rust/{}", &path[at + "/library/".len()..]).into(),
            None => path.into(),
        }
    }
}

/// A function's name without the types that it was made for, which can fill the screen, and without
/// what tells crates of one name apart. Of `<Type as Trait>::function` the trait is left out.
fn plain(name: &str) -> String {
    let name = name
        .rsplit_once("::h")
        .map_or(name, |(front, end)| match is_hash(end) {
            true => front,
            false => name,
        });
    if let Some(inner) = name.strip_prefix('<')
        && let Some(end) = closing(inner)
    {
        let kind = &inner[..end];
        let kind = kind.split_once(" as ").map_or(kind, |(kind, _)| kind);
        return format!("{}{}", plain(kind), without_types(&inner[end + 1..]));
    }
    without_types(name)
}

fn is_hash(text: &str) -> bool {
    text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Each letter with its place, and how many brackets are open before it and after it.
fn letters(text: &str) -> impl Iterator<Item = (usize, char, [u32; 2])> {
    let (mut depth, mut last) = (0_u32, ' ');
    text.char_indices().map(move |(at, letter)| {
        let before = depth;
        match letter {
            '<' => depth += 1,
            '>' if last != '-' => depth = depth.saturating_sub(1),
            _ => {}
        }
        last = letter;
        (at, letter, [before, depth])
    })
}

/// Where the bracket is closed that was opened in front of `text`.
fn closing(text: &str) -> Option<usize> {
    let mut after =
        letters(text).skip_while(|(_, letter, depth)| *letter != '>' || *depth != [0, 0]);
    after.next().map(|(at, ..)| at)
}

fn without_types(text: &str) -> String {
    let outside = letters(text).filter(|(_, letter, depth)| *depth == [0, 0] && *letter != '>');
    let kept: String = outside.map(|(_, letter, _)| letter).collect();
    // `name::<Type>` leaves two pairs of colons, or one at the end.
    kept.replace("::::", "::").trim_end_matches("::").into()
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn names_are_as_people_say_them() {
        assert_eq!(
            plain("ext2::block::read::h0123456789abcdef"),
            "ext2::block::read"
        );
        assert_eq!(plain("alloc::vec::Vec<T,A>::push"), "alloc::vec::Vec::push");
        assert_eq!(
            plain("core::ops::call<fn(u8) -> u8>::once"),
            "core::ops::call::once"
        );
        assert_eq!(
            plain("<a::B<X> as c::D>::e<F>::{closure#0}"),
            "a::B::e::{closure#0}"
        );
        assert_eq!(plain("<[T]>::len"), "[T]::len");
        assert_eq!(
            plain("a::again::<u8>::{closure#1}"),
            "a::again::{closure#1}"
        );
        assert_eq!(plain("a::ask::<u8>"), "a::ask");
        assert_eq!(plain("a<b"), "a");
    }
}
