//! Targets that libFuzzer runs, guided by which code an input reaches: the programs of
//! `tests/fuzz`.
//!
//! What is found lies in the folder that the line before the last names; the program's own output
//! says how to try it again. Inputs that reached something new are kept between runs, beside what
//! was built.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::{Numbers, Options};
use trefoil_gate::project::Project;
use trefoil_gate::{setup, tool};

/// The names of such targets.
pub const NAMES: [&str; 1] = ["ext2"];

const TARGET: &str = "x86_64-unknown-linux-gnu";
/// What makes the compiler count which code runs, for libFuzzer, and look at every access to
/// memory.
const FLAGS: &str = "-Zsanitizer=address -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1 --cfg fuzzing";
/// Seconds after which an input counts as a hang.
const HANG: u64 = 10;
/// Megabytes that one allocation, and all together, may have.
const MOST_MEMORY: [u64; 2] = [128, 1024];
/// Bytes in an input, at most.
const LONGEST: usize = 400;
/// Inputs to begin with.
const FIRST_INPUTS: u64 = 300;

/// Runs the target; its status.
///
/// # Errors
/// If it cannot be built or its seeds cannot be made.
pub fn run(project: &Project, options: &Options) -> Result<i32> {
    let folder = project.out.join("fuzz").join(&options.target);
    let [corpus, seeds, found] = ["corpus", "seeds", "found"].map(|name| folder.join(name));
    for folder in [&corpus, &found] {
        std::fs::create_dir_all(folder)?;
    }
    make_seeds(&seeds)?;
    first_inputs(&corpus, options.seed)?;
    let program = build(project, &options.target)?;
    let mut command = Command::new(program);
    command
        .arg(format!("-max_total_time={}", options.seconds))
        .arg(format!("-seed={}", options.seed))
        .arg(format!("-timeout={HANG}"))
        .arg(format!("-malloc_limit_mb={}", MOST_MEMORY[0]))
        .arg(format!("-rss_limit_mb={}", MOST_MEMORY[1]))
        .arg(format!("-max_len={LONGEST}"))
        .args(["-len_control=0", "-print_final_stats=1"])
        .arg(format!("-artifact_prefix={}/", found.display()))
        .arg(&corpus)
        .env("TREFOIL_FUZZ_SEEDS", &seeds)
        .env("ASAN_OPTIONS", "detect_leaks=0");
    let status = command.status().context("the fuzzer cannot be started")?;
    let findings = found.read_dir()?.count();
    println!("what is found lies in {}", found.display());
    println!("{findings} findings");
    Ok(i32::from(!status.success() || findings > 0))
}

/// Builds the target's program.
fn build(project: &Project, target: &str) -> Result<PathBuf> {
    let toolchain = setup::toolchain()?;
    tool::step("building the fuzzer");
    let output = project.target.join("fuzz");
    let mut command = toolchain.cargo(project);
    command
        .args([
            "build",
            "--quiet",
            "--release",
            "--target",
            TARGET,
            "--bin",
            target,
        ])
        .current_dir(project.root.join("tests/fuzz"))
        .env("CARGO_TARGET_DIR", &output)
        .env("RUSTC_BOOTSTRAP", "1")
        .env("RUSTFLAGS", FLAGS);
    tool::run(&mut command).context(
        "it needs the runtime of AddressSanitizer, which rustup's toolchains have, and g++ for libFuzzer",
    )?;
    Ok(output.join(TARGET).join("release").join(target))
}

/// Inputs that are long enough to say something, because libFuzzer begins with short ones.
fn first_inputs(corpus: &Path, seed: u64) -> Result<()> {
    for index in 0..FIRST_INPUTS {
        let mut numbers = Numbers::of(seed, index);
        let length = 20 + numbers.below(220);
        let mut input: Vec<u8> = (0..length).map(|_| numbers.next() as u8).collect();
        // Few changes to the image leave more of it to be reached.
        (input[0], input[1]) = (index as u8, [0, 1, 1, 2, 3, 4, 6][numbers.below(7)]);
        std::fs::write(corpus.join(format!("first-{index}")), input)?;
    }
    Ok(())
}

/// Makes the good images, with a bit of everything in them. What files contain is zeros, so that
/// what is not zero is metadata.
fn make_seeds(folder: &Path) -> Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let tree = folder.with_extension("tree");
    let making = folder.with_extension("making");
    for folder in [&tree, &making] {
        let _ = std::fs::remove_dir_all(folder);
        std::fs::create_dir_all(folder)?;
    }
    make_tree(&tree)?;
    for block in [1024, 2048, 4096] {
        image(
            &making.join(format!("ext2-{block}.img")),
            &tree,
            block,
            "dir_index,filetype",
            &[],
            400,
        )?;
        let journal = ["-j".into(), "-J".into(), format!("size={}", block / 1024)];
        image(
            &making.join(format!("ext3-{block}.img")),
            &tree,
            block,
            "dir_index,filetype",
            &journal,
            2200,
        )?;
    }
    image(
        &making.join("revision-0.img"),
        &tree,
        1024,
        "none",
        &["-r".into(), "0".into()],
        500,
    )?;
    // Gives the large directory its index, which is only read where there is no journal.
    for name in ["ext2-1024.img", "ext3-1024.img"] {
        let mut check = Command::new(tool::need("e2fsck", "e2fsprogs")?);
        tool::captured(check.arg("-fyD").arg(making.join(name)))?;
    }
    std::fs::remove_dir_all(&tree)?;
    std::fs::rename(making, folder).context("the folder of seeds")
}

fn make_tree(tree: &Path) -> Result<()> {
    use std::os::unix::fs::symlink;
    std::fs::create_dir_all(tree.join("dir/deep"))?;
    std::fs::create_dir(tree.join("many"))?;
    std::fs::write(tree.join("dir/big"), vec![0; 120_000])?;
    std::fs::File::create(tree.join("dir/sparse"))?.set_len(80 << 20)?;
    std::fs::write(tree.join("empty"), [])?;
    std::fs::hard_link(tree.join("dir/big"), tree.join("hard"))?;
    symlink("target", tree.join("fast"))?;
    symlink("x".repeat(150), tree.join("dir/slow"))?;
    for number in 0..90 {
        std::fs::write(tree.join(format!("many/a-rather-long-name-{number}")), [])?;
    }
    Ok(())
}

fn image(
    file: &Path,
    tree: &Path,
    block: u32,
    features: &str,
    more: &[String],
    blocks: u32,
) -> Result<()> {
    let mut command = Command::new(tool::need("mke2fs", "e2fsprogs")?);
    command
        .args([
            "-q",
            "-F",
            "-t",
            "ext2",
            "-N",
            "160",
            "-E",
            "root_owner=0:0",
            "-O",
            features,
        ])
        .args(more)
        .args(["-b", &block.to_string(), "-d"])
        .arg(tree)
        .arg(file)
        .arg(blocks.to_string());
    let output = tool::captured(&mut command)?;
    if !output.status.success() {
        bail!("mke2fs: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}
