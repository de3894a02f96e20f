//! Splits Rust source text into tokens, well enough to look for words and to count lines of code.
//!
//! Only what the checks need is told apart: words, literals, punctuation and comments. Nothing is
//! parsed. Text that is no Rust yields some tokens, never a panic.

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A keyword or identifier. A raw identifier (`r#loop`) keeps its `r#`.
    Word,
    /// A string, byte string, character, lifetime or number.
    Literal,
    /// One character of punctuation.
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

/// All tokens of `source`, comments included.
pub fn tokens(source: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let (mut at, mut line) = (0, 1);
    while at < source.len() {
        let rest = &source[at..];
        let (kind, length) = next(rest);
        let text = &rest[..length];
        if let Some(kind) = kind {
            found.push(Token { kind, text, line });
        }
        line += text.matches('\n').count();
        at += length;
    }
    found
}

/// All tokens of `source` but the comments.
pub fn code_tokens(source: &str) -> Vec<Token<'_>> {
    let mut all = tokens(source);
    all.retain(|token| token.kind != Kind::Comment);
    all
}

fn next(rest: &str) -> (Option<Kind>, usize) {
    let first = rest.chars().next().unwrap_or(' ');
    if first.is_whitespace() {
        return (None, first.len_utf8());
    }
    if rest.starts_with("//") {
        return (Some(Kind::Comment), rest.find('\n').unwrap_or(rest.len()));
    }
    if rest.starts_with("/*") {
        return (Some(Kind::Comment), block_comment(rest));
    }
    if let Some(length) = string(rest) {
        return (Some(Kind::Literal), length);
    }
    if first == '\'' {
        return (Some(Kind::Literal), quote(rest));
    }
    if first.is_ascii_digit() {
        return (Some(Kind::Literal), word(rest));
    }
    if first == '_' || first.is_alphabetic() {
        let raw = if rest.starts_with("r#") { 2 } else { 0 };
        return (Some(Kind::Word), raw + word(&rest[raw..]));
    }
    (Some(Kind::Mark), first.len_utf8())
}

fn word(rest: &str) -> usize {
    let end = rest.find(|c: char| c != '_' && !c.is_alphanumeric());
    end.unwrap_or(rest.len()).max(1).min(rest.len())
}

fn block_comment(rest: &str) -> usize {
    let (mut depth, mut at) = (0usize, 0);
    let bytes = rest.as_bytes();
    while at + 1 < bytes.len() {
        match &bytes[at..at + 2] {
            b"/*" => (depth, at) = (depth + 1, at + 2),
            b"*/" => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

/// The length of the string literal that `rest` starts with.
fn string(rest: &str) -> Option<usize> {
    let prefix = rest.find(|c: char| !matches!(c, 'b' | 'c' | 'r'))?;
    let (prefix, body) = rest.split_at(prefix);
    if prefix.len() > 2 {
        return None;
    }
    if prefix.ends_with('r') {
        let hashes = body.find(|c: char| c != '#')?;
        body[hashes..].strip_prefix('"')?;
        let end = format!("\"{}", &body[..hashes]);
        let inner = hashes + 1;
        let length = body[inner..]
            .find(&end)
            .map_or(body.len(), |found| inner + found + end.len());
        return Some(prefix.len() + length);
    }
    if prefix == "b" && body.starts_with('\'') {
        return Some(1 + quote(body));
    }
    body.strip_prefix('"')?;
    Some(prefix.len() + closing(body, '"'))
}

/// The length of the text up to the closing `mark`, which `rest` starts with as well.
fn closing(rest: &str, mark: char) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        if c == mark && !escaped {
            return at + c.len_utf8();
        }
        escaped = c == '\\' && !escaped;
    }
    rest.len()
}

/// The length of the character literal or lifetime that `rest` starts with.
fn quote(rest: &str) -> usize {
    let mut chars = rest.char_indices().skip(1);
    let second = chars.next().map_or(' ', |(_, c)| c);
    let is_char = second == '\\' || chars.next().is_some_and(|(_, c)| c == '\'');
    if is_char {
        return closing(rest, '\'');
    }
    1 + if second == '_' || second.is_alphabetic() {
        word(&rest[1..])
    } else {
        0
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
    fn garbage_does_not_panic() {
        for source in [
            "'", "b'", "\"", "r#\"", "/*", "b", "r#", "'\\", "é'é", "r####",
        ] {
            let _ = code_lines(source);
        }
    }
}
