//! What a piece of shell source means: the tree that the parser makes and the interpreter walks.

use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;
use core::cell::RefCell;

/// Commands one after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct List {
    /// In order.
    pub items: Vec<Item>,
}

/// One member of a list: pipelines joined by `&&` and `||`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// The first pipeline.
    pub first: Pipeline,
    /// The others, each with what joins it to what stands before.
    pub rest: Vec<(Connector, Pipeline)>,
    /// It was followed by `&`.
    pub background: bool,
    /// Its source, without the `&`.
    pub text: Vec<u8>,
}

/// What joins two pipelines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connector {
    /// `&&`: run the next if the status is 0.
    And,
    /// `||`: run the next if the status is not 0.
    Or,
}

/// Commands joined by `|`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pipeline {
    /// It was preceded by `!`.
    pub negated: bool,
    /// At least one.
    pub stages: Vec<Command>,
}

/// One command with its redirections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// What it does.
    pub kind: CommandKind,
    /// In the order in which they are written, which is that in which they take effect.
    pub redirects: Vec<Redirect>,
    /// Its source; for a compound command without the redirections behind it.
    pub text: Vec<u8>,
}

/// What a command does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandKind {
    /// `NAME=value... word...`
    Simple(Simple),
    /// `( list )`: a shell of its own; the source of the list.
    Subshell(Vec<u8>),
    /// `{ list }`
    Group(List),
    /// `if ... fi`
    If(Box<Conditional>),
    /// `while ... done`, `until ... done`
    While(Box<Loop>),
    /// `for NAME in ... done`
    For(Box<Iteration>),
    /// `case WORD in ... esac`
    Case(Box<Case>),
    /// `NAME() command`
    Function(Rc<Function>),
}

/// A command that is a program or a builtin with its arguments, or only assignments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Simple {
    /// `NAME=value` in front of the command.
    pub assignments: Vec<(String, Word)>,
    /// The name of the command and its arguments, before expansion.
    pub words: Vec<Word>,
}

/// `if condition; then body; elif ...; else ...; fi`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conditional {
    /// Conditions with their bodies, in order; at least one.
    pub branches: Vec<(List, List)>,
    /// What `else` says.
    pub otherwise: Option<List>,
}

/// `while` and `until`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loop {
    /// It is `until`.
    pub until: bool,
    /// What decides.
    pub condition: List,
    /// What is repeated.
    pub body: List,
}

/// `for`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Iteration {
    /// The variable.
    pub name: String,
    /// What it goes through; the positional parameters if there is no `in`.
    pub words: Option<Vec<Word>>,
    /// What is repeated.
    pub body: List,
}

/// `case`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// What is compared.
    pub word: Word,
    /// Patterns with what is done if one of them matches.
    pub arms: Vec<(Vec<Word>, List)>,
}

/// The definition of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// What it does.
    pub body: Command,
    /// The source of the definition.
    pub text: Vec<u8>,
}

/// The text of a here-document, which is read after the line that asks for it.
pub type Document = Rc<RefCell<Word>>;

/// One redirection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirect {
    /// Which descriptor, 0 to 9.
    pub descriptor: usize,
    /// Where it goes.
    pub target: Target,
}

/// Where a redirection goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// `< word`
    Read(Word),
    /// `> word`
    Write(Word),
    /// `>| word`: also where a file is not to be written over.
    Replace(Word),
    /// `>> word`
    Append(Word),
    /// `>& n`: where descriptor `n` goes; with `-` nowhere.
    Same(Word),
    /// `<< word`
    Document(Document),
}

/// A word as it is written: parts that are joined after expansion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Word {
    /// In order. A word of no parts does not exist; an empty quoted text is a part.
    pub parts: Vec<Part>,
}

impl Word {
    /// The word's text if it is nothing but plain unquoted text.
    pub fn plain(&self) -> Option<&[u8]> {
        match self.parts.as_slice() {
            [
                Part::Text {
                    bytes,
                    quoted: false,
                },
            ] => Some(bytes),
            _ => None,
        }
    }
}

/// A piece of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// Itself.
    Text {
        /// The text, without its quotes.
        bytes: Vec<u8>,
        /// `* ? [` in it are ordinary characters.
        quoted: bool,
    },
    /// `$NAME`, `${NAME}`, `${NAME:-word}` ...
    Parameter {
        /// Which.
        name: Parameter,
        /// It stands in double quotes: the value is not split.
        quoted: bool,
        /// What is done with the value.
        operation: Operation,
    },
    /// `$((expression))`
    Arithmetic {
        /// The expression, before parameters in it are expanded.
        expression: Word,
        /// It stands in double quotes: the result is not split.
        quoted: bool,
    },
    /// `$(command)`
    Command {
        /// The command's source.
        text: Vec<u8>,
        /// It stands in double quotes: the output is not split.
        quoted: bool,
    },
}

/// What stands behind a `$`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parameter {
    /// A variable.
    Named(String),
    /// `$0`, `$1` ...
    Positional(usize),
    /// `$?`
    Status,
    /// `$$`
    Pid,
    /// `$!`
    Background,
    /// `$#`
    Count,
    /// `$-`
    Flags,
    /// `$@`
    Each,
    /// `$*`
    Joined,
}

/// What `${NAME...}` does with the value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Nothing.
    Plain,
    /// `${#NAME}`: its length.
    Length,
    /// `-`, `+`, `=` and `?`.
    Alternative {
        /// Which.
        kind: AlternativeKind,
        /// With `:`; an empty value counts as none.
        or_empty: bool,
        /// What stands in.
        word: Word,
    },
    /// `#`, `##`, `%` and `%%`: the value without what matches a pattern.
    Cut {
        /// At its end (`%`), otherwise at its start.
        suffix: bool,
        /// As much as possible.
        longest: bool,
        /// What is cut off.
        pattern: Word,
    },
}

/// When and how a word stands in for a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AlternativeKind {
    /// `-`: if there is no value.
    Default,
    /// `=`: likewise, and it becomes the value.
    Assign,
    /// `?`: it is the message of the error if there is no value.
    Require,
    /// `+`: if there is a value.
    Instead,
}

impl Word {
    /// Whether its expansion may set a variable.
    pub fn has_effects(&self) -> bool {
        self.parts.iter().any(|part| match part {
            Part::Arithmetic { expression, .. } => expression.parts.iter().any(|part| match part {
                Part::Text { bytes, .. } => bytes.contains(&b'='),
                _ => true,
            }),
            Part::Parameter { operation, .. } => match operation {
                Operation::Alternative { kind, word, .. } => {
                    *kind == AlternativeKind::Assign || word.has_effects()
                }
                Operation::Cut { pattern, .. } => pattern.has_effects(),
                _ => false,
            },
            _ => false,
        })
    }
}
