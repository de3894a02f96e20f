//! Program images that must be refused: altered, unsigned, signed by others, of other interfaces.

use std::fs;
use std::path::PathBuf;

use abi::image::{Image, Port, SIGNATURE_LENGTH};
use anyhow::{Context, Result, bail, ensure};
use trefoil_gate::keys;

use super::{Case, case};
use crate::bench::Bench;

pub(super) const CASES: &[Case] = &[
    case("image-one-bit-flipped-anywhere-is-refused", flipped),
    case("image-unsigned-or-signed-by-others-is-refused", unsigned),
    case("image-of-older-interfaces-is-refused", older),
    case("image-cut-off-or-no-image-is-refused", no_image),
    case("image-intact-runs", intact),
    case("image-names-no-folder-of-the-build", no_folders),
];

/// A disk with `images` as `/bad/0`, `/bad/1`, ...
fn disk_with(bench: &Bench<'_>, images: &[Vec<u8>]) -> Result<PathBuf> {
    bench.small_disk("64M", &[], |root| {
        let folder = root.join("bad");
        fs::create_dir_all(&folder)?;
        for (index, image) in images.iter().enumerate() {
            fs::write(folder.join(index.to_string()), image)?;
        }
        Ok(())
    })
}

/// A panic names a place in the sources, not on the machine that built them.
fn no_folders(bench: &Bench<'_>) -> Result<()> {
    let root = bench.site.project.root.display().to_string();
    let mut folders = vec![bench.site.project.images()];
    let mut seen = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let bytes = fs::read(&path)?;
            let mut windows = bytes.windows(root.len());
            let found = windows.any(|window| window == root.as_bytes());
            ensure!(!found, "{} has the folder of the sources", path.display());
            seen += 1;
        }
    }
    ensure!(seen > 10, "only {seen} images were seen");
    Ok(())
}

/// The image of `echo`, as it was built.
fn good(bench: &Bench<'_>) -> Result<Vec<u8>> {
    let path = bench.site.project.images().join("boot/bin/echo");
    fs::read(&path).with_context(|| path.display().to_string())
}

/// Starts each of `images`: each must be refused with a message that has one of `words`, and the
/// shell goes on.
fn expect_refused(bench: &Bench<'_>, images: &[Vec<u8>], words: &[&str]) -> Result<()> {
    let disk = disk_with(bench, images)?;
    let line = format!(
        "for i in $(seq 0 {}); do /bad/$i RAN; echo \"$i $?\"; echo \"end $i\" >&2; done",
        images.len() - 1
    );
    let answer = bench.exec(&disk, &line)?.status(0)?;
    ensure!(
        !answer.stdout.contains("RAN"),
        "an image was run: {}",
        answer.stdout
    );
    let mut errors = answer.stderr.as_str();
    for index in 0..images.len() {
        ensure!(
            answer.stdout.contains(&format!("{index} 126\n")),
            "image {index} has not ended with 126: {}",
            answer.stdout
        );
        let Some((said, rest)) = errors.split_once(&format!("end {index}\n")) else {
            bail!("no word about image {index}: {}", answer.stderr);
        };
        let found = words.iter().any(|word| said.to_lowercase().contains(word));
        ensure!(
            found,
            "image {index}: expected one of {words:?} in {said:?}"
        );
        errors = rest;
    }
    Ok(())
}

/// Bits in each part: header, name, fingerprint, ports, code, signature; and 40 spread over all.
fn flipped(bench: &Bench<'_>) -> Result<()> {
    let good = good(bench)?;
    let length = good.len() * 8;
    let tail = (good.len() - SIGNATURE_LENGTH) * 8;
    let mut bits = vec![
        0,
        8 * 8,
        12 * 8,
        16 * 8 + 3,
        48 * 8,
        80 * 8,
        84 * 8,
        90 * 8,
        tail,
        tail + 257,
        length - 1,
    ];
    bits.extend((0..40).map(|index| index * length / 40 + index));
    let flip = |bit: &usize| {
        let mut image = good.clone();
        image[bit / 8] ^= 1 << (bit % 8);
        image
    };
    let images: Vec<_> = bits.iter().filter(|bit| **bit < length).map(flip).collect();
    expect_refused(
        bench,
        &images,
        &[
            "signature",
            "altered",
            "not an image",
            "header",
            "length",
            "interfaces",
            "image",
        ],
    )
}

/// The image of `echo` anew, with other parts.
fn rebuilt(good: &[u8], fingerprint: &[u8; 32]) -> Result<Vec<u8>> {
    let Ok(image) = Image::parse(good) else {
        bail!("the build made a bad image");
    };
    let ports: Vec<Port<'_>> = image.ports().collect();
    Ok(abi::image::unsigned(
        image.name(),
        fingerprint,
        &ports,
        image.elf(),
    ))
}

fn unsigned(bench: &Bench<'_>) -> Result<()> {
    let good = good(bench)?;
    let mut zeros = good[..good.len() - SIGNATURE_LENGTH].to_vec();
    zeros.extend([0; SIGNATURE_LENGTH]);
    let stranger = keys::load_or_make(&bench.folder)?;
    let foreign = keys::sign(&stranger, good[..good.len() - SIGNATURE_LENGTH].to_vec());
    expect_refused(bench, &[zeros, foreign], &["signature", "signed"])
}

fn older(bench: &Bench<'_>) -> Result<()> {
    let good = good(bench)?;
    let own = keys::load_or_make(&bench.site.project.out)?;
    let image = keys::sign(&own, rebuilt(&good, &[0x5a; 32])?);
    expect_refused(
        bench,
        &[image],
        &["interface", "fingerprint", "other version"],
    )
}

fn no_image(bench: &Bench<'_>) -> Result<()> {
    let good = good(bench)?;
    let cut = |length: usize| good[..length].to_vec();
    let mut longer = good.clone();
    longer.push(0);
    let images = [
        b"#!/bin/sh\necho RAN\n".to_vec(),
        b"\x7fELF".to_vec(),
        cut(8),
        cut(87),
        cut(good.len() / 2),
        cut(good.len() - 1),
        longer,
    ];
    expect_refused(
        bench,
        &images,
        &[
            "not a",
            "no image",
            "length",
            "cut off",
            "truncated",
            "image",
        ],
    )
}

fn intact(bench: &Bench<'_>) -> Result<()> {
    let disk = disk_with(bench, &[good(bench)?])?;
    bench
        .exec(&disk, "/bad/0 runs")?
        .status(0)?
        .prints("runs\n")?
        .silently()?;
    Ok(())
}
