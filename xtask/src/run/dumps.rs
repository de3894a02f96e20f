//! Dumps of the domains that the manifest says `dump = "host"` of.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use machine::dumps::Watch;
use machine::qemu::Machine;
use manifest::Manifest;
use trefoil_gate::project::Project;

/// Where they are put.
fn folder(project: &Project) -> PathBuf {
    project.out.join("dumps")
}

/// Has `machine` watched if `manifest`, or the default one, asks for dumps. Whoever brings a
/// debugger has one that can do it.
pub(super) fn watch(
    project: &Project,
    manifest: Option<&Path>,
    is_debugged: bool,
    machine: &mut Machine,
) -> Result<Option<Watch>> {
    let usual = project.root.join("images/default.toml");
    let file = manifest.unwrap_or(&usual);
    let text =
        fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let names = names(&text)?;
    if names.is_empty() {
        return Ok(None);
    }
    if is_debugged {
        eprintln!(
            "no dumps of {} by themselves: `trefoil dump-at-death NAME FILE` in your gdb has them",
            names.join(", ")
        );
        return Ok(None);
    }
    Watch::start(machine, &names, &folder(project)).map(Some)
}

/// The domains of which `text` wants dumps.
fn names(text: &str) -> Result<Vec<String>> {
    let manifest =
        Manifest::parse(text).map_err(|error| anyhow::anyhow!("the manifest: {error}"))?;
    let dumped = manifest.domains.into_iter().filter(|domain| domain.dump);
    Ok(dumped.map(|domain| domain.name).collect())
}

/// Says on standard error what was dumped. How the system has ended counts, and not this.
pub(super) fn told(watch: Option<Watch>) {
    match watch.map_or(Ok(Vec::new()), Watch::end) {
        Ok(lines) => {
            for line in lines {
                eprintln!("dump: {line}; `cargo xtask dump FILE` opens it");
            }
        }
        Err(error) => eprintln!("warning: {error:#}"),
    }
}

#[cfg(test)]
mod tests {
    use super::names;

    #[test]
    fn only_who_is_named_is_dumped() {
        let text = "[domain.a]\n[domain.b]\ndump = \"host\"\n";
        assert_eq!(names(text).expect("right"), ["b"]);
        assert!(names("[domain.a]\ndump = 3\n").is_err());
    }
}
