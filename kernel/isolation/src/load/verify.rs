//! Signatures: an image runs only if it was signed by the key that the kernel was built with.

use abi::image::Image;
use core::sync::atomic::{AtomicPtr, Ordering};
use ed25519_compact::{PublicKey, Signature};

/// What the kernel was built with.
pub struct Identity {
    /// ABI fingerprint: compiler, target, interfaces.
    pub fingerprint: [u8; 32],
    /// The ed25519 key whose signatures are accepted.
    pub public_key: [u8; 32],
}

static IDENTITY: AtomicPtr<Identity> = AtomicPtr::new(core::ptr::null_mut());

/// Tells what the kernel was built with. Called once at boot.
pub fn set_identity(identity: &'static Identity) {
    IDENTITY.store(core::ptr::from_ref(identity).cast_mut(), Ordering::Release);
}

/// What the kernel was built with.
///
/// # Panics
/// If [`set_identity`] was not called.
pub fn identity() -> &'static Identity {
    let identity = IDENTITY.load(Ordering::Acquire);
    assert!(!identity.is_null(), "the identity is set at boot");
    // SAFETY: it came from a `&'static`.
    unsafe { &*identity }
}

/// Whether the image was built against the same interfaces by the same compiler.
pub fn fingerprint_fits(image: &Image<'_>) -> bool {
    image.fingerprint() == identity().fingerprint
}

/// Whether the signature is by the kernel's key over exactly these bytes.
pub fn signature_fits(image: &Image<'_>) -> bool {
    let key = PublicKey::new(identity().public_key);
    key.verify(image.signed(), &Signature::new(*image.signature()))
        .is_ok()
}
