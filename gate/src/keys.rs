//! The key that images are signed with. It is made once per build folder and never leaves it. It
//! lies in a folder of its own, so that [`crate::confine`] can hide it; only [`crate::signer`]
//! reads it.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use ed25519_compact::{KeyPair, Seed};

/// The folder that has nothing in it but the key of the build folder `out`.
pub fn folder(out: &Path) -> PathBuf {
    out.join("signing")
}

/// The key of the build folder `out`; made if there is none.
///
/// # Errors
/// If it cannot be read or written, or is not a key.
pub fn load_or_make(out: &Path) -> Result<KeyPair> {
    let path = folder(out).join("key");
    // Where older versions of this tool had one, open to all that they started.
    let _ = fs::remove_file(out.join("key"));
    if !path.exists() {
        make(&path).with_context(|| format!("cannot make {}", path.display()))?;
    }
    let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    match <[u8; 32]>::try_from(bytes) {
        Ok(seed) => Ok(KeyPair::from_seed(Seed::new(seed))),
        Err(_) => bail!(
            "{} is not a key of 32 bytes: remove it to have a new one made",
            path.display()
        ),
    }
}

fn make(path: &Path) -> Result<()> {
    let mut seed = [0; 32];
    File::open("/dev/urandom")?.read_exact(&mut seed)?;
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path.parent().context("a key has a folder")?)?;
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?
        .write_all(&seed)?;
    Ok(())
}

/// `unsigned` with its signature behind it.
pub fn sign(key: &KeyPair, mut unsigned: Vec<u8>) -> Vec<u8> {
    let signature = key.sk.sign(&unsigned, None);
    unsigned.extend(signature.as_ref());
    unsigned
}

/// `bytes` in hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signed_image_verifies_and_an_altered_one_does_not() {
        let key = KeyPair::from_seed(Seed::new([7; 32]));
        let mut signed = sign(&key, b"image".to_vec());
        let signature = ed25519_compact::Signature::from_slice(&signed[5..]).expect("64 bytes");
        assert!(key.pk.verify(&signed[..5], &signature).is_ok());
        signed[0] ^= 1;
        assert!(key.pk.verify(&signed[..5], &signature).is_err());
    }

    #[test]
    fn a_key_is_made_once_and_only_its_owner_may_read_it() {
        use std::os::unix::fs::PermissionsExt;
        let folder = std::env::temp_dir().join(format!("trefoil-key-{}", std::process::id()));
        let first = load_or_make(&folder).expect("made");
        let second = load_or_make(&folder).expect("read");
        assert_eq!(first.pk.as_ref(), second.pk.as_ref());
        let mode = |file: &Path| {
            let found = fs::metadata(file).expect("is there");
            found.permissions().mode() & 0o777
        };
        let key = super::folder(&folder).join("key");
        assert_eq!(mode(&key), 0o600);
        assert_eq!(mode(&super::folder(&folder)), 0o700);
        fs::write(key, b"short").expect("written");
        assert!(load_or_make(&folder).is_err());
        fs::remove_dir_all(folder).expect("removed");
    }
}
