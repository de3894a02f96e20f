//! Logs that are right, cut and damaged, and symbols of every sort.

use super::*;
use alloc::string::ToString;

const LINES: [&str; 6] = [
    "stack 9: 0 is kernel cdfa5d2d84e99d82",
    "stack 9: 9 is ext2 0ff475ab16808da8",
    "stack 9: in 9 at 9+3ea0a 0 ^10",
    "stack 9: 8=0+3ea0a 28=0+43f64 268=9+3579 2a0=^298",
    "stack 9: in 10 at 0+3e2e3 4d0 ?",
    "stack 9: end",
];

/// The tables that a test has.
#[derive(Default)]
struct Known(BTreeMap<u64, Table<Vec<u8>>>, String);

impl Files for Known {
    type File = Table<Vec<u8>>;

    fn get(&mut self, build: Option<u64>, is_kernel: bool) -> Result<&Self::File, &str> {
        let build = build.unwrap_or_default();
        let what = if is_kernel { "kernel" } else { "build" };
        self.1 = format!("no symbols of {what} {build:016x}");
        self.0.get(&build).ok_or(&self.1)
    }
}

fn reader() -> Reader<Known> {
    Reader::new(Known::default())
}

fn named(function: &str, place: Option<&str>) -> Named {
    Named {
        function: function.into(),
        place: place.map(Into::into),
    }
}

/// Two functions of `ext2`, one with another inlined, and code between that nobody knows.
fn written() -> Vec<u8> {
    let mut table = Writer::default();
    let read = named("ext2::read", Some("lib/fs/ext2/src/lib.rs:3"));
    table.names(0x3000, &[named("check", Some("a.rs:1")), read.clone()]);
    table.names(0x3010, core::slice::from_ref(&read));
    table.names(0x3020, &[read]);
    table.names(0x3030, &[]);
    table.names(0x3500, &[named("ext2::start", None)]);
    let rule = |cfa, bp| Some(Rule { cfa, bp });
    table.rule(0x3000, rule(Cfa::Sp(0x30), SavedBp::At(-16)));
    table.rule(0x3030, None);
    table.rule(0x3500, rule(Cfa::Bp(-8), SavedBp::Same));
    table.rule(0x3600, rule(Cfa::Sp(8), SavedBp::Unknown));
    table.finish(BUILD)
}

const BUILD: u64 = 0x0ff4_75ab_1680_8da8;

#[test]
fn a_table_says_what_was_written() {
    let table = Table::open(written(), BUILD).expect("it was just made");
    let names = |offset| table.names(offset).into_iter().map(|it| it.function);
    let at = |offset| names(offset).collect::<Vec<_>>().join(" in ");
    assert_eq!(at(0), "");
    assert_eq!(at(0x2fff), "");
    assert_eq!(at(0x3000), "check in ext2::read");
    assert_eq!(at(0x300f), "check in ext2::read");
    assert_eq!(at(0x3010), "ext2::read");
    assert_eq!(at(0x302f), "ext2::read");
    assert_eq!(at(0x3030), "");
    assert_eq!(at(u64::MAX), "ext2::start");
    let place = table.names(0x3010).pop().and_then(|it| it.place);
    assert_eq!(place.as_deref(), Some("lib/fs/ext2/src/lib.rs:3"));
    assert_eq!(table.names(0x3500)[0].place, None);
    let rule = |offset| table.rule(offset).map(|rule| (rule.cfa, rule.bp));
    assert_eq!(rule(0x2fff), None);
    assert_eq!(rule(0x302f), Some((Cfa::Sp(0x30), SavedBp::At(-16))));
    assert_eq!(rule(0x3030), None);
    assert_eq!(rule(0x3500), Some((Cfa::Bp(-8), SavedBp::Same)));
    assert_eq!(rule(0x3600), Some((Cfa::Sp(8), SavedBp::Unknown)));
}

#[test]
fn a_stack_is_unwound_with_a_table() {
    let mut known = Known::default();
    let table = Table::open(written(), BUILD).expect("it was just made");
    known.0.insert(BUILD, table);
    let log = "stack 9: 9 is ext2 0ff475ab16808da8\n\
               stack 9: in 9 at 9+3008 0 ?\n\
               stack 9: 28=9+3505 20=^50\n\
               stack 9: in 10 at 0+1 48 ?\n\
               stack 9: end\n";
    let told = "    #0  ext2: check at a.rs:1\n    \
                #1  ext2: ext2::read at lib/fs/ext2/src/lib.rs:3\n    \
                #2  ext2: ext2::start\n    \
                #3  kernel: +0x1 (no symbols of kernel 0000000000000000)\n";
    assert_eq!(Reader::new(known).lines(log), told);
}

#[test]
fn a_stack_that_was_told_before_is_one_line() {
    let mut reader = reader();
    let said = reader.line("[    1.5] stack 17: as of 9, 2 times");
    let told = "[    1.5]     (the stack that was told of domain 9, 2 times)";
    assert_eq!(said, [told]);
    // Nothing of it is left over for a note of the same number, and nonsense stays as it is.
    assert!(reader.notes.is_empty());
    for line in [
        "stack 17: as of x, 2 times",
        "stack 17: as of 9, 2",
        "stack 17: as of 9",
    ] {
        assert_eq!(reader.line(line), [line]);
    }
}

#[test]
fn symbols_that_are_not_those_are_refused() {
    let refused = |bytes: &[u8], build| match Table::open(bytes, build) {
        Ok(_) => String::new(),
        Err(why) => why,
    };
    let whole = written();
    assert_eq!(refused(&whole, BUILD), "");
    assert_eq!(
        refused(&whole, 1),
        "symbols of build 0ff475ab16808da8, not 0000000000000001"
    );
    assert!(refused(b"", BUILD).ends_with("are damaged"));
    for cut in [20, 41, whole.len() - 1] {
        assert!(refused(&whole[..cut], BUILD).ends_with("are damaged"));
    }
    let mut other = whole.clone();
    other[7] = b'2';
    assert!(refused(&other, BUILD).ends_with("have another form"));
    // One byte anywhere that is not as it was is noticed, but for the four that say nothing.
    for at in (8..whole.len()).filter(|at| !(36..40).contains(at)) {
        other.copy_from_slice(&whole);
        other[at] ^= 0x10;
        assert!(!refused(&other, BUILD).is_empty(), "byte {at}");
    }
}

/// A table of whatever bytes, with a head that fits: nothing is read beyond it, and nothing has no
/// end.
#[test]
fn a_hostile_table_does_no_harm() {
    let mut random = 3_u64;
    let mut next = || {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (random >> 33) as u32
    };
    for _ in 0..500 {
        let mut bytes = written();
        let (head, rest) = bytes.split_at_mut(40);
        for _ in 0..1 + next() % 20 {
            let at = next() as usize % rest.len();
            rest[at] = [0, 1, 3, 0x7f, 0x80, 0xff][next() as usize % 6];
        }
        head[32..36].copy_from_slice(&crate::table::sum(rest).to_le_bytes());
        let table = Table::open(bytes, BUILD).expect("the head fits");
        for offset in [0, 0x3000, 0x3011, 0x3500, 0x3700, next().into(), u64::MAX] {
            assert!(table.names(offset).len() <= 64);
            table.rule(offset);
        }
    }
}

#[test]
fn other_lines_are_as_they_were() {
    let text = "[    0.1] boot\r\nstack: 7\n[ x\n";
    assert_eq!(reader().lines(text), text);
}

#[test]
fn what_has_no_symbols_is_shown_by_its_offset() {
    let text: String = LINES
        .iter()
        .map(|line| format!("[    0.2] {line}\n"))
        .collect();
    let said = reader().lines(&text);
    let first = "[    0.2]     #0  ext2: +0x3ea0a (no symbols of build 0ff475ab16808da8)\n";
    assert!(said.starts_with(first), "{said}");
    assert!(
        said.contains("kernel: +0x3e2e3 (no symbols of kernel cdfa5d2d84e99d82)"),
        "{said}"
    );
}

#[test]
fn two_stacks_may_come_at_once() {
    let mut reader = reader();
    let said: Vec<_> = LINES
        .iter()
        .flat_map(|line| [line.to_string(), line.replace("stack 9:", "stack cpu1:")])
        .flat_map(|line| reader.line(&line))
        .collect();
    assert_eq!(
        said.iter().filter(|line| line.contains("#0 ")).count(),
        2,
        "{said:?}"
    );
}

/// Whatever stands in the log: lines are lost, cut off, and their letters are others.
#[test]
fn nonsense_does_no_harm() {
    let mut random = 1_u64;
    let mut next = |below: usize| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (random >> 33) as usize % below
    };
    let mut reader = reader();
    for _ in 0..20_000 {
        let mut line = LINES[next(LINES.len())].to_string().into_bytes();
        for _ in 0..next(4) {
            let at = next(line.len());
            line[at] = b"0123456789abcdef+^=?: xstack"[next(28)];
        }
        line.truncate(next(2 * line.len()).max(8));
        reader.line(&String::from_utf8_lossy(&line));
    }
    for line in LINES {
        reader.line(line);
    }
}
