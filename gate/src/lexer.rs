//! Splits Rust source text into tokens, to look for words and to count lines of code.
//!
//! The compiler's own lexer does it, as the registry has it (`rustc_lexer`, published from the
//! compiler's sources): whatever this search took for white space, a comment or a literal and the
//! compiler did not would be a place to hide code in. Only what the checks need is told apart:
//! words, literals, punctuation and comments. Nothing is parsed. Text that is no Rust yields some
//! tokens, never a panic.

use ra_ap_rustc_lexer::{self as rustc, FrontmatterAllowed, LiteralKind, TokenKind};

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A keyword or identifier. A raw identifier (`r#loop`) keeps its `r#`.
    Word,
    /// A string, byte string, character, lifetime or number.
    Literal,
    /// One character of punctuation, or one that has no meaning in Rust.
    Mark,
    /// A comment, documentation included.
    Comment,
}

/// A token and where it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token<'a> {
    /// What it is.
    pub kind: Kind,
    /// Its text.
    pub text: &'a str,
    /// The line it starts on, counted from 1.
    pub line: usize,
}

/// A piece of source text, white space included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece<'a> {
    /// What it is; `None`: white space.
    kind: Option<Kind>,
    /// It is a quoted literal: any character may stand in it.
    is_quoted: bool,
    text: &'a str,
    line: usize,
}

impl<'a> Piece<'a> {
    fn token(self) -> Option<Token<'a>> {
        let Piece { text, line, .. } = self;
        let kind = self.kind?;
        Some(Token { kind, text, line })
    }
}

/// All tokens of `source`, comments included.
pub fn tokens(source: &str) -> Vec<Token<'_>> {
    pieces(source).filter_map(Piece::token).collect()
}

/// All tokens of `source` but the comments.
pub fn code_tokens(source: &str) -> Vec<Token<'_>> {
    let mut all = tokens(source);
    all.retain(|token| token.kind != Kind::Comment);
    all
}

/// Characters that must not stand where they do, with their lines: anything but ASCII outside of
/// comments and quoted literals (there are letters that look alike, and white space that nobody
/// sees), and anywhere what changes the order in which an editor shows the text.
pub fn odd_characters(source: &str) -> Vec<(char, usize)> {
    let mut found = Vec::new();
    for piece in pieces(source) {
        let is_free = piece.is_quoted || piece.kind == Some(Kind::Comment);
        let is_odd = |c: char| is_bidirectional(c) || !is_free && !c.is_ascii();
        let odd = piece.text.char_indices().filter(|(_, c)| is_odd(*c));
        found.extend(odd.map(|(at, c)| (c, piece.line + piece.text[..at].matches('\n').count())));
    }
    found
}

/// Whether `c` is one of the marks that steer the direction of text.
pub fn is_bidirectional(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn pieces(source: &str) -> impl Iterator<Item = Piece<'_>> {
    let (mut at, mut line) = (0, 1);
    rustc::tokenize(source, FrontmatterAllowed::No).map(move |token| {
        let text = &source[at..at + token.len as usize];
        at += text.len();
        let (kind, is_quoted) = kind(token.kind);
        let piece = Piece {
            kind,
            is_quoted,
            text,
            line,
        };
        line += text.matches('\n').count();
        piece
    })
}

/// What a token of the compiler is to us, and whether it is a quoted literal.
fn kind(kind: TokenKind) -> (Option<Kind>, bool) {
    match kind {
        TokenKind::Whitespace => (None, false),
        TokenKind::LineComment { .. } | TokenKind::BlockComment { .. } => {
            (Some(Kind::Comment), false)
        }
        TokenKind::Ident
        | TokenKind::InvalidIdent
        | TokenKind::RawIdent
        | TokenKind::UnknownPrefix => (Some(Kind::Word), false),
        TokenKind::Literal { kind, .. } => {
            let is_number = matches!(kind, LiteralKind::Int { .. } | LiteralKind::Float { .. });
            (Some(Kind::Literal), !is_number)
        }
        TokenKind::Lifetime { .. } | TokenKind::RawLifetime | TokenKind::UnknownPrefixLifetime => {
            (Some(Kind::Literal), false)
        }
        // What the compiler refuses at the head of a file, unless an unstable feature is on.
        TokenKind::Frontmatter { .. } => (Some(Kind::Word), false),
        _ => (Some(Kind::Mark), false),
    }
}

/// The lines (from 1) of `source` that hold code outside of `#[cfg(test)]` items.
pub fn code_lines(source: &str) -> Vec<usize> {
    let tokens = code_tokens(source);
    let mut lines = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let skipped = test_item(&tokens[at..]);
        if skipped > 0 {
            at += skipped;
            continue;
        }
        let token = &tokens[at];
        let last = token.line + token.text.matches('\n').count();
        lines.extend(token.line..=last);
        at += 1;
    }
    lines.dedup();
    lines
}

/// How many tokens the item takes that stands here behind `#[cfg(test)]`; 0 if none does.
fn test_item(tokens: &[Token<'_>]) -> usize {
    const OPENING: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
    let here = tokens.iter().map(|token| token.text);
    if tokens.len() < OPENING.len() || !here.take(OPENING.len()).eq(OPENING) {
        return 0;
    }
    let mut depth = 0usize;
    for (at, token) in tokens.iter().enumerate().skip(OPENING.len()) {
        match token.text {
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" => depth = depth.saturating_sub(1),
            _ => (),
        }
        if depth == 0 && matches!(token.text, ";" | "}") {
            return at + 1;
        }
    }
    tokens.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(source: &str) -> Vec<&str> {
        code_tokens(source).iter().map(|token| token.text).collect()
    }

    #[test]
    fn words_in_comments_and_strings_are_not_words() {
        let source = "// unsafe\n/* unsafe /* nested */ unsafe */ let a = \"unsafe \\\" unsafe\"; r#\"unsafe\"#";
        assert!(!texts(source).contains(&"unsafe"));
        assert_eq!(texts("let x = unsafe { 1 };")[3], "unsafe");
    }

    #[test]
    fn lifetimes_and_characters_do_not_swallow_code() {
        assert_eq!(
            texts("&'a unsafe 'b' '\\'' b'\"' unsafe"),
            ["&", "'a", "unsafe", "'b'", "'\\''", "b'\"'", "unsafe"]
        );
    }

    #[test]
    fn raw_identifiers_and_strings() {
        assert_eq!(
            texts("r#unsafe br\"a\" r\"b\\\" unsafe"),
            ["r#unsafe", "br\"a\"", "r\"b\\\"", "unsafe"]
        );
        assert_eq!(texts("brc bread"), ["brc", "bread"]);
    }

    #[test]
    fn lines_are_counted_through_every_kind() {
        let source = "/*\n*/ a \"\n\n\" b\nc";
        let lines: Vec<_> = code_tokens(source).iter().map(|token| token.line).collect();
        assert_eq!(lines, [2, 2, 4, 5]);
    }

    #[test]
    fn tests_and_comments_are_no_code() {
        let source = "//! head\n\nfn a() {\n    1\n}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\n#[cfg(test)]\nuse x;\nfn c() {}\n";
        assert_eq!(code_lines(source), [3, 4, 5, 12]);
    }

    #[test]
    fn white_space_that_only_the_compiler_knows_separates_words() {
        for space in ["\u{200e}", "\u{200f}", "\u{85}", "\u{2028}", "\u{b}"] {
            let source = format!("a{space}include{space}!{space}(b)");
            assert_eq!(texts(&source), ["a", "include", "!", "(", "b", ")"]);
        }
    }

    #[test]
    fn nothing_but_ascii_outside_of_comments_and_literals() {
        for (source, count) in [
            (
                "// ä\n/* ö */ let a = \"ü\"; let b = 'ß'; let c = r#\"é\"#;",
                0,
            ),
            ("let ä = 1;", 1),
            ("include\u{200e}!()", 1),
            ("\u{200f}\u{feff}a", 2),
            ("&'ä a", 1),
            ("// \u{202e}", 1),
            ("\"\u{2066}\"", 1),
            ("1ä", 1),
        ] {
            assert_eq!(odd_characters(source).len(), count, "{source:?}");
        }
        assert_eq!(odd_characters("a\n/* \n\u{61c} */")[0].1, 3);
    }

    #[test]
    fn garbage_does_not_panic() {
        for source in [
            "'", "b'", "\"", "r#\"", "/*", "b", "r#", "'\\", "é'é", "r####",
        ] {
            let _ = code_lines(source);
        }
    }
}
