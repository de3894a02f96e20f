//! Images that must not load.

use crate::lab::{Lab, say};
use crate::{Test, Verdict, ensure};
use interfaces::{LoadError, RVec};

/// The tests of this file.
pub const TESTS: &[Test] = &[
    ("image-with-one-bit-flipped", bit_flips),
    ("image-truncated", truncated),
    ("image-with-something-behind", longer),
    ("image-that-is-none", no_image),
    ("image-unsigned", unsigned),
];

fn bit_flips(lab: &Lab) -> Verdict {
    let whole = lab.victim_file()?;
    // A prime step, so that every part of header, code, data and signature is hit, at every bit
    // position.
    let step = (whole.len() * 8 / 150) | 1;
    for bit in (0..whole.len() * 8)
        .step_by(step)
        .chain(whole.len() * 8 - 64..whole.len() * 8 - 56)
    {
        let mut file = RVec::from_slice(&whole).map_err(say)?;
        file[bit / 8] ^= 1 << (bit % 8);
        ensure!(
            lab.loader.prepare(file).is_err(),
            "bit {bit} flipped, and it loads"
        );
    }
    Ok(())
}

fn truncated(lab: &Lab) -> Verdict {
    let whole = lab.victim_file()?;
    for len in [
        0,
        1,
        7,
        8,
        80,
        100,
        150,
        whole.len() / 2,
        whole.len() - 65,
        whole.len() - 1,
    ] {
        let file = RVec::from_slice(&whole[..len]).map_err(say)?;
        let error = lab.loader.prepare(file).err();
        let expected = matches!(error, Some(LoadError::NotAnImage | LoadError::WrongLength));
        ensure!(expected, "{len} bytes: {error:?}");
    }
    Ok(())
}

fn longer(lab: &Lab) -> Verdict {
    let whole = lab.victim_file()?;
    let mut file = RVec::filled(0, whole.len() + 1).map_err(say)?;
    file[..whole.len()].copy_from_slice(&whole);
    let error = lab.loader.prepare(file).err();
    ensure!(matches!(error, Some(LoadError::WrongLength)), "{error:?}");
    Ok(())
}

fn no_image(lab: &Lab) -> Verdict {
    let file = RVec::from_slice(b"\x7fELF, but nothing that Trefoil knows").map_err(say)?;
    let error = lab.loader.prepare(file).err();
    ensure!(matches!(error, Some(LoadError::NotAnImage)), "{error:?}");
    Ok(())
}

fn unsigned(lab: &Lab) -> Verdict {
    let mut file = lab.victim_file()?;
    let len = file.len();
    file[len - 64..].fill(0);
    let error = lab.loader.prepare(file).err();
    ensure!(matches!(error, Some(LoadError::BadSignature)), "{error:?}");
    Ok(())
}
