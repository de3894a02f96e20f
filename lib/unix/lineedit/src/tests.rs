//! The editor, key by key, against a small terminal.

use super::*;
use alloc::string::String;
use alloc::vec;

/// A terminal that knows what the editor sends, and nothing else.
struct Terminal {
    columns: usize,
    rows: Vec<Vec<char>>,
    row: usize,
    column: usize,
    bells: usize,
}

impl Terminal {
    fn new(columns: usize) -> Self {
        Terminal {
            columns,
            rows: vec![Vec::new()],
            row: 0,
            column: 0,
            bells: 0,
        }
    }

    fn put(&mut self, character: char) {
        if self.column == self.columns {
            self.column = 0;
            self.down(1);
        }
        let row = &mut self.rows[self.row];
        while row.len() <= self.column {
            row.push(' ');
        }
        row[self.column] = character;
        self.column += 1;
    }

    fn down(&mut self, count: usize) {
        self.row += count;
        while self.rows.len() <= self.row {
            self.rows.push(Vec::new());
        }
    }

    fn write(&mut self, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let mut characters = text.chars();
        while let Some(character) = characters.next() {
            match character {
                '\r' => self.column = 0,
                '\n' => self.down(1),
                '\x07' => self.bells += 1,
                '\x08' => self.column -= 1,
                '\x1b' => self.sequence(&mut characters),
                character => self.put(character),
            }
        }
    }

    fn sequence(&mut self, characters: &mut core::str::Chars<'_>) {
        assert_eq!(characters.next(), Some('['));
        let mut count = String::new();
        loop {
            let character = characters.next().unwrap();
            if character.is_ascii_digit() {
                count.push(character);
                continue;
            }
            let number = count.parse().unwrap_or(1);
            match character {
                'A' => self.row -= number,
                'B' => self.down(number),
                'C' => self.column += number,
                'H' => (self.row, self.column) = (0, 0),
                'J' if count == "2" => self.rows = vec![Vec::new()],
                'J' => {
                    self.rows.truncate(self.row + 1);
                    let column = self.column;
                    self.rows[self.row].truncate(column);
                }
                other => panic!("unknown sequence {other}"),
            }
            return;
        }
    }

    fn text(&self) -> String {
        let rows: Vec<String> = self.rows.iter().map(|row| row.iter().collect()).collect();
        let rows: Vec<&str> = rows.iter().map(|row| row.trim_end()).collect();
        rows.join("\n").trim_end().into()
    }
}

struct Session {
    editor: Editor,
    history: History,
    terminal: Terminal,
    events: Vec<Event>,
}

impl Session {
    fn new(columns: usize) -> Self {
        let mut session = Session {
            editor: Editor::new(columns),
            history: History::new(100),
            terminal: Terminal::new(columns),
            events: Vec::new(),
        };
        session.begin();
        session
    }

    fn begin(&mut self) {
        let mut out = Vec::new();
        self.editor.begin(b"$ ", &mut out);
        self.terminal.write(&out);
    }

    fn type_bytes(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut all = Vec::new();
        for &byte in bytes {
            let mut out = Vec::new();
            let event = self.editor.feed(byte, &self.history, &mut out);
            self.terminal.write(&out);
            all.extend(out);
            if let Some(Event::Line(line)) = &event {
                self.history.add(line);
            }
            self.events.extend(event);
        }
        all
    }

    fn typed(&mut self, text: &str) -> &mut Self {
        self.type_bytes(text.as_bytes());
        self
    }

    fn line(&self) -> String {
        String::from_utf8(self.editor.line().0.to_vec()).unwrap()
    }
}

const UP: &str = "\x1b[A";
const DOWN: &str = "\x1b[B";
const LEFT: &str = "\x1b[D";
const RIGHT: &str = "\x1b[C";

#[test]
fn what_is_added_at_the_end_is_all_that_is_sent() {
    let mut session = Session::new(80);
    assert_eq!(
        session.type_bytes("echo é\r".as_bytes()),
        "echo é\r\n".as_bytes()
    );
    assert_eq!(session.events, [Event::Line("echo é".into())]);
}

#[test]
fn keys_edit_the_line() {
    for (keys, expected) in [
        ("abc\x7fd", "abd"),
        ("abc\x1b[D\x1b[Dx", "axbc"),
        ("abc\x01x\x05y", "xabcy"),
        ("abc\x1b[Hx\x1b[Fy\x1b[1~z\x1b[4~w", "zxabcyw"),
        ("abc\x1bOD\x1bOC!", "abc!"),
        ("one two\x17three", "one three"),
        ("one two \x17x", "one x"),
        ("one two\x1bb\x0b", "one "),
        ("one two\x1bb\x15", "two"),
        ("one two\x15x\x19", "xone two"),
        ("one two\x01\x1bd\x05\x19", " twoone"),
        ("abc\x01\x1b[3~", "bc"),
        ("abc\x01\x04", "bc"),
        ("äöü\x7f\x1b[D\x7fx", "xö"),
        ("one two\x1b[1;5Dx", "one xtwo"),
        ("one two\x01\x1b[1;5Cx", "onex two"),
        ("a\x1b[99;99Qb\x1bxc", "abc"),
        ("\x7f\x1b[D\x1b[C\x17\x0ba", "a"),
    ] {
        let mut session = Session::new(80);
        session.typed(keys);
        assert_eq!(session.line(), expected, "{keys:?}");
        let shown = alloc::format!("$ {expected}");
        assert_eq!(session.terminal.text(), shown.trim_end(), "{keys:?}");
    }
}

#[test]
fn lines_that_wrap_are_shown_right_after_every_key() {
    let mut session = Session::new(10);
    let keys = "0123456789abcdefghij\x01X\x1b[C\x1b[C\x7f\x05Y\x17end of it\x1b[D\x1b[D\x0b!\x15";
    for key in keys.split_inclusive(|_| true) {
        session.typed(key);
        let whole = alloc::format!("$ {}", session.line());
        let characters: Vec<char> = whole.chars().collect();
        let rows: Vec<String> = characters
            .chunks(10)
            .map(|row| row.iter().collect())
            .collect();
        let rows: Vec<&str> = rows.iter().map(|row| row.trim_end()).collect();
        assert_eq!(session.terminal.text(), rows.join("\n").trim_end());
        let at = 2 + session.line()[..session.editor.line().1].chars().count();
        assert_eq!(
            (session.terminal.row, session.terminal.column),
            (at / 10, at % 10),
            "{whole}"
        );
    }
}

#[test]
fn ends_and_interrupts() {
    let mut session = Session::new(80);
    session.typed("abc\x01\x03");
    assert_eq!(session.events, [Event::Interrupted]);
    assert_eq!(session.terminal.text(), "$ abc^C");
    session.begin();
    session.typed("\x04");
    assert_eq!(session.events[1], Event::End);
}

#[test]
fn history_is_walked() {
    let mut session = Session::new(80);
    for line in ["one\r", "two\r", "two\r", "  \r", "three\r"] {
        session.typed(line);
        session.begin();
    }
    assert_eq!(session.history.to_text(), b"one\ntwo\nthree\n");
    session.typed("new").typed(UP);
    assert_eq!(session.line(), "three");
    session.typed(UP).typed(UP);
    assert_eq!(session.line(), "one");
    session.typed(UP);
    assert_eq!(
        (session.line().as_str(), session.terminal.bells),
        ("one", 1)
    );
    session.typed(DOWN).typed(DOWN).typed(DOWN);
    assert_eq!(session.line(), "new");
    session.typed(DOWN);
    assert_eq!(session.line(), "new");
    session.typed("\x10\x10x\r");
    assert_eq!(session.events.last(), Some(&Event::Line("twox".into())));
}

#[test]
fn history_is_searched() {
    let mut session = Session::new(80);
    for line in ["echo one", "ls /text", "echo two"] {
        session.history.add(line.as_bytes());
    }
    session.typed("\x12echo");
    assert_eq!(session.line(), "echo two");
    assert!(
        session
            .terminal
            .text()
            .ends_with("(search) `echo': echo two")
    );
    session.typed("\x12");
    assert_eq!(session.line(), "echo one");
    session.typed("\x12");
    assert_eq!(
        (session.line().as_str(), session.terminal.bells),
        ("echo one", 1)
    );
    session.typed("\x07");
    assert_eq!(session.terminal.text(), "$");
    session.typed("\x12text\r");
    assert_eq!(session.events, [Event::Line("ls /text".into())]);
    assert!(session.terminal.text().starts_with("$ ls /text"));
}

#[test]
fn history_survives_in_a_file_and_is_bounded() {
    let mut history = History::new(2);
    history.load(b"a\nb\n\nc\nd\te\n");
    assert_eq!(history.to_text(), b"c\nd e\n");
    assert_eq!((history.len(), history.get(2)), (2, None));
}

fn candidates(session: &Session, names: &[(&str, u8)]) -> Candidates {
    let (line, at) = session.editor.line();
    let (start, _) = word_start(line, at);
    let typed = &line[start..at];
    let names = names
        .iter()
        .map(|(name, end)| (name.as_bytes().to_vec(), *end));
    Candidates::new(start, typed, names)
}

fn press_tab(session: &mut Session, names: &[(&str, u8)]) {
    session.typed("\t");
    assert_eq!(session.events.pop(), Some(Event::Complete));
    let candidates = candidates(session, names);
    let mut out = Vec::new();
    session.editor.complete(&candidates, &mut out);
    session.terminal.write(&out);
}

#[test]
fn tab_completes_and_lists() {
    let names = [("text", b'/'), ("tests one", b' '), ("other", b' ')];
    let mut session = Session::new(40);
    session.typed("ls t");
    press_tab(&mut session, &names);
    assert_eq!(session.line(), "ls te");
    press_tab(&mut session, &names);
    assert_eq!(
        (session.line().as_str(), session.terminal.bells),
        ("ls te", 1)
    );
    press_tab(&mut session, &names);
    assert_eq!(
        session.terminal.text(),
        "$ ls te\ntests one  text/\n$ ls te"
    );
    session.typed("s");
    press_tab(&mut session, &names);
    assert_eq!(session.line(), "ls tests\\ one ");
    session.typed("o");
    press_tab(&mut session, &names);
    assert_eq!(session.line(), "ls tests\\ one other ");
    session.typed("zz");
    press_tab(&mut session, &names);
    press_tab(&mut session, &names);
    assert_eq!(session.terminal.bells, 3);
}

#[test]
fn knows_where_words_begin() {
    for (line, start, is_command) in [
        ("ec", 0, true),
        ("ls /te", 3, false),
        ("a|b", 2, true),
        ("a | b", 4, true),
        ("a && ", 5, true),
        ("x=$(l", 4, true),
        ("cat <f", 5, false),
        ("ls a\\ b", 3, false),
        ("", 0, true),
    ] {
        assert_eq!(
            word_start(line.as_bytes(), line.len()),
            (start, is_command),
            "{line}"
        );
    }
    assert_eq!(complete::unescaped(b"a\\ b\\\\"), b"a b\\");
}

#[test]
fn long_lines_cost_what_is_new() {
    let mut session = Session::new(80);
    let long = "x".repeat(100_000);
    session.typed(&long);
    assert_eq!(session.line().len(), 100_000);
    assert!(session.type_bytes(b"y").len() < 8);
    let end = session.type_bytes(b"\r");
    assert_eq!(end, b"\r\n");
    session.begin();
    session.typed(&"z".repeat(LINE_LIMIT + 5));
    assert_eq!(session.line().len(), LINE_LIMIT);
    assert_eq!(session.terminal.bells, 5);
}

#[test]
fn strange_bytes_do_no_harm() {
    let mut session = Session::new(20);
    for byte in (0..=255u8).cycle().take(5000).filter(|byte| *byte != 3) {
        session.type_bytes(&[byte]);
        session.type_bytes(&[byte.wrapping_mul(37) | 0x80, 0x1b, b'[', byte | 0x20]);
        if session
            .events
            .pop()
            .is_some_and(|event| event != Event::Complete)
        {
            session.begin();
        }
    }
    session.typed("\x03");
    session.begin();
    session.typed(RIGHT).typed(LEFT).typed("ok");
    assert!(session.line().ends_with("ok"));
}
