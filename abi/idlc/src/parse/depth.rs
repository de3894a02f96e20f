//! How long a file is and how deep it is nested, before it is parsed.
//!
//! The parser calls itself for every type within a type and every expression within an expression,
//! and so would overflow its stack on a file that is written for that. Here is counted, without
//! recursion to speak of, how many tokens stand in front of each one that it could still be inside
//! of. No decent file comes near the limit.

use crate::bounds::{LONGEST_FILE, LONGEST_WORD};
use crate::diagnostics::Rule;
use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// The most tokens that may stand open; the parser takes some kilobytes of stack for each, of two
/// megabytes.
const MOST: usize = 128;

/// Why `text` must not be given to the parser.
///
/// # Errors
/// The rule that it breaks, and how: it is too long or too deep, or has a word that is too long.
/// What is no text of tokens is left to the parser, whose messages are better.
pub(super) fn check(text: &str) -> Result<(), (Rule, &'static str)> {
    if text.len() > LONGEST_FILE {
        return Err((Rule::FileSize, "the file is longer than 256 KiB"));
    }
    match text.parse::<TokenStream>() {
        Ok(tokens) => look(tokens, 0, true),
        Err(_) => Ok(()),
    }
}

/// Looks at `tokens`, the content of a group that `open` tokens stand in front of.
fn look(tokens: TokenStream, open: usize, is_file: bool) -> Result<(), (Rule, &'static str)> {
    let mut part = Part::default();
    for token in tokens {
        part.count += 1;
        if open + part.count > MOST {
            return Err((Rule::Nesting, "this is nested too deeply"));
        }
        match token {
            TokenTree::Group(group) => {
                look(group.stream(), open + part.count, false)?;
                part.group(group.delimiter(), is_file);
            }
            TokenTree::Punct(mark) => part.mark(mark.as_char()),
            TokenTree::Ident(word) => {
                if word.to_string().len() > LONGEST_WORD {
                    return Err((Rule::FileSize, "there is a word of more than 256 bytes"));
                }
                part.is_item |= ["trait", "struct", "enum"].iter().any(|it| word == it);
                part.last = ' ';
            }
            TokenTree::Literal(_) => part.last = ' ',
        }
    }
    Ok(())
}

/// A part of a group: up to a comma or semicolon, or at the top of a file to the end of an item.
#[derive(Default)]
struct Part {
    /// Its tokens up to here, but those of attributes (there is one for each line of
    /// documentation).
    count: usize,
    /// How many `<` are open.
    angles: usize,
    /// The last token, if it was a mark.
    last: char,
    /// The word for an item was there, and no `=` behind it.
    is_item: bool,
}

impl Part {
    fn mark(&mut self, mark: char) {
        match mark {
            '<' => self.angles += 1,
            '>' if self.last != '-' => self.angles = self.angles.saturating_sub(1),
            '=' => self.is_item = false,
            _ => {}
        }
        self.last = mark;
        if mark == ';' || mark == ',' && self.angles == 0 {
            *self = Part::default();
        }
    }

    fn group(&mut self, delimiter: Delimiter, is_file: bool) {
        match delimiter {
            Delimiter::Bracket if self.last == '#' => self.count = self.count.saturating_sub(2),
            Delimiter::Bracket if self.last == '!' && self.count <= 3 => self.count = 0,
            Delimiter::Brace if is_file && self.is_item => *self = Part::default(),
            _ => {}
        }
        self.last = ' ';
    }
}
