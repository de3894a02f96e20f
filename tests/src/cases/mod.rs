//! The table of all tests of the whole system.

use anyhow::Result;

use crate::bench::Bench;

mod agreement;
mod backtraces;
mod calls;
mod changes;
mod console;
mod copies;
mod deadly;
mod disks;
mod example;
mod exec;
mod faults;
mod fence;
mod first;
mod fuzz;
mod gdb;
mod guests;
mod guide;
mod hog;
mod images;
mod init;
mod limits;
mod linux;
mod linux_files;
mod linux_mm;
mod linux_scripts;
mod linux_sockets;
mod linux_tasks;
mod linux_tools;
mod manifests;
mod mapping;
mod mounts;
mod network;
mod network_linux;
mod nvme;
pub(crate) mod order;
mod power;
mod profile;
mod pulled;
mod recovery;
mod replaced;
mod scripts;
mod service;
mod shadows;
mod shell;
mod sources;
mod statics;
mod statics_disk;
mod statics_names;
mod statics_terminal;
mod steps;
mod storing;
mod threads;
mod times;
mod tmp;
mod trace;
mod tracer;
mod unnamed;
mod update;

/// A test: its name and what it does.
#[derive(Clone, Copy)]
pub struct Case {
    /// Its name: the subject, a dash, what must hold.
    pub name: &'static str,
    /// Fails with an error that says what was expected and what came.
    pub run: fn(&Bench<'_>) -> Result<()>,
}

/// Shorthand for the tables.
const fn case(name: &'static str, run: fn(&Bench<'_>) -> Result<()>) -> Case {
    Case { name, run }
}

/// All tests, in the order in which they begin.
pub fn all() -> Vec<Case> {
    let tables = [
        recovery::CASES,
        init::CASES,
        power::CASES,
        shadows::CASES,
        fence::CASES,
        update::CASES,
        disks::CASES,
        hog::CASES,
        limits::CASES,
        linux::CASES,
        linux_files::CASES,
        linux_sockets::CASES,
        linux_tasks::CASES,
        linux_mm::CASES,
        linux_tools::CASES,
        linux_scripts::CASES,
        changes::CASES,
        agreement::CASES,
        times::CASES,
        tmp::CASES,
        calls::CASES,
        trace::CASES,
        tracer::CASES,
        backtraces::CASES,
        profile::CASES,
        pulled::CASES,
        mounts::CASES,
        network::CASES,
        network_linux::CASES,
        faults::CASES,
        gdb::CASES,
        fuzz::CASES,
        nvme::CASES,
        steps::CASES,
        images::CASES,
        shell::CASES,
        scripts::CASES,
        exec::CASES,
        statics::CASES,
        statics_disk::CASES,
        statics_names::CASES,
        replaced::CASES,
        statics_terminal::CASES,
        threads::CASES,
        guests::CASES,
        mapping::CASES,
        copies::CASES,
        storing::CASES,
        service::CASES,
        deadly::CASES,
        unnamed::CASES,
        console::CASES,
        manifests::CASES,
        guide::CASES,
        example::CASES,
        first::CASES,
    ];
    let mut all = tables.concat();
    all.extend(sources::cases());
    order::sort(&mut all);
    all
}
