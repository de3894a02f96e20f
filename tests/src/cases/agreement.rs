//! Agreement with the host, for ext2 and ext3 and each block size: what the host put on an image is
//! read the same, and what is written is what the host reads.
//!
//! The trees have odd and long names, symbolic links within and outside of the inode, hard links,
//! deep directories, a large directory with an index, and files with indirect blocks of all levels,
//! sparse where they are long.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use lab::cuts::survey;
use machine::disk;
use trefoil_gate::tool;
use workload::{Found, Tree};

use super::{Case, case};
use crate::bench::Bench;

pub(super) const CASES: &[Case] = &[
    case("agreement-with-the-host-ext2-1024", |bench| {
        agree(bench, 1024, false)
    }),
    case("agreement-with-the-host-ext2-2048", |bench| {
        agree(bench, 2048, false)
    }),
    case("agreement-with-the-host-ext2-4096", |bench| {
        agree(bench, 4096, false)
    }),
    case("agreement-with-the-host-ext3-1024", |bench| {
        agree(bench, 1024, true)
    }),
    case("agreement-with-the-host-ext3-2048", |bench| {
        agree(bench, 2048, true)
    }),
    case("agreement-with-the-host-ext3-4096", |bench| {
        agree(bench, 4096, true)
    }),
];

const NAMES: [&str; 8] = [
    "with space",
    "-dash",
    "ünïcödé",
    ".hidden",
    "a'b\"c",
    "star*[x]?",
    "#$&;|<>",
    "trailing.",
];
/// Entries of the large directory.
const MANY: usize = 700;
const DEPTH: usize = 20;

fn agree(bench: &Bench<'_>, block_size: u64, journal: bool) -> Result<()> {
    let root = bench.folder.join("files");
    fill(&root, block_size)?;
    let image = image(bench, &root, block_size, journal)?;
    reads(bench, &image, &root, block_size)?;
    writes(bench, &image, &root, block_size)
}

/// The first block of a file that needs indirect blocks of `level` (0: none).
fn first_of_level(block_size: u64, level: u32) -> u64 {
    let per_block = block_size / 4;
    (1..level).fold(0, |sum, level| sum + per_block.pow(level)) + if level > 0 { 12 } else { 0 }
}

fn fill(root: &Path, block_size: u64) -> Result<()> {
    for folder in ["odd", "many", "links", "sizes", "sparse"] {
        fs::create_dir_all(root.join(folder))?;
    }
    let long = "n".repeat(255);
    for (name, seed) in NAMES.iter().copied().chain([&*long]).zip(1..) {
        fs::write(
            root.join("odd").join(name),
            disk::noise(700 * seed, seed as u64),
        )?;
    }
    for number in 0..MANY {
        let name = format!("many/an entry of a large directory, number {number}");
        fs::write(root.join(name), number.to_string())?;
    }
    fs::write(root.join("links/target"), "linked\n")?;
    fs::hard_link(root.join("links/target"), root.join("links/hard"))?;
    symlink("target", root.join("links/fast"))?;
    symlink(
        format!("{}target", "./".repeat(60)),
        root.join("links/slow"),
    )?;
    symlink("nowhere", root.join("links/dangling"))?;
    let deep = (0..DEPTH).fold(root.join("deep"), |path, level| {
        path.join(format!("level {level}"))
    });
    fs::create_dir_all(&deep)?;
    fs::write(deep.join("leaf"), "at the bottom\n")?;
    let doubly = (first_of_level(block_size, 2) + 3) * block_size;
    for (length, seed) in [
        0,
        1,
        block_size,
        12 * block_size,
        12 * block_size + 1,
        doubly,
    ]
    .into_iter()
    .zip(1..)
    {
        fs::write(
            root.join(format!("sizes/{length}")),
            disk::noise(length as usize, seed),
        )?;
    }
    // A block at the start of each level, and the one before it.
    let sparse = File::create(root.join("sparse/all levels"))?;
    for level in 0..4 {
        let first = first_of_level(block_size, level);
        for block in first.saturating_sub(1)..=first {
            sparse.write_all_at(
                &disk::noise(block_size as usize, 100 + block),
                block * block_size,
            )?;
        }
    }
    Ok(())
}

fn image(bench: &Bench<'_>, root: &Path, block_size: u64, journal: bool) -> Result<PathBuf> {
    let image = bench.folder.join("image");
    let block_size = block_size.to_string();
    let mut options = vec!["-b", &block_size];
    options.extend(["-j", "-J", "size=4"].iter().filter(|_| journal));
    disk::make_with(root, &image, "64M", &options)?;
    // Gives large directories their index.
    let mut index = Command::new(tool::need("e2fsck", "e2fsprogs")?);
    index.args(["-fyD"]).arg(&image);
    let status = tool::captured(&mut index)?.status;
    ensure!(matches!(status.code(), Some(0 | 1)), "e2fsck -D: {status}");
    let mut about = Command::new(tool::need("debugfs", "e2fsprogs")?);
    let about = tool::output(about.args(["-R", "htree_dump /many"]).arg(&image))?;
    ensure!(
        about.contains("Root node dump"),
        "no index was made: {about}"
    );
    Ok(image)
}

/// The lines that `find` prints, sorted.
fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<_> = text.lines().collect();
    lines.sort_unstable();
    lines
}

/// What `command` prints in the folder `root` of the host.
fn on_host(root: &Path, command: &str) -> Result<String> {
    tool::output(Command::new("sh").args(["-c", command]).current_dir(root))
}

fn reads(bench: &Bench<'_>, image: &Path, root: &Path, block_size: u64) -> Result<()> {
    const FIND: &str = "find deep links many odd sizes sparse";
    const SUMS: &str = "sha256sum -- odd/* odd/.hidden many/* sizes/* links/target links/hard links/fast links/slow";
    let line = format!(
        "cd /; {FIND}; echo ---; {SUMS}; echo ---; {}",
        levels(block_size)
    );
    let answer = bench.exec(image, &line)?.status(0)?.silently()?;
    let parts: Vec<_> = answer.stdout.split("---\n").collect();
    let [found, sums, blocks] = parts[..] else {
        anyhow::bail!("unexpected: {}", answer.stdout);
    };
    ensure!(
        sorted(found) == sorted(&on_host(root, FIND)?),
        "find: {found}"
    );
    ensure!(
        sorted(sums) == sorted(&on_host(root, SUMS)?),
        "sha256sum: {sums}"
    );
    let expected = on_host(root, &levels(block_size))?;
    ensure!(
        blocks == expected,
        "blocks of the sparse file: {blocks} and {expected}"
    );
    bench.expect_clean(image)
}

/// Prints the sums of the blocks around the start of each level of a sparse file, holes among them.
fn levels(block_size: u64) -> String {
    let one = |level| {
        let skip = first_of_level(block_size, level).saturating_sub(2);
        format!(
            "dd if='sparse/all levels' bs={block_size} skip={skip} count=4 status=none | sha256sum; "
        )
    };
    (0..4).map(one).collect()
}

fn writes(bench: &Bench<'_>, image: &Path, root: &Path, block_size: u64) -> Result<()> {
    let seek = first_of_level(block_size, if block_size == 1024 { 3 } else { 2 });
    let line = format!(
        "cd /; mkdir new; cp -r odd deep sizes many new && cd new && ln -s target fast && ln -s {slow} slow && ln odd/-dash hard && \
        for i in $(seq 0 3 {MANY}); do rm -f \"many/an entry of a large directory, number $i\"; done; \
        for i in $(seq 1 50); do echo $i > many/new$i; done; mv many/new7 'many/moved 7' && mv odd moved && \
        dd if=/sizes/{length} of=sparse bs={block_size} seek={seek} status=none && sync",
        slow = "s/".repeat(100),
        length = 12 * block_size + 1,
    );
    bench.exec(image, &line)?.status(0)?.silently()?;
    bench.expect_clean(image)?;
    let found = survey::host_tree(image, "new", &bench.folder)?;
    let expected = expected(root, block_size, seek)?;
    for (path, what) in &expected {
        let there = found.get(path).with_context(|| format!("no {path}"))?;
        ensure!(there == what, "{path} is not right");
    }
    let strange = found.keys().find(|path| !expected.contains_key(*path));
    ensure!(strange.is_none(), "{strange:?} should not be there");
    Ok(())
}

/// What [`writes`] should leave.
fn expected(root: &Path, block_size: u64, seek: u64) -> Result<Tree> {
    let mut tree = Tree::new();
    // Not all: the file with holes has gigabytes of them.
    for (folder, name) in [
        ("odd", "moved"),
        ("deep", "deep"),
        ("sizes", "sizes"),
        ("many", "many"),
    ] {
        tree.insert(name.into(), Found::Directory);
        for (path, found) in survey::folder_tree(&root.join(folder))? {
            tree.insert(format!("{name}/{path}"), found);
        }
    }
    for number in (0..MANY).step_by(3) {
        tree.remove(&format!(
            "many/an entry of a large directory, number {number}"
        ));
    }
    for number in 1..=50 {
        let name = if number == 7 {
            "moved 7".into()
        } else {
            format!("new{number}")
        };
        tree.insert(
            format!("many/{name}"),
            Found::File(format!("{number}\n").into()),
        );
    }
    tree.insert("fast".into(), Found::Link("target".into()));
    tree.insert("slow".into(), Found::Link("s/".repeat(100)));
    let hard = fs::read(root.join("odd/-dash"))?;
    tree.insert("hard".into(), Found::File(hard));
    let mut sparse = vec![0; (seek * block_size) as usize];
    sparse.extend(fs::read(
        root.join(format!("sizes/{}", 12 * block_size + 1)),
    )?);
    tree.insert("sparse".into(), Found::File(sparse));
    Ok(tree)
}
