//! Errors: the rules, one error, and all errors together as text.
//!
//! An error says where it is, which rule is broken, which type or item breaks it, how that is
//! reached from an interface, and what to write instead:
//!
//! ```text
//! abi/interfaces/block.idl:31:32: error[private-heap]: `Vec<u8>` lives on the private heap of one domain
//!     reached by: interface `Block`, method `read`, argument `buffer`
//!     instead: `RVec<u8>`, which lives on the shared heap
//! ```

use crate::source::{Source, Span};
use std::fmt;

macro_rules! rules {
    ($($variant:ident $name:literal $text:literal;)*) => {
        /// A rule that `.idl` files obey.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Rule { $(#[doc = $text] $variant,)* }

        impl Rule {
            /// Every rule, in the order of the manual.
            pub const ALL: &'static [Rule] = &[$(Rule::$variant),*];

            /// Its name in errors.
            pub fn name(self) -> &'static str {
                match self { $(Rule::$variant => $name),* }
            }

            /// What it demands and why.
            pub fn text(self) -> &'static str {
                match self { $(Rule::$variant => $text),* }
            }
        }
    };
}

rules! {
    Syntax "syntax" "A file is Rust syntax: traits, structs and enums.";
    Item "item" "A file holds traits, structs with named fields and enums, nothing else: no functions, implementations, imports, modules, aliases, macros.";
    NotPublic "not-public" "Traits, structs, enums and the fields of structs are `pub`.";
    Undocumented "undocumented" "Every file, interface, method, struct, enum, field of a struct and variant has a doc comment. It becomes the manual.";
    DocText "doc-text" "Doc comments are plain text: no code blocks (four spaces in a row, tabs, three backquotes or tildes), which a tool would compile and run, and no control characters.";
    Attribute "attribute" "The attributes are `#[plain]`, `#[domain]`, `#[unbounded]`, `#[budget(MILLISECONDS)]`, `#[frees]`, `#[offers(NAME, ..)]`, `#[base]` and `#[gone]`, each where it has a meaning.";
    Duplicate "duplicate" "A name is defined once, in all files together; so are the fields, variants, methods and parameters within one item.";
    Reserved "reserved" "The names of built-in types are not defined again, and no method has the name of a method that every handle has.";
    NameStyle "name-style" "Types, variants and interfaces are named in CamelCase; methods, fields and parameters in snake_case.";
    NameLength "name-length" "A name has at most 32 bytes: names of ports and interfaces stand in texts of that size in the kernel.";
    Generics "generics" "Nothing is generic: both sides of a boundary are compiled apart, from concrete types.";
    Lifetime "lifetime" "There are no lifetime parameters: a borrow ends with the call.";
    DefaultBody "default-body" "Methods have no default bodies: code of the caller's image would run in the callee's name.";
    Const "const" "There are no constants and associated types.";
    Qualifier "qualifier" "Traits and methods are plain: not unsafe, async, const or extern, without supertraits and where clauses.";
    Receiver "receiver" "Methods take `&self`: several threads call an object at once, and it stays where it is.";
    Result "result" "Every method gives `RpcResult<T>` or `Result<T, E>`, because every call can fail when the other domain dies.";
    ErrorType "error-type" "The `E` of a method is an enum with a variant `Rpc(RpcError)`, so that the failure of the call itself has a value.";
    UnknownType "unknown-type" "Every type is built in or defined in some .idl file, and written as a single name.";
    PrivateHeap "private-heap" "No `Box`, `Vec`, `String`, `Rc`, `Arc` or collection: they point into the private heap of one domain.";
    MutableBorrow "mutable-borrow" "No `&mut`: if the callee dies halfway, the object would be half-written. It is moved in and given back.";
    StaticBorrow "static-borrow" "No `&'static`: it points into the image of one domain, which goes away with it.";
    UserBuf "user-buf" "A `UserBuf`, memory of a program, is lent as an argument, `&UserBuf`, and stands nowhere else: not by value, in no result, struct, enum, tuple, array, `Option`, `RRef` or `RVec`. Whoever is lent it has it for the call.";
    Borrow "borrow" "What is lent to a call is `&RRef<T>`, `&RVec<T>` or `&UserBuf`, as an argument; nothing else is borrowed, and nowhere else.";
    RawPointer "raw-pointer" "No raw pointers: nobody could say what they point to after the owner has died.";
    FunctionPointer "function-pointer" "No functions, function pointers and closures: one domain's code must not run as another's.";
    DynAny "dyn-any" "No `dyn Any`: type ids differ from image to image, so a cast would be a guess.";
    TraitObject "trait-object" "`dyn I` stands only in `Handle<dyn I>`, and `I` is an interface of an .idl file.";
    TupleSize "tuple-size" "Tuples have one to four elements.";
    Length "length" "The length of an array or a `Text` is a number; that of a `Text` is 1 to 65,535.";
    HandleInShared "handle-in-shared" "No handles inside `RRef` or `RVec`: whoever frees a dead domain's shared objects does not look inside them.";
    FloatByValue "float-by-value" "`f32` and `f64` only inside `RRef` or `RVec`: by value their calling convention depends on the compilation target.";
    VecElement "vec-element" "The elements of an `RVec` are plain data.";
    PlainField "plain-field" "All fields of a `#[plain]` type are plain data.";
    Recursive "recursive" "No type contains itself, not even behind an `RRef`: trusted code walks every value that crosses, on a stack of fixed size.";
    TooLarge "too-large" "A result that is passed directly, and all arguments of a method together, take at most 4,096 bytes of the stack; larger values go behind an `RRef`. What an `RRef` holds, and an element of an `RVec`, takes at most 1 MiB.";
    TooMany "too-many" "An interface has at most 256 methods, since each has a place among the counts of calls; a method at most 16 parameters, an enum 256 variants, a struct or variant 256 fields; all files together 1,024 interfaces, 4,096 structs and enums, and 1,024 entries.";
    Nesting "nesting" "Types are nested at most 32 deep, structs and enums that they name included: trusted code calls itself for each, on a stack of fixed size.";
    FileSize "file-size" "A file has at most 256 KiB and no word over 256 bytes; there are at most 1,024 files, of 4 MiB together.";
    Body "body" "A struct has named fields, at least one, an enum at least one variant and an interface at least one method; variants have no numbers of their own.";
    Budget "budget" "A budget is 1 to 3,600,000 milliseconds, and a method that is unbounded has none.";
    Entry "entry" "A `#[domain]` trait has one function, `start`, without `self`; it takes handles, optional handles and at last perhaps `options: RVec<u8>`, and gives `RpcResult` of the handles it offers.";
}

/// One error.
#[derive(Clone, Debug)]
pub struct Diagnostic {
    /// The rule that is broken.
    pub rule: Rule,
    /// Where.
    pub span: Span,
    /// What is wrong.
    pub message: String,
    /// How the place is reached from an interface or another item, outermost first; may be empty.
    pub path: Vec<String>,
    /// What to write instead; may be empty.
    pub help: String,
}

impl Diagnostic {
    /// An error without a path.
    pub fn new(
        rule: Rule,
        span: Span,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        Diagnostic {
            rule,
            span,
            message: message.into(),
            path: Vec::new(),
            help: help.into(),
        }
    }

    /// The same error, reached by `path`.
    pub fn reached_by(mut self, path: &[String]) -> Self {
        self.path = path.to_vec();
        self
    }
}

/// All errors of a run, in order of their places. Displays as the text for the user.
#[derive(Clone, Debug)]
pub struct Report {
    /// The errors, without duplicates.
    pub errors: Vec<Diagnostic>,
    text: String,
}

impl Report {
    /// A report of `errors` in `sources`.
    pub fn new(sources: &[Source], mut errors: Vec<Diagnostic>) -> Self {
        errors.sort_by_key(|error| (error.span, error.rule));
        errors.dedup_by_key(|error| (error.span, error.rule));
        let mut text: String = errors.iter().map(|error| render(sources, error)).collect();
        let noun = if errors.len() == 1 { "error" } else { "errors" };
        text.push_str(&format!(
            "idlc: {} {noun}; `idlc rules` explains each rule\n",
            errors.len()
        ));
        Report { errors, text }
    }

    /// A report of something that has no place in a source.
    pub fn plain(text: String) -> Self {
        Report {
            errors: Vec::new(),
            text: format!("idlc: {text}\n"),
        }
    }
}

fn render(sources: &[Source], error: &Diagnostic) -> String {
    let file = sources
        .get(error.span.file)
        .map_or("?", |source| &source.name);
    let Span { line, column, .. } = error.span;
    let mut text = format!(
        "{file}:{line}:{column}: error[{}]: {}\n",
        error.rule.name(),
        error.message
    );
    if !error.path.is_empty() {
        text.push_str(&format!("    reached by: {}\n", error.path.join(", ")));
    }
    if !error.help.is_empty() {
        text.push_str(&format!("    instead: {}\n", error.help));
    }
    text
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Report {}
