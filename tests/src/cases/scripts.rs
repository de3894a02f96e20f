//! Scripts of ordinary work print byte for byte what Debian's dash with its tools prints, and end
//! as they do there. Errors are in the scripts on purpose; what is written to the standard error is
//! not compared.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use trefoil_gate::tool;

use super::{Case, case};
use crate::bench::Bench;

pub(super) const CASES: &[Case] = &[
    case("script-of-texts-as-dash", |bench| {
        compare(bench, include_str!("../../scripts/text.sh"))
    }),
    case("script-of-files-as-dash", |bench| {
        compare(bench, include_str!("../../scripts/files.sh"))
    }),
    case("script-of-control-flow-as-dash", |bench| {
        compare(bench, include_str!("../../scripts/control.sh"))
    }),
    case("script-of-expansions-as-dash", |bench| {
        compare(bench, include_str!("../../scripts/expand.sh"))
    }),
];

/// How long the system may take for one script.
const LIMIT: Duration = Duration::from_secs(300);

/// What dash is started by: whoever runs the tests may ignore signals or keep modes from others,
/// and dash would inherit that.
const USUAL: &str = "umask 022; exec env --default-signal dash -c \"$1\" script";

/// Runs `script` on the host and in the system, each in an empty folder, and compares.
fn compare(bench: &Bench<'_>, script: &str) -> Result<()> {
    let folder = std::env::temp_dir().join(format!("trefoil-script-{}", std::process::id()));
    let folder = folder.join(script.len().to_string());
    fs::create_dir_all(&folder)?;
    let host = Command::new(tool::need("dash", "dash")?)
        .args(["-c", USUAL, "usual", script])
        .current_dir(&folder)
        .env_clear()
        .envs([("PATH", "/usr/bin:/bin"), ("LC_ALL", "C"), ("TZ", "UTC")])
        .env("HOME", "/")
        .stdin(Stdio::null())
        .output();
    fs::remove_dir_all(&folder)?;
    let host = host?;
    let expected = String::from_utf8_lossy(&host.stdout).into_owned();
    let disk = bench.small_disk("32M", &[], |root| {
        fs::create_dir(root.join("work"))?;
        Ok(fs::write(root.join("script"), script)?)
    })?;
    let machine = bench.machine_with(&disk);
    let line = "cd /work; sh -c \"$(cat /script)\" script < /dev/null";
    let ours = bench.exec_within(LIMIT, machine, line)?;
    for (number, (ours_line, line)) in ours.stdout.lines().zip(expected.lines()).enumerate() {
        ensure!(
            ours_line == line,
            "line {}: dash prints {line:?}, we {ours_line:?}\n{}\nerrors:\n{}",
            number + 1,
            ours.stdout,
            ours.stderr
        );
    }
    ensure!(
        ours.stdout == expected,
        "dash prints {} bytes, we {}; errors:\n{}",
        expected.len(),
        ours.stdout.len(),
        ours.stderr
    );
    let status = host.status.code().context("dash was killed")?;
    ours.status(status)?;
    bench.expect_clean(&disk)
}
