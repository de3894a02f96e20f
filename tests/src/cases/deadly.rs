//! Changes that kill whoever makes them, each time: the file service, the file system, or both. The
//! third death of the service is the last one, and the fourth of the file system. Who asked is told
//! once, and nobody else notices; what was acknowledged and kills when it is made again is left
//! out, and nothing else.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use machine::disk;
use machine::manifests;
use machine::qemu::Machine;

use super::recovery::{MANY_RESTARTS, cell};
use super::{Case, case};
use crate::bench::Bench;

pub(super) const CASES: &[Case] = &[
    case("deadly-names-kill-the-service-each-time", service),
    case("deadly-names-kill-the-file-system-each-time", file_system),
    case("deadly-names-kill-both-each-time", both),
    case("deadly-names-of-old-kill-the-service", service_later),
    case("deadly-names-of-old-kill-both", both_later),
    case(
        "deadly-names-of-old-kill-the-file-system",
        file_system_later,
    ),
];

/// A machine whose file system has deadly names (`domains/testing/deadly-names`).
/// `often` may crash any number of times.
pub(super) fn machine(bench: &Bench<'_>, disk: &Path, often: &[&str]) -> Result<Machine> {
    let usual = fs::read_to_string(bench.site.project.root.join("images/default.toml"))?;
    let direct = "fs = \"ext2.respawn\"";
    ensure!(usual.contains(direct), "another shadow in the manifest");
    let deadly = "[domain.deadly-names]\n\
         grants = { volume = \"ext2\", monitor = \"kernel.monitor\", control = \"kernel.control\" }\n\n\
         [domain.vfs]\noptions = \"small=4000 pages=4M\"\n";
    let text = usual.replace(direct, "fs = \"deadly-names.respawn\"");
    let text = text.replacen("[domain.vfs]\n", deadly, 1);
    let text = manifests::with_limits(&text, often, MANY_RESTARTS)?;
    let mut machine = bench.machine_by(&text)?;
    machine.disk = Some(disk.to_path_buf());
    machine.processors = 2;
    Ok(machine)
}

fn service(bench: &Bench<'_>) -> Result<()> {
    killing(bench, "vfs", [3, 0])
}

fn file_system(bench: &Bench<'_>) -> Result<()> {
    killing(bench, "ext2", [0, 4])
}

fn both(bench: &Bench<'_>) -> Result<()> {
    killing(bench, "vfs-ext2", [3, 3])
}

fn service_later(bench: &Bench<'_>) -> Result<()> {
    killing_later(bench, "vfs", [3, 1], &["ext2", "deadly-names"])
}

fn both_later(bench: &Bench<'_>) -> Result<()> {
    killing_later(bench, "vfs-ext2", [3, 4], &["ext2", "deadly-names"])
}

/// It comes back within the usual limit of restarts.
fn file_system_later(bench: &Bench<'_>) -> Result<()> {
    killing_later(bench, "ext2", [0, 6], &["deadly-names"])
}

/// Of four kinds of changes each kills whom its name says until it is given up, while a file is
/// copied and names change that nobody has committed; `deaths` are those of service and file system
/// in each.
fn killing(bench: &Bench<'_>, whom: &str, deaths: [u32; 2]) -> Result<()> {
    let big = disk::noise(3 << 20, 21);
    let disk = bench.small_disk("24M", &["-b", "1024", "-j"], |root| {
        Ok(fs::write(root.join("big"), &big)?)
    })?;
    let name = format!("kills-{whom}");
    let line = format!(
        "mkdir /d; cd /d; seq 2000 > before; mkdir e; mv before e/b; echo old > a; \
         {{ for i in 1 2 3; do cp /big /copy$i; done; echo > /tmp/copied; }} & \
         {{ i=0; until [ -e /tmp/copied ]; do i=$((i + 1)); mkdir n$i && mv n$i m$i && rmdir m$i || echo FAILED $i; done; }} & \
         mkdir {name} && echo MADE; ln a {name} && echo LINKED; mv a {name} && echo MOVED; ln -s a {name} && echo LINKED; \
         wait; cat a; ls; seq 2000 | cmp - e/b && echo same; for i in 1 2 3; do cmp /big /copy$i && echo same; done; \
         mkdir after && rmdir after && echo works; domains -q"
    );
    let answer = bench.exec_on(
        machine(bench, &disk, &["vfs", "ext2", "deadly-names"])?,
        &line,
    )?;
    let right = "old\na\ne\nsame\nsame\nsame\nsame\nworks\n";
    ensure!(
        answer.stdout.starts_with(right),
        "{}\n{}\n{}",
        answer.stdout,
        answer.stderr,
        answer.log
    );
    // Each of the four was told once.
    let errors: Vec<_> = answer.stderr.lines().collect();
    ensure!(
        errors.len() == 4
            && errors
                .iter()
                .all(|line| line.contains("Input/output error")),
        "{}\n{}",
        answer.stderr,
        answer.log
    );
    for (domain, deaths) in ["vfs", "ext2"].into_iter().zip(deaths) {
        // Who finds the file system dead may have started the next one by the time that its name is
        // looked for, which is killed then as well.
        let crashes = cell(&answer.stdout, domain, "CRASHES").context("no such domain")?;
        let crashes: u32 = crashes.parse()?;
        let least = 4 * deaths;
        ensure!(
            (least..=2 * least).contains(&crashes),
            "{domain}: {crashes} crashes, not {least}"
        );
    }
    ensure!(
        !answer.log.contains("another file system") && !answer.log.contains("are lost"),
        "{}",
        answer.log
    );
    for copy in ["/copy1", "/copy2", "/copy3"] {
        ensure!(bench.host_read(&disk, copy)? == big, "{copy} is another");
    }
    bench.expect_clean(&disk)
}

/// A change was acknowledged, and others after it, none of them committed: all within less than the
/// second after which the file system commits by itself. The file system dies, and making that
/// change again kills whom its name says each time. It is left out, which the log says, and nothing
/// else is. The service comes back within the usual limit of restarts. The pause lets the second
/// that began with the first change go by.
fn killing_later(bench: &Bench<'_>, whom: &str, deaths: [u32; 2], often: &[&str]) -> Result<()> {
    let disk = bench.small_disk("24M", &["-b", "1024", "-j"], |_| Ok(()))?;
    let name = format!("later-kills-{whom}");
    let line = format!(
        "mkdir /d; cd /d; echo > /armed; seq 2000 > before; sync; sleep 1.2; \
         mkdir e {name} f && echo made; mv before e/b; mv f g; echo new > small; kill-domain ext2; \
         ls; cat small; seq 2000 | cmp - e/b && echo same; \
         mkdir after && mv after h && rmdir h && seq 3000 > more && sync && seq 3000 | cmp - more && echo works; \
         domains -q"
    );
    let answer = bench.exec_on(machine(bench, &disk, often)?, &line)?;
    let answer = answer.status(0)?;
    let right = "made\ne\ng\nsmall\nnew\nsame\nworks\n";
    ensure!(
        answer.stdout.starts_with(right) && answer.stderr.is_empty(),
        "{}\n{}\n{}",
        answer.stdout,
        answer.stderr,
        answer.log
    );
    let lost = format!("lost: made \"{name}\": too many died of it");
    ensure!(
        answer.log.contains(&lost) && answer.log.contains("1 changes are lost"),
        "{}",
        answer.log
    );
    let crashes = |domain: &str| -> Result<u32> {
        let crashes = cell(&answer.stdout, domain, "CRASHES").context("no such domain")?;
        Ok(crashes.parse()?)
    };
    let (service, file_system) = (crashes("vfs")?, crashes("ext2")?);
    let [services, deaths] = deaths;
    ensure!(service == services, "{service} crashes of the service");
    // One by hand; the next one may be started already by the time that it is to be killed.
    ensure!(
        (deaths..=2 * deaths).contains(&file_system),
        "{file_system} crashes of the file system"
    );
    ensure!(
        bench.host_read(&disk, "/d/small")? == b"new\n",
        "/d/small is another"
    );
    bench.expect_clean(&disk)
}
