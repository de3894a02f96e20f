//! Allocations in the services that could end them when there is no memory.
//!
//! A service lives on its reserve when memory is short, but only for small objects. What has a size
//! that somebody chooses must be asked for so that it can fail (`try_reserve`, `RVec`). A program
//! cannot tell which sizes are chosen; so it looks for the words with which more than one value is
//! allocated at once, and each place where one of them stands has to be listed here, with what
//! bounds it.

use std::path::Path;

use crate::lexer::{self, Kind, Token};
use crate::trust::Breach;

/// Where the services and what they link lie.
const SERVICES: &[&str] = &[
    "domains/drivers/console",
    "domains/drivers/memory-disk",
    "domains/drivers/nvme",
    "domains/drivers/pci",
    "domains/drivers/virtio-blk",
    "domains/drivers/virtio-net",
    "domains/fs",
    "domains/libs/gate",
    "domains/libs/lanes",
    "domains/libs/meter",
    "domains/libs/readonly",
    "domains/libs/virtio-pci",
    "domains/net",
    "domains/personalities/rv6",
    "domains/shadows",
    "lib/fs/ext2",
    "lib/fs/pagecache",
    "lib/unix/pipe",
    "lib/fs/ramfs",
    "lib/fs/redo",
    "lib/unix/tty",
    "lib/fs/vfs",
    "lib/net",
];

/// Words that allocate as much as it takes, or end the domain.
const WORDS: &[&str] = &[
    "collect",
    "concat",
    "format",
    "from_utf8_lossy",
    "into_boxed_slice",
    "join",
    "push_str",
    "repeat",
    "to_owned",
    "to_string",
    "to_vec",
    "vec",
    "with_capacity",
];

/// What a start function alone does: there is nobody else yet.
const START: &str = "at the start";
/// Blocks of a file system have 4 KiB at most.
const BLOCK: &str = "a block";
/// Names have 255 bytes at most, paths 4,095, link targets as many.
const PATH: &str = "a name or a path";

/// A file, how often one of the words may stand in it, and what bounds that.
const BOUNDED: &[(&str, usize, &str)] = &[
    ("domains/drivers/pci/src/options.rs", 1, START),
    ("domains/drivers/virtio-blk/src/bring_up.rs", 1, START),
    ("domains/drivers/virtio-blk/src/line.rs", 1, START),
    ("domains/drivers/virtio-net/src/lane.rs", 2, START),
    ("domains/fs/ext2/src/lib.rs", 1, START),
    ("domains/fs/ramfs/src/lib.rs", 1, START),
    ("domains/shadows/keep/src/options.rs", 1, START),
    ("domains/personalities/rv6/src/lib.rs", 1, START),
    (
        "domains/libs/mounts/src/mount.rs",
        2,
        "a mount, of which there is one for a disk",
    ),
    (
        "domains/personalities/rv6/src/mount_table.rs",
        4,
        "mounts, of which there is one for a disk",
    ),
    ("domains/personalities/rv6/src/mounting.rs", 2, PATH),
    ("domains/personalities/rv6/src/options.rs", 7, START),
    (
        "domains/personalities/rv6/src/personality.rs",
        3,
        "the environment of a session",
    ),
    ("domains/personalities/rv6/src/script.rs", 1, PATH),
    (
        "domains/personalities/rv6/src/table.rs",
        2,
        "as many as there can be processes",
    ),
    ("domains/personalities/rv6/src/volumes.rs", 1, PATH),
    ("domains/shadows/vfs/src/options.rs", 1, START),
    ("domains/shadows/vfs/src/start_up.rs", 1, START),
    ("lib/fs/ext2/src/alloc_block.rs", 1, BLOCK),
    (
        "lib/fs/ext2/src/dirindex.rs",
        1,
        "entries of a directory whose names have one hash value",
    ),
    ("lib/fs/ext2/src/file.rs", 2, PATH),
    ("lib/fs/ext2/src/journal/commit.rs", 1, BLOCK),
    ("lib/fs/ext2/src/journal/log.rs", 2, START),
    ("lib/fs/ext2/src/journal/open.rs", 2, START),
    ("lib/fs/ext2/src/journal/recovery.rs", 2, START),
    (
        "lib/fs/ext2/src/listing.rs",
        3,
        "names, and as many of them as the caller asked for",
    ),
    ("lib/fs/ext2/src/pending.rs", 1, BLOCK),
    ("lib/fs/ext2/src/shrink.rs", 1, BLOCK),
    ("lib/fs/ext2/src/store.rs", 1, BLOCK),
    ("lib/fs/ext2/src/unnamed.rs", 2, PATH),
    (
        "lib/fs/ext2/src/writeback.rs",
        1,
        "blocks of one request, of which there are 512 KiB",
    ),
    (
        "lib/fs/pagecache/src/file.rs",
        1,
        "pieces of 4 KiB or more under one write",
    ),
    ("lib/fs/redo/src/engine/hiding.rs", 1, PATH),
    (
        "lib/fs/redo/src/ids.rs",
        1,
        "changes that the shadow remembers, at a restart of the file system",
    ),
    (
        "lib/unix/tty/src/lib.rs",
        1,
        "what was typed ahead, which is bounded",
    ),
    ("lib/fs/vfs/src/files.rs", 2, START),
    ("lib/fs/vfs/src/walk.rs", 3, PATH),
    ("lib/net/endpoint/src/echo.rs", 3, START),
    ("lib/net/endpoint/src/lib.rs", 1, START),
    ("lib/net/endpoint/src/sockets.rs", 1, START),
    ("lib/net/endpoint/src/wire.rs", 2, START),
];

/// The words in `text`, the source of `file` (from the project's root), that nothing bounds.
pub fn breaches(file: &Path, text: &str) -> Vec<Breach> {
    let name = file.to_string_lossy();
    if !SERVICES.iter().any(|folder| file.starts_with(folder)) || is_test(&name) {
        return Vec::new();
    }
    let found = places(text);
    let listed = BOUNDED.iter().find(|(listed, ..)| *listed == name);
    let allowed = listed.map_or(0, |(_, count, _)| *count);
    if found.len() == allowed {
        return Vec::new();
    }
    let breach = |token: &Token<'_>| Breach {
        file: file.to_path_buf(),
        line: token.line,
        text: format!(
            "`{}` allocates without a thought of what happens if there is no memory; {allowed} such places are listed for this \
             file in gate/src/fallible.rs, {} are there",
            token.text,
            found.len()
        ),
    };
    found.iter().map(breach).collect()
}

fn is_test(file: &str) -> bool {
    ["/tests/", "/tests.rs", "/fuzz/", "/benches/"]
        .iter()
        .any(|part| file.contains(part))
}

/// Where such words stand, outside of unit tests.
fn places(text: &str) -> Vec<Token<'_>> {
    let mut tokens = lexer::code_tokens(text);
    let is_tests = |window: &[Token<'_>]| {
        let words: Vec<_> = window.iter().map(|token| token.text).collect();
        words == ["cfg", "(", "test", ")", "]", "mod"]
    };
    if let Some(at) = tokens.windows(6).position(is_tests) {
        tokens.truncate(at);
    }
    let called = |pair: &[Token<'_>]| {
        let is_word = pair[0].kind == Kind::Word && WORDS.contains(&pair[0].text);
        // `vec` and `format` are also modules and arguments; `collect::<T>` has a colon behind it.
        is_word
            && match pair[0].text {
                "vec" | "format" => pair[1].text == "!",
                _ => true,
            }
    };
    let calls = tokens.windows(2).filter(|pair| called(pair));
    calls.map(|pair| pair[0]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(file: &str, text: &str) -> Vec<usize> {
        let found = breaches(Path::new(file), text);
        found.iter().map(|breach| breach.line).collect()
    }

    #[test]
    fn what_allocates_as_much_as_it_takes_is_found() {
        let text = "fn f(n: usize) {\n let a = vec![0; n];\n let b: Vec<u8> = x.collect();\n c.to_vec(); }";
        assert_eq!(lines("lib/fs/redo/src/new.rs", text), [2, 3, 4]);
        assert_eq!(
            lines("domains/personalities/rv6/src/new.rs", text),
            [2, 3, 4]
        );
        assert_eq!(lines("lib/unix/shell/src/new.rs", text), [0; 0]);
    }

    #[test]
    fn what_may_fail_passes() {
        let text = "use alloc::vec::Vec;\nfn f() { v.try_reserve(n)?; v.extend_from_slice(s); } // vec![]\n\
                    #[cfg(test)]\nmod tests { fn t() { vec![1].to_vec(); } }";
        assert_eq!(lines("lib/fs/redo/src/new.rs", text), [0; 0]);
    }

    #[test]
    fn a_listed_file_may_have_as_many_as_are_listed() {
        let one = "fn f() { b\"/\".to_vec(); }";
        assert_eq!(
            lines("domains/personalities/rv6/src/volumes.rs", one),
            [0; 0]
        );
        let two = "fn f() { b\"/\".to_vec();\n x.to_vec(); }";
        assert_eq!(
            lines("domains/personalities/rv6/src/volumes.rs", two),
            [1, 2]
        );
        assert_eq!(
            lines("domains/personalities/rv6/src/volumes.rs", "fn f() {}"),
            [0; 0]
        );
    }
}
