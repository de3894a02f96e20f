//! Source text to tree, by recursive descent with one token of look-ahead.

use crate::MOST_NESTING;
use crate::ast::*;
use crate::error::{Reason, SyntaxError};
use crate::lexer::{Kind, Lexer, Pending, Token, new_document};
use crate::word::{leading_name, whole_name};
use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// Words that only mean something where a command may start.
const RESERVED: [&str; 15] = [
    "!", "{", "}", "if", "then", "elif", "else", "fi", "while", "until", "for", "do", "done",
    "case", "esac",
];

/// Whether the word means something to the parser where a command may begin.
pub(crate) fn is_reserved(word: &[u8]) -> bool {
    RESERVED.iter().any(|reserved| reserved.as_bytes() == word)
}

/// Parses a whole source text.
///
/// # Errors
/// What is wrong with it and on which line; whether more text could make it right.
pub fn parse(text: &[u8]) -> Result<List, SyntaxError> {
    let mut list = List::default();
    let mut at = 0;
    while let Some((line, next)) = parse_line(text, at, false)? {
        list.items.extend(line.items);
        at = next;
    }
    Ok(list)
}

/// Parses the commands that begin in the first line at or behind byte `at` of `text`, and says
/// where to go on; `None` at the end. If `whole`, there is no more text to come, so that its end
/// also ends a here-document.
///
/// # Errors
/// As [`parse`].
pub fn parse_line(
    text: &[u8],
    at: usize,
    whole: bool,
) -> Result<Option<(List, usize)>, SyntaxError> {
    let mut lexer = Lexer::new(text, at);
    lexer.whole = whole;
    let mut parser = Parser::new(lexer)?;
    parser.skip_newlines()?;
    if parser.token.kind == Kind::End {
        return Ok(None);
    }
    let list = parser.line()?;
    Ok(Some((list, parser.lexer.at)))
}

pub(crate) struct Parser<'a> {
    text: &'a [u8],
    lexer: Lexer<'a>,
    token: Token,
    end_of_last: usize,
}

type Parsed<T> = Result<T, SyntaxError>;

impl<'a> Parser<'a> {
    /// A parser of what `lexer` reads.
    pub fn new(mut lexer: Lexer<'a>) -> Parsed<Self> {
        let token = lexer.next()?;
        Ok(Parser {
            text: lexer.text,
            lexer,
            token,
            end_of_last: 0,
        })
    }

    /// Reads commands up to the `)` that closes what was opened at byte `start`; where that stands.
    pub fn up_to_parenthesis(mut self, start: usize) -> Parsed<usize> {
        self.list(&[])?;
        match self.token.kind {
            Kind::Operator(")") => Ok(self.token.start),
            Kind::End => Err(self.lexer.error(start, Reason::Unterminated("parenthesis"))),
            _ => Err(self.unexpected()),
        }
    }

    /// Commands up to the end of the line, which is not passed.
    fn line(&mut self) -> Parsed<List> {
        let mut list = List::default();
        while !matches!(self.token.kind, Kind::Newline | Kind::End) {
            let mut item = self.item()?;
            if self.is("&") {
                item.background = true;
                self.advance()?;
            } else if self.is(";") {
                self.advance()?;
            } else if !matches!(self.token.kind, Kind::Newline | Kind::End) {
                return Err(self.unexpected());
            }
            list.items.push(item);
        }
        Ok(list)
    }

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

    /// A list up to the end, a `)`, `;;`, or one of the reserved words in `ends`.
    fn list(&mut self, ends: &[&str]) -> Parsed<List> {
        let mut list = List::default();
        loop {
            self.skip_newlines()?;
            if self.token.kind == Kind::End
                || self.is(")")
                || self.is(";;")
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
            } else if !(self.token.kind == Kind::End || self.is(")") || self.is(";;")) {
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
        self.lexer.depth += 1;
        if self.lexer.depth > MOST_NESTING {
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
        self.lexer.depth -= 1;
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
            Some("case") => self.case()?,
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

    fn case(&mut self) -> Parsed<CommandKind> {
        self.advance()?;
        let Kind::Word(word) = &self.token.kind else {
            return Err(self.error(Reason::Expected("word after case")));
        };
        let word = word.clone();
        self.advance()?;
        self.skip_newlines()?;
        if !matches!(&self.token.kind, Kind::Word(word) if word.plain() == Some(b"in")) {
            return Err(self.error(Reason::Expected("in")));
        }
        self.advance()?;
        let mut arms = Vec::new();
        loop {
            self.skip_newlines()?;
            if self.reserved() == Some("esac") {
                break;
            }
            let patterns = self.patterns()?;
            let body = self.list(&["esac"])?;
            arms.push((patterns, body));
            match self.is(";;") {
                true => self.advance().map(drop)?,
                false => break,
            }
        }
        self.skip_newlines()?;
        self.expect("esac")?;
        Ok(CommandKind::Case(Box::new(Case { word, arms })))
    }

    /// `(pattern|pattern)`, the first parenthesis at will.
    fn patterns(&mut self) -> Parsed<Vec<Word>> {
        if self.is("(") {
            self.advance()?;
        }
        let mut patterns = Vec::new();
        loop {
            let Kind::Word(word) = &self.token.kind else {
                return Err(self.error(Reason::Expected("pattern")));
            };
            patterns.push(word.clone());
            self.advance()?;
            if self.is(")") {
                self.advance()?;
                return Ok(patterns);
            }
            if !self.is("|") {
                return Err(self.error(Reason::Expected(")")));
            }
            self.advance()?;
        }
    }

    /// At the `(` behind a name: the definition of a function.
    fn function(&mut self, start: usize, name: String) -> Parsed<Command> {
        self.advance()?;
        if !self.is(")") {
            return Err(self.unexpected());
        }
        self.advance()?;
        self.skip_newlines()?;
        let body = self.command(Some("()"))?;
        let text = self.source(start);
        let function = Function {
            name,
            body,
            text: text.clone(),
        };
        Ok(Command {
            kind: CommandKind::Function(Rc::new(function)),
            redirects: Vec::new(),
            text,
        })
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
            return match (simple.words.as_slice(), simple.assignments.is_empty()) {
                ([name], true) if redirects.is_empty() => {
                    match name.plain().and_then(whole_name).map(ToString::to_string) {
                        Some(name) => self.function(start, name),
                        None => Err(self.unexpected()),
                    }
                }
                _ => Err(self.unexpected()),
            };
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

    /// At the word behind `<<`: has the text read when the line ends.
    fn document(&mut self, word: &Word, strip: bool) -> Target {
        let document = new_document();
        let mut delimiter = Vec::new();
        let mut literal = false;
        for part in &word.parts {
            match part {
                Part::Text { bytes, quoted } => {
                    delimiter.extend_from_slice(bytes);
                    literal |= quoted;
                }
                // Nothing is expanded in a delimiter.
                _ => {
                    delimiter = self.text[self.token.start..self.token.end].to_vec();
                    break;
                }
            }
        }
        self.lexer.expect_document(Pending {
            delimiter,
            strip,
            literal,
            document: document.clone(),
        });
        Target::Document(document)
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
        let Kind::Operator(operator @ ("<" | ">" | ">|" | ">>" | "<&" | ">&" | "<<" | "<<-")) =
            self.token.kind
        else {
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
            ">|" => Target::Replace(word),
            ">>" => Target::Append(word),
            "<<" | "<<-" => self.document(&word, operator == "<<-"),
            _ => match word.plain() {
                None | Some([b'-' | b'0'..=b'9']) => Target::Same(word),
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
