//! Checks a manifest against the images that were built, so that a mistake is reported before boot.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use abi::image::{Image, PORT_OFFER, PORT_OPTIONAL};
use anyhow::{Result, bail};
use manifest::{Domain, Manifest};

/// A port of an image: name and flags.
type Ports = Vec<(String, u32)>;

/// Checks `text`, the manifest in `file`, against the images in the folder `images`.
///
/// # Errors
/// All that is wrong, each with its line.
pub fn check(file: &Path, text: &str, images: &Path) -> Result<()> {
    let manifest = match Manifest::parse(text) {
        Ok(manifest) => manifest,
        Err(error) => bail!("{}:{}: {}", file.display(), error.line, error.message),
    };
    let mut ports = BTreeMap::new();
    for domain in &manifest.domains {
        let image = fs::read(images.join("domains").join(&domain.image)).ok();
        ports.insert(
            domain.image.clone(),
            image.and_then(|bytes| ports_of(&bytes)),
        );
    }
    let wrong: Vec<_> = manifest
        .domains
        .iter()
        .flat_map(|domain| problems(domain, ports[&domain.image].as_ref()))
        .collect();
    if wrong.is_empty() {
        return Ok(());
    }
    let lines: Vec<_> = wrong
        .iter()
        .map(|(line, text)| format!("{}:{line}: {text}", file.display()))
        .collect();
    bail!("{}", lines.join("\n"))
}

fn ports_of(bytes: &[u8]) -> Option<Ports> {
    let image = Image::parse(bytes).ok()?;
    Some(
        image
            .ports()
            .map(|port| (port.name.to_string(), port.flags))
            .collect(),
    )
}

/// What does not fit between a domain's block in the manifest and the ports of its image.
fn problems(domain: &Domain, ports: Option<&Ports>) -> Vec<(u32, String)> {
    let Domain { name, image, .. } = domain;
    let Some(ports) = ports else {
        return vec![(
            domain.line,
            format!("domain `{name}`: there is no image `{image}`"),
        )];
    };
    let wanted: Vec<_> = ports
        .iter()
        .filter(|(_, flags)| flags & PORT_OFFER == 0)
        .collect();
    let names: Vec<_> = wanted.iter().map(|(name, _)| name.as_str()).collect();
    let unknown = domain
        .grants
        .iter()
        .filter(|grant| !names.contains(&grant.port.as_str()));
    let mut found: Vec<_> = unknown
        .map(|grant| {
            let wants = if names.is_empty() {
                "nothing".into()
            } else {
                names.join(", ")
            };
            (
                grant.line,
                format!(
                    "domain `{name}`: image `{image}` does not want `{}`; it wants {wants}",
                    grant.port
                ),
            )
        })
        .collect();
    for (port, flags) in wanted {
        let is_granted = domain.grants.iter().any(|grant| grant.port == *port);
        if !is_granted && flags & PORT_OPTIONAL == 0 {
            found.push((
                domain.line,
                format!("domain `{name}`: image `{image}` wants `{port}`, which is not granted"),
            ));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use abi::image::Port;

    /// The manifest's rule of who may share a disk is as true as its list.
    #[test]
    fn who_takes_the_second_place_of_a_disk_is_known() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../domains/personalities");
        let says_so = |folder: &Path| -> bool {
            let files = fs::read_dir(folder.join("src")).expect("a crate's sources");
            let mut texts = files.map(|file| {
                let file = file.expect("an entry").path();
                fs::read_to_string(file).unwrap_or_default()
            });
            texts.any(|text| text.contains(".beside()"))
        };
        let folders = fs::read_dir(root).expect("the personalities");
        let folders = folders.map(|folder| folder.expect("an entry").path());
        let found: Vec<_> = folders.filter(|folder| says_so(folder)).collect();
        let names = found.iter().map(|it| it.file_name().unwrap_or_default());
        assert!(names.eq(manifest::sharing::BESIDE), "{found:?}");
    }

    /// Checks `text` against the images `disk` (offers `service`) and `ext2` (wants `device`, and
    /// `log` if there is one).
    fn errors(name: &str, text: &str) -> String {
        let images =
            std::env::temp_dir().join(format!("trefoil-wiring-{}-{name}", std::process::id()));
        fs::create_dir_all(images.join("domains")).expect("made");
        let port = |name, flags| Port {
            name,
            interface: 1,
            flags,
        };
        for (name, ports) in [
            ("disk", vec![port("service", PORT_OFFER)]),
            (
                "ext2",
                vec![
                    port("device", 0),
                    port("log", PORT_OPTIONAL),
                    port("service", PORT_OFFER),
                ],
            ),
        ] {
            let mut image = abi::image::unsigned(name, &[0; 32], &ports, b"elf");
            image.extend([0; 64]);
            fs::write(images.join("domains").join(name), image).expect("written");
        }
        let result = check(Path::new("m.toml"), text, &images);
        fs::remove_dir_all(images).expect("removed");
        result.map_or_else(|error| error.to_string(), |()| String::new())
    }

    #[test]
    fn what_fits_passes() {
        let text = "[domain.disk]\nimage = \"disk\"\n[domain.fs]\nimage = \"ext2\"\ngrants = { device = \"disk\" }\n";
        assert_eq!(errors("fits", text), "");
    }

    #[test]
    fn a_missing_image_an_unknown_port_and_a_missing_grant_are_named() {
        assert_eq!(
            errors("image", "[domain.a]\nimage = \"b\"\n"),
            "m.toml:1: domain `a`: there is no image `b`"
        );
        let text = "[domain.disk]\nimage = \"disk\"\n[domain.fs]\nimage = \"ext2\"\ngrants = { devise = \"disk\" }\n";
        let found = errors("port", text);
        assert!(
            found.contains(
                "m.toml:5: domain `fs`: image `ext2` does not want `devise`; it wants device, log"
            ),
            "{found}"
        );
        assert!(
            found.contains(
                "m.toml:3: domain `fs`: image `ext2` wants `device`, which is not granted"
            ),
            "{found}"
        );
    }

    #[test]
    fn what_does_not_parse_has_its_line() {
        assert!(errors("parse", "[domain.a]\nimage = \n").starts_with("m.toml:2: "));
    }
}
