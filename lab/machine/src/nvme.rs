//! The system with its disk behind an NVMe controller in place of a virtio device.

use anyhow::{Result, ensure};

/// The driver's section in the default manifest, and its name there.
const SECTION: &str = "[domain.virtio-blk]\ngrants = { device = \"pci.claim(1af4:1042,1001)\" }";
const NAME: &str = "virtio-blk";
/// What stands in its place.
const OURS: &str = "[domain.nvme]\ngrants = { device = \"pci.claim(class:010802)\" }";

/// The manifest `text` with the NVMe driver in place of that of virtio disks.
///
/// # Errors
/// If it does not have that one, as the default manifest does.
pub fn manifest(text: &str) -> Result<String> {
    ensure!(text.contains(SECTION), "the manifest lacks {SECTION:?}");
    let text = text.replace(SECTION, OURS);
    Ok(text.replace(&format!("\"{NAME}.respawn\""), "\"nvme.respawn\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_manifest_can_be_changed() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../images/default.toml");
        let text = std::fs::read_to_string(file).expect("it is there");
        let ours = manifest(&text).expect("it has a driver");
        assert!(ours.contains("driver = \"nvme.respawn\""));
        assert!(!ours.contains("virtio-blk"));
        assert!(manifest(&ours).is_err());
    }
}
