//! What benchmarks share that count beside Debian's kernel.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use machine::qemu::Machine;
use serde_json::json;
use trefoil_gate::project::Project;

use super::figure::Figure;

/// A machine whose clock counts the guest's instructions.
pub fn counting(kernel: &Path, folder: &Path, archive: PathBuf) -> Machine {
    let mut machine = Machine::new(kernel, folder);
    machine.archive = Some(archive);
    machine.count_instructions = true;
    machine
}

/// The peer's command line.
pub fn peer_words() -> Vec<String> {
    ["console=ttyS0", "quiet", "panic=-1", "tsc=reliable"]
        .map(String::from)
        .to_vec()
}

/// A row for each figure: name, value, the first peer's, their ratio; in
/// `target/trefoil/bench-NAME.json`.
///
/// # Errors
/// If it cannot be written.
pub fn write_rows(project: &Project, name: &str, figures: &[Figure]) -> Result<()> {
    let row = |figure: &Figure| {
        let peer = figure.peers.first().map(|(_, value)| *value);
        json!({
            "name": figure.name, "unit": figure.unit, "value": figure.best,
            "peer": peer, "ratio": peer.map(|peer| figure.best / peer), "met": figure.met,
        })
    };
    let rows: Vec<_> = figures.iter().map(row).collect();
    let file = project.out.join(format!("bench-{name}.json"));
    Ok(fs::write(file, format!("{:#}\n", json!(rows)))?)
}
