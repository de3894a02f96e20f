//! What is measured beside us, each as a process of its own: C, wasmtime, DPDK.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, ensure};

use super::rounds::{Raw, parse};
use trefoil_gate::project::Project;
use trefoil_gate::{setup, tool};

/// Seconds that DPDK is watched for each batch size.
const DPDK_SECONDS: u64 = 4;

/// The program in C that does what the hash table's domain does, compiled with `gcc -O2`.
///
/// # Errors
/// If it cannot be compiled.
pub fn hash_in_c(project: &Project) -> Result<PathBuf> {
    let program = project.out.join("peers/table");
    fs::create_dir_all(project.out.join("peers"))?;
    let mut command = Command::new(tool::need("gcc", "gcc")?);
    command
        .args(["-O2", "-Wall", "-o"])
        .arg(&program)
        .arg(project.root.join("lab/peers/hash/table.c"));
    tool::run(&mut command)?;
    Ok(program)
}

/// The figures of the program in C, with tables of up to `mebibytes`.
///
/// # Errors
/// If it fails.
pub fn run_hash(program: &PathBuf, cpu: usize, mebibytes: u64) -> Result<Vec<Raw>> {
    let mut command = Command::new(program);
    command.args([cpu.to_string(), mebibytes.to_string()]);
    parse(&tool::output(&mut command)?)
}

/// The program that measures wasmtime. Compiling it takes minutes, once.
///
/// # Errors
/// If it does not compile.
pub fn wasmtime(project: &Project) -> Result<PathBuf> {
    let target = project.out.join("peers/wasmtime");
    let program = target.join("release/wasmtime-peer");
    if !program.exists() {
        tool::step(
            "compiling wasmtime, a peer of the benchmark; this takes minutes, and only once",
        );
    }
    let mut command = setup::toolchain()?.cargo(project);
    command
        .current_dir(project.root.join("lab/peers/wasmtime"))
        .env("CARGO_TARGET_DIR", &target)
        .args(["build", "--release", "--locked", "--quiet"]);
    tool::run(&mut command)?;
    Ok(program)
}

/// The figures of wasmtime.
///
/// # Errors
/// If it fails.
pub fn run_wasmtime(program: &PathBuf, cpu: usize) -> Result<Vec<Raw>> {
    parse(&tool::output(Command::new(program).arg(cpu.to_string()))?)
}

/// DPDK's test program, if it is installed; says how to get it if not.
pub fn dpdk() -> Option<PathBuf> {
    let program = tool::find("dpdk-testpmd");
    if program.is_none() {
        tool::step(
            "DPDK is not installed, so its null driver is left out; on Debian: apt install --no-install-recommends dpdk-dev librte-net-null23",
        );
    }
    program
}

/// Packets of 64 bytes that one processor sends through DPDK's null driver, `batch` at a time.
///
/// # Errors
/// If the program does not run or says nothing.
pub fn run_dpdk(program: &PathBuf, cpu: usize, batch: u32) -> Result<Raw> {
    // One more for the program itself; the processor that sends is the second.
    let first = usize::from(cpu == 0);
    let burst = format!("--burst={batch}");
    // Without a terminal it goes on until it is interrupted.
    let mut command = Command::new(tool::need("timeout", "coreutils")?);
    command.args(["--signal=INT", "--kill-after=10"]);
    command.arg(DPDK_SECONDS.to_string()).arg(program);
    command.args(["--no-huge", "--no-pci", "-m", "256"]);
    command.args(["--vdev=net_null0", "--vdev=net_null1"]);
    command.arg("--main-lcore").arg(first.to_string());
    command.args(["-l", &format!("{first},{cpu}"), "--"]);
    command.args(["--forward-mode=txonly", "--txpkts=64", &burst]);
    command.args(["--stats-period=1", "--total-num-mbufs=8192"]);
    let text = tool::captured(&mut command)?.stdout;
    let rates = dpdk_rates(&String::from_utf8_lossy(&text));
    ensure!(!rates.is_empty(), "dpdk-testpmd showed no packets");
    Ok(Raw {
        id: format!("D{batch}"),
        name: "DPDK's null driver".into(),
        unit: "Mpps".into(),
        best: rates.iter().copied().fold(0.0, f64::max),
        median: rates[rates.len() / 2],
        ..Raw::default()
    })
}

/// Millions of packets a second through both ports, for each look at them, sorted.
fn dpdk_rates(text: &str) -> Vec<f64> {
    let rate = |line: &str| {
        let (_, rest) = line.split_once("Tx-pps:")?;
        rest.split_whitespace().next()?.parse::<f64>().ok()
    };
    let ports: Vec<f64> = text.lines().filter_map(rate).collect();
    let mut rates: Vec<f64> = ports
        .chunks_exact(2)
        .map(|ports| (ports[0] + ports[1]) / 1e6)
        .filter(|rate| *rate > 0.0)
        .collect();
    rates.sort_by(f64::total_cmp);
    rates
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ports_of_dpdk_are_added() {
        let port =
            |rate: u32| format!("  Rx-pps:   0   Rx-bps: 0\n  Tx-pps:   {rate}   Tx-bps: 0\n");
        let text = [
            port(0),
            port(0),
            port(3_000_000),
            port(3_500_000),
            port(2_000_000),
            port(2_000_000),
        ]
        .concat();
        assert_eq!(dpdk_rates(&text), [4.0, 6.5]);
    }
}
