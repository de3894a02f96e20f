//! Source text to tree, by recursive descent with one token of look-ahead.

use crate::MOST_NESTING;
use crate::ast::*;
use crate::error::{Reason, SyntaxError};
use crate::lexer::{Kind, Lexer, Token, leading_name};
use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// Words that only mean something where a command may start.
const RESERVED: [&str; 14] = [
    "!", "{", "}", "if", "then", "elif", "else", "fi", "while", "until", "for", "do", "done",
    "case",
];

/// Parses a whole source text.
///
/// # Errors
/// What is wrong with it and on which line; whether more text could make it right.
pub fn parse(text: &[u8]) -> Result<List, SyntaxError> {
    let mut lexer = Lexer::new(text);
    let token = lexer.next()?;
    let mut parser = Parser {
        text,
        lexer,
        token,
        end_of_last: 0,
        depth: 0,
    };
    let list = parser.list(&[])?;
    match parser.token.kind {
        Kind::End => Ok(list),
        _ => Err(parser.unexpected()),
    }
}

struct Parser<'a> {
    text: &'a [u8],
    lexer: Lexer<'a>,
    token: Token,
    end_of_last: usize,
    depth: usize,
}

type Parsed<T> = Result<T, SyntaxError>;

impl Parser<'_> {
    fn advance(&mut self) -> Parsed<Token> {
        let next = self.lexer.next()?;
        self.end_of_last = self.token.end;
        Ok(core::mem::replace(&mut self.token, next))
    }

    fn is(&self, operator: &str) -> bool {
        matches!(self.token.kind, Kind::Operator(found) if found == operator)
    }

    fn reserved(&self) -> Option<&'static str> {
        let Kind::Word(word) = &self.token.kind else {
            return None;
        };
        let text = word.plain()?;
        RESERVED
            .into_iter()
            .find(|reserved| reserved.as_bytes() == text)
    }

    fn source(&self, start: usize) -> Vec<u8> {
        self.text[start..self.end_of_last.max(start)].to_vec()
    }

    fn error(&self, reason: Reason) -> SyntaxError {
        let mut error = self.lexer.error(self.token.start, reason);
        error.incomplete |= self.token.kind == Kind::End
            && matches!(
                error.reason,
                Reason::Expected(_) | Reason::MissingCommand(_)
            );
        error
    }

    fn unexpected(&self) -> SyntaxError {
        let what = match &self.token.kind {
            Kind::End => "end of input".to_string(),
            Kind::Newline => "end of line".to_string(),
            _ => self.token_text(),
        };
        self.error(Reason::Unexpected(what))
    }

    fn token_text(&self) -> String {
        String::from_utf8_lossy(&self.text[self.token.start..self.token.end]).into_owned()
    }

    fn skip_newlines(&mut self) -> Parsed<()> {
        while self.token.kind == Kind::Newline {
            self.advance()?;
        }
        Ok(())
    }

    /// Takes the reserved word `word`.
    fn expect(&mut self, word: &'static str) -> Parsed<()> {
        if self.reserved() != Some(word) {
            return Err(self.error(Reason::Expected(word)));
        }
        self.advance()?;
        Ok(())
    }

    /// A list up to the end, a `)`, or one of the reserved words in `ends`.
    fn list(&mut self, ends: &[&str]) -> Parsed<List> {
        let mut list = List::default();
        loop {
            self.skip_newlines()?;
            if self.token.kind == Kind::End
                || self.is(")")
                || self.reserved().is_some_and(|word| ends.contains(&word))
            {
                return Ok(list);
            }
            let mut item = self.item()?;
            if self.is("&") {
                item.background = true;
                self.advance()?;
            } else if self.is(";") || self.token.kind == Kind::Newline {
                self.advance()?;
            } else if !(self.token.kind == Kind::End || self.is(")")) {
                return Err(self.unexpected());
            }
            list.items.push(item);
        }
    }

    /// A list of at least one command, behind the reserved word `after`.
    fn body(&mut self, after: &str, ends: &[&str]) -> Parsed<List> {
        let list = self.list(ends)?;
        match list.items.is_empty() {
            true => Err(self.error(Reason::MissingCommand(after.to_string()))),
            false => Ok(list),
        }
    }

    fn item(&mut self) -> Parsed<Item> {
        let start = self.token.start;
        let first = self.pipeline(None)?;
        let mut rest = Vec::new();
        loop {
            let (connector, text) = match self.token.kind {
                Kind::Operator("&&") => (Connector::And, "&&"),
                Kind::Operator("||") => (Connector::Or, "||"),
                _ => break,
            };
            self.advance()?;
            self.skip_newlines()?;
            rest.push((connector, self.pipeline(Some(text))?));
        }
        Ok(Item {
            first,
            rest,
            background: false,
            text: self.source(start),
        })
    }

    /// A pipeline; `after` is the operator that it stands behind, for the message.
    fn pipeline(&mut self, after: Option<&str>) -> Parsed<Pipeline> {
        let negated = self.reserved() == Some("!");
        if negated {
            self.advance()?;
        }
        let mut stages = Vec::from([self.command(if negated { Some("!") } else { after })?]);
        while self.is("|") {
            self.advance()?;
            self.skip_newlines()?;
            stages.push(self.command(Some("|"))?);
        }
        Ok(Pipeline { negated, stages })
    }

    fn command(&mut self, after: Option<&str>) -> Parsed<Command> {
        self.depth += 1;
        if self.depth > MOST_NESTING {
            return Err(self.error(Reason::TooDeep));
        }
        let start = self.token.start;
        let command = match self.compound(start)? {
            Some(kind) => {
                let text = self.source(start);
                Command {
                    kind,
                    redirects: self.redirects()?,
                    text,
                }
            }
            None => self.simple(start, after)?,
        };
        self.depth -= 1;
        Ok(command)
    }

    fn compound(&mut self, start: usize) -> Parsed<Option<CommandKind>> {
        if self.is("(") {
            return self.subshell(start).map(Some);
        }
        let kind = match self.reserved() {
            Some("{") => self.group()?,
            Some("if") => self.conditional()?,
            Some("while") => self.repetition(false)?,
            Some("until") => self.repetition(true)?,
            Some("for") => self.iteration()?,
            Some("case") => return Err(self.error(Reason::Unsupported("`case` is"))),
            Some(_) => return Err(self.unexpected()),
            None => return Ok(None),
        };
        Ok(Some(kind))
    }

    fn subshell(&mut self, start: usize) -> Parsed<CommandKind> {
        self.advance()?;
        let inside = self.token.start;
        self.body("(", &[])?;
        if !self.is(")") {
            return Err(self.lexer.error(start, Reason::Unterminated("parenthesis")));
        }
        let text = self.text[inside..self.token.start].to_vec();
        self.advance()?;
        Ok(CommandKind::Subshell(text))
    }

    fn group(&mut self) -> Parsed<CommandKind> {
        self.advance()?;
        let list = self.body("{", &["}"])?;
        self.expect("}")?;
        Ok(CommandKind::Group(list))
    }

    fn conditional(&mut self) -> Parsed<CommandKind> {
        let mut branches = Vec::new();
        let mut word = "if";
        loop {
            self.advance()?;
            let condition = self.body(word, &["then"])?;
            self.expect("then")?;
            let body = self.body("then", &["elif", "else", "fi"])?;
            branches.push((condition, body));
            match self.reserved() {
                Some("elif") => word = "elif",
                _ => break,
            }
        }
        let mut otherwise = None;
        if self.reserved() == Some("else") {
            self.advance()?;
            otherwise = Some(self.body("else", &["fi"])?);
        }
        self.expect("fi")?;
        Ok(CommandKind::If(Box::new(Conditional {
            branches,
            otherwise,
        })))
    }

    fn repetition(&mut self, until: bool) -> Parsed<CommandKind> {
        self.advance()?;
        let condition = self.body(if until { "until" } else { "while" }, &["do"])?;
        let body = self.loop_body()?;
        Ok(CommandKind::While(Box::new(Loop {
            until,
            condition,
            body,
        })))
    }

    fn loop_body(&mut self) -> Parsed<List> {
        self.expect("do")?;
        let body = self.body("do", &["done"])?;
        self.expect("done")?;
        Ok(body)
    }

    fn iteration(&mut self) -> Parsed<CommandKind> {
        self.advance()?;
        let name = match &self.token.kind {
            Kind::Word(word) => word.plain().and_then(whole_name).map(ToString::to_string),
            _ => None,
        };
        let name = name.ok_or_else(|| self.error(Reason::Expected("variable name after for")))?;
        self.advance()?;
        let words = self.iteration_words()?;
        if self.is(";") {
            self.advance()?;
        }
        self.skip_newlines()?;
        let body = self.loop_body()?;
        Ok(CommandKind::For(Box::new(Iteration { name, words, body })))
    }

    fn iteration_words(&mut self) -> Parsed<Option<Vec<Word>>> {
        match &self.token.kind {
            Kind::Word(word) if word.plain() == Some(b"in") => {}
            _ => return Ok(None),
        }
        self.advance()?;
        let mut words = Vec::new();
        while let Kind::Word(word) = &self.token.kind {
            words.push(word.clone());
            self.advance()?;
        }
        Ok(Some(words))
    }

    fn simple(&mut self, start: usize, after: Option<&str>) -> Parsed<Command> {
        let mut simple = Simple::default();
        let mut redirects = Vec::new();
        loop {
            match &self.token.kind {
                Kind::Word(word) => {
                    match assignment(word).filter(|_| simple.words.is_empty()) {
                        Some(assignment) => simple.assignments.push(assignment),
                        None => simple.words.push(word.clone()),
                    }
                    self.advance()?;
                }
                _ => match self.redirect()? {
                    Some(redirect) => redirects.push(redirect),
                    None => break,
                },
            }
        }
        if self.is("(") {
            return Err(self.unexpected());
        }
        if simple == Simple::default() && redirects.is_empty() {
            return Err(match after {
                Some(after) => self.error(Reason::MissingCommand(after.to_string())),
                None => self.unexpected(),
            });
        }
        let kind = CommandKind::Simple(simple);
        Ok(Command {
            kind,
            redirects,
            text: self.source(start),
        })
    }

    fn redirects(&mut self) -> Parsed<Vec<Redirect>> {
        let mut redirects = Vec::new();
        while let Some(redirect) = self.redirect()? {
            redirects.push(redirect);
        }
        Ok(redirects)
    }

    fn redirect(&mut self) -> Parsed<Option<Redirect>> {
        let mut number = None;
        if let Kind::Number(found) = self.token.kind {
            number = Some(found);
            self.advance()?;
        }
        let Kind::Operator(operator @ ("<" | ">" | ">>" | "<&" | ">&")) = self.token.kind else {
            return Ok(None);
        };
        self.advance()?;
        let Kind::Word(word) = &self.token.kind else {
            return Err(self.error(Reason::MissingTarget(operator.to_string())));
        };
        let word = word.clone();
        let target = match operator {
            "<" => Target::Read(word),
            ">" => Target::Write(word),
            ">>" => Target::Append(word),
            _ => match word.plain() {
                Some([digit @ b'0'..=b'2']) => Target::Same(usize::from(digit - b'0')),
                _ => return Err(self.error(Reason::BadDescriptor(self.token_text()))),
            },
        };
        self.advance()?;
        let usual = usize::from(!operator.starts_with('<'));
        Ok(Some(Redirect {
            descriptor: number.unwrap_or(usual),
            target,
        }))
    }
}

/// `text` if it is a variable name and nothing else.
pub(crate) fn whole_name(text: &[u8]) -> Option<&str> {
    leading_name(text).filter(|name| name.len() == text.len())
}

/// Takes a word of the form `NAME=value` apart.
fn assignment(word: &Word) -> Option<(String, Word)> {
    let Some(Part::Text {
        bytes,
        quoted: false,
    }) = word.parts.first()
    else {
        return None;
    };
    let name = leading_name(bytes)?;
    let rest = bytes[name.len()..].strip_prefix(b"=")?;
    let mut parts = Vec::new();
    if !rest.is_empty() {
        parts.push(Part::Text {
            bytes: rest.to_vec(),
            quoted: false,
        });
    }
    parts.extend_from_slice(&word.parts[1..]);
    Some((name.to_string(), Word { parts }))
}
