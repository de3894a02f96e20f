//! Changes of permission bits as `chmod` writes them.

use alloc::vec::Vec;

/// The bits for reading, writing and executing, for all three kinds of people.
const ALL: u16 = 0o777;

/// One clause of a symbolic mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Clause {
    /// Whose bits: a mask.
    who: u16,
    sign: u8,
    /// Which of them, for all three.
    bits: u16,
    /// `X`: executing for directories and what somebody may execute already.
    if_useful: bool,
}

/// A change of permission bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change(Result<u16, Vec<Clause>>);

impl Change {
    /// Reads an octal number, or clauses like `u+x,go-w`. `None` if it is neither.
    pub fn parse(text: &[u8]) -> Option<Self> {
        if !text.is_empty() && text.iter().all(|byte| matches!(byte, b'0'..=b'7')) {
            let text = core::str::from_utf8(text).ok()?;
            let mode = u16::from_str_radix(text, 8).ok()?;
            return (mode <= 0o7777).then_some(Change(Ok(mode)));
        }
        let mut clauses = Vec::new();
        for part in text.split(|&byte| byte == b',') {
            clause(part, &mut clauses)?;
        }
        Some(Change(Err(clauses)))
    }

    /// The bits after the change.
    pub fn apply(&self, mode: u16, is_directory: bool) -> u16 {
        let clauses = match &self.0 {
            Ok(mode) => return *mode,
            Err(clauses) => clauses,
        };
        clauses.iter().fold(mode, |mode, clause| {
            let useful = is_directory || mode & 0o111 != 0;
            let more = if clause.if_useful && useful { 0o111 } else { 0 };
            let bits = (clause.bits | more) & clause.who;
            match clause.sign {
                b'+' => mode | bits,
                b'-' => mode & !bits,
                _ => mode & !(clause.who & ALL) | bits,
            }
        })
    }
}

/// Reads one part, which may have several signs behind one list of people.
fn clause(part: &[u8], clauses: &mut Vec<Clause>) -> Option<()> {
    let people = part.iter().take_while(|it| b"ugoa".contains(it)).count();
    let who = part[..people].iter().fold(0, |who, it| match it {
        b'u' => who | 0o700,
        b'g' => who | 0o070,
        b'o' => who | 0o007,
        _ => ALL,
    });
    let who = if people == 0 { ALL } else { who };
    let mut rest = &part[people..];
    if rest.is_empty() {
        return None;
    }
    while let Some((&sign, behind)) = rest.split_first() {
        if !b"+-=".contains(&sign) {
            return None;
        }
        let (mut bits, mut if_useful) = (0, false);
        rest = behind;
        while let Some((letter, behind)) = rest.split_first() {
            match letter {
                b'r' => bits |= 0o444,
                b'w' => bits |= 0o222,
                b'x' => bits |= 0o111,
                b'X' => if_useful = true,
                _ => break,
            }
            rest = behind;
        }
        clauses.push(Clause {
            who,
            sign,
            bits,
            if_useful,
        });
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes() {
        for (text, before, directory, after) in [
            ("755", 0, false, 0o755),
            ("+x", 0o644, false, 0o755),
            ("u+x,go-r", 0o644, false, 0o700),
            ("a=rw", 0o755, false, 0o666),
            ("g=", 0o777, false, 0o707),
            ("-w+x", 0o666, false, 0o555),
            ("+X", 0o644, false, 0o644),
            ("+X", 0o644, true, 0o755),
            ("+X", 0o744, false, 0o755),
        ] {
            let change = Change::parse(text.as_bytes()).unwrap();
            assert_eq!(change.apply(before, directory), after, "{text}");
        }
    }

    #[test]
    fn faults() {
        for text in ["", "8", "99999", "u", "x+u", "+q", "u+x,", "77777777777"] {
            assert_eq!(Change::parse(text.as_bytes()), None, "{text}");
        }
    }
}
