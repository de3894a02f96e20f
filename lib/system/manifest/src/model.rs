//! The typed model of a manifest, and the checks that need nothing but the manifest.

use crate::disks;
use crate::index::DomainIndex;
use crate::order;
use crate::source::Source;
use crate::syntax::{self, Entry, Error, Section, Value};
use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// Most bytes in the name of a domain, an image, a grant or a program.
pub const LONGEST_NAME: usize = 32;
/// Most grants of one domain, as many as one call can carry.
pub const MOST_GRANTS: usize = 16;

/// A whole manifest. Every name in it that refers to something refers to something that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// What is done once the domains run.
    pub boot: Boot,
    /// The domains, in the order of the file.
    pub domains: Vec<Domain>,
    /// The disks, the one that is there from the start first.
    pub disks: Vec<Disk>,
    /// What programs can be given, by name.
    pub services: Vec<Grant>,
    /// The programs that are granted services.
    pub programs: Vec<Program>,
}

/// What is done once the domains run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Boot {
    /// The domain that runs the shell.
    pub personality: Option<String>,
    /// Path of the shell.
    pub shell: Option<String>,
    /// Path of the shell that is started if that one cannot be.
    pub fallback: Option<String>,
    /// The domain on whose console `init` says what went wrong.
    pub console: Option<String>,
}

/// A disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disk {
    /// Its name.
    pub name: String,
    /// The domain that is the device.
    pub device: DomainIndex,
    /// The domain that is the file system on it.
    pub files: DomainIndex,
    /// Its domains are started when they are asked for, and ended again.
    pub on_demand: bool,
}

/// A supervised domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Domain {
    /// Its name.
    pub name: String,
    /// The name of its image, a file in the folder `domains` of the boot archive.
    pub image: String,
    /// What it is granted.
    pub grants: Vec<Grant>,
    /// Text for the domain.
    pub options: String,
    /// Words of the kernel's command line that are added to the options. `name` adds `name` if the
    /// line has the word `name` or `name=...`; `name=` adds the whole word `name=...`.
    pub pass: Vec<String>,
    /// What it may use.
    pub limits: Limits,
    /// Whether whoever runs the machine gets a dump of what it had when it dies: `dump = "host"`.
    pub dump: bool,
    /// Whether a machine may lack its device, so that only the log says that it is not started:
    /// `device = "optional"`.
    pub is_optional: bool,
    /// The disk on whose demand it is started; `None`: at boot.
    pub disk: Option<String>,
    /// The line of its header.
    pub line: u32,
}

/// One grant of a domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The port of the image that it is for.
    pub port: String,
    /// Where it comes from.
    pub source: Source,
    /// Its line.
    pub line: u32,
}

/// What a domain may use. 0 stands for no limit of its own, or for the default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Private memory, in pages of 4,096 bytes.
    pub pages: u64,
    /// What it owns on the shared heap, in pages of 4,096 bytes.
    pub shared_pages: u64,
    /// Threads that it creates.
    pub threads: u32,
    /// Calls from other domains that are under way in it at a time.
    pub calls: u32,
    /// How long a call into it may run where the interface says nothing, in milliseconds.
    pub call_ms: u32,
    /// Memory of all kinds, in pages of 4,096 bytes.
    pub total_pages: u64,
    /// While it has less memory than this, in pages, it may use what the kernel keeps for recovery.
    pub reserve_pages: u64,
    /// What it may write to the log in the long run, in bytes per second.
    pub log_rate: u32,
    /// Its share of the processors, beside those of others.
    pub weight: u32,
    /// Its processor time in all, in percent of one processor.
    pub cpu_percent: u32,
    /// Processor time that its threads may be promised, in percent of one processor. 0: none.
    pub deadline_percent: u32,
    /// This many crashes in the window, and it stays down.
    pub restarts: u32,
    /// The window, in seconds.
    pub window_s: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            pages: 0,
            shared_pages: 0,
            threads: 0,
            calls: 0,
            call_ms: 0,
            total_pages: 0,
            reserve_pages: 0,
            log_rate: 0,
            weight: 0,
            cpu_percent: 0,
            deadline_percent: 0,
            restarts: 5,
            window_s: 10,
        }
    }
}

/// What a program may ask its personality for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Its name: the last component of its path.
    pub name: String,
    /// Names of [`Manifest::services`], or of grants that the personality uses for it.
    pub services: Vec<String>,
    /// The line of its header.
    pub line: u32,
}

impl Manifest {
    /// Reads a manifest and checks it.
    ///
    /// # Errors
    /// The first thing that is wrong: the format, an unknown table or key, a value of the wrong
    /// kind, a name that leads nowhere, a cycle of grants, two domains that must not
    /// [share](crate::sharing) a disk.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let mut manifest = Manifest {
            boot: Boot::default(),
            domains: Vec::new(),
            disks: Vec::new(),
            services: Vec::new(),
            programs: Vec::new(),
        };
        let sections = syntax::parse(text)?;
        let mut disks = Vec::new();
        for section in &sections {
            match section.path.as_slice() {
                [kind, name] if kind == "disk" => disks.push(disks::read(name, section)?),
                _ => manifest.add(section)?,
            }
        }
        manifest.check()?;
        manifest.add_disks(&disks)?;
        let boot = sections.iter().find(|section| section.path == ["boot"]);
        manifest.check_boot(boot.map_or(1, |section| section.line))?;
        order::start_order(&manifest)?;
        Ok(manifest)
    }

    fn add(&mut self, section: &Section) -> Result<(), Error> {
        let path: Vec<&str> = section.path.iter().map(String::as_str).collect();
        match path.as_slice() {
            ["boot"] => self.boot = boot(section)?,
            ["domain", name] => self.domains.push(domain(name, section)?),
            ["domain", name, part @ ("grants" | "limits")] => self.add_part(name, part, section)?,
            ["services"] => self.services = services(&section.entries)?,
            ["program", name] => self.programs.push(program(name, section)?),
            _ => {
                let expected = "expected [boot], [domain.NAME], [domain.NAME.grants], [domain.NAME.limits], [disk.NAME], [services] or [program.NAME]";
                return Err(Error::new(
                    section.line,
                    format!("{expected}, found [{}]", section.path.join(".")),
                ));
            }
        }
        Ok(())
    }

    fn add_part(&mut self, name: &str, part: &str, section: &Section) -> Result<(), Error> {
        let domain = self.domains.iter_mut().find(|domain| domain.name == name);
        let missing = || {
            Error::new(
                section.line,
                format!("[domain.{name}.{part}] stands before [domain.{name}]"),
            )
        };
        let domain = domain.ok_or_else(missing)?;
        match part {
            "grants" => domain.grants.extend(grants(&section.entries)?),
            _ => domain.limits = limits(&section.entries)?,
        }
        check_grants(domain)
    }

    fn check(&self) -> Result<(), Error> {
        for domain in &self.domains {
            let who = format!("domain `{}` is", domain.name);
            for grant in &domain.grants {
                self.check_grant(&who, grant)?;
            }
        }
        let mut services = self.services.iter();
        services.try_for_each(|service| self.check_grant("programs are", service))?;
        self.check_sharing()
    }

    /// `who` is the beginning of what is said of a name that leads nowhere.
    fn check_grant(&self, who: &str, grant: &Grant) -> Result<(), Error> {
        let Some(wanted) = grant.source.domain() else {
            return Ok(());
        };
        if self.index_of(wanted).is_some() {
            return Ok(());
        }
        let known: Vec<&str> = self
            .domains
            .iter()
            .map(|domain| domain.name.as_str())
            .collect();
        let message = format!(
            "{who} to be granted `{}` from domain `{wanted}`, but there is no [domain.{wanted}]; there are {}",
            grant.port,
            known.join(", ")
        );
        Err(Error::new(grant.line, message))
    }

    fn check_boot(&self, line: u32) -> Result<(), Error> {
        for (key, name) in [
            ("personality", &self.boot.personality),
            ("console", &self.boot.console),
        ] {
            let missing = name.as_ref().filter(|name| self.index_of(name).is_none());
            if let Some(name) = missing {
                return Err(Error::new(
                    line,
                    format!("boot {key} = \"{name}\", but there is no [domain.{name}]"),
                ));
            }
        }
        let personality = self
            .boot
            .personality
            .as_ref()
            .and_then(|name| self.index_of(name));
        let Some(personality) = personality.map(|index| &self[index]) else {
            return Ok(());
        };
        self.programs
            .iter()
            .try_for_each(|program| check_services(program, &self.services, personality))
    }
}

fn check_services(
    program: &Program,
    services: &[Grant],
    personality: &Domain,
) -> Result<(), Error> {
    let granted = |service: &String| {
        let mut known = services.iter().chain(&personality.grants);
        known.any(|grant| grant.port == *service)
    };
    match program.services.iter().find(|service| !granted(service)) {
        None => Ok(()),
        Some(service) => {
            let (program, line) = (&program.name, program.line);
            let message = format!(
                "program `{program}` is given `{service}`, which is neither in [services] nor granted to `{}`",
                personality.name
            );
            Err(Error::new(line, message))
        }
    }
}

fn boot(section: &Section) -> Result<Boot, Error> {
    let mut boot = Boot::default();
    for entry in &section.entries {
        let place = match entry.key.as_str() {
            "personality" => &mut boot.personality,
            "shell" => &mut boot.shell,
            "fallback" => &mut boot.fallback,
            "console" => &mut boot.console,
            _ => {
                return Err(unknown(
                    entry,
                    "[boot]",
                    "personality, shell, fallback, console",
                ));
            }
        };
        *place = Some(string(entry)?.to_owned());
    }
    Ok(boot)
}

fn domain(name: &str, section: &Section) -> Result<Domain, Error> {
    if matches!(name, "kernel" | "init") {
        return Err(Error::new(
            section.line,
            format!("`{name}` is not free as the name of a domain"),
        ));
    }
    let mut domain = Domain {
        name: short(name, section.line)?,
        image: name.to_owned(),
        grants: Vec::new(),
        options: String::new(),
        pass: Vec::new(),
        limits: Limits::default(),
        dump: false,
        is_optional: false,
        disk: None,
        line: section.line,
    };
    for entry in &section.entries {
        match entry.key.as_str() {
            "image" => domain.image = short(string(entry)?, entry.line)?,
            "grants" => domain.grants = grants(table(entry)?)?,
            "options" => domain.options = string(entry)?.to_owned(),
            "pass" => domain.pass = strings(entry)?.to_vec(),
            "limits" => domain.limits = limits(table(entry)?)?,
            "dump" => domain.dump = dump(entry)?,
            "device" => domain.is_optional = optional(entry)?,
            _ => {
                return Err(unknown(
                    entry,
                    &format!("[domain.{name}]"),
                    "image, grants, options, pass, limits, dump, device",
                ));
            }
        }
    }
    check_grants(&domain)?;
    Ok(domain)
}

/// Who gets a dump: so far there is one who can.
fn dump(entry: &Entry) -> Result<bool, Error> {
    match string(entry)? {
        "host" => Ok(true),
        other => Err(Error::new(
            entry.line,
            format!("a dump goes to the \"host\", and not to `{other}`"),
        )),
    }
}

/// Whether a machine may lack the device: that is all that can be said of it.
fn optional(entry: &Entry) -> Result<bool, Error> {
    match string(entry)? {
        "optional" => Ok(true),
        other => Err(Error::new(
            entry.line,
            format!("a device may be \"optional\", and not `{other}`"),
        )),
    }
}

/// Checks that the grants are not too many and that none comes twice.
fn check_grants(domain: &Domain) -> Result<(), Error> {
    let grants = &domain.grants;
    if let Some(grant) = grants.get(MOST_GRANTS) {
        let message = format!(
            "domain `{}` has {} grants; at most {MOST_GRANTS} can be given",
            domain.name,
            grants.len()
        );
        return Err(Error::new(grant.line, message));
    }
    let twice = (1..grants.len()).find(|&at| {
        grants[..at]
            .iter()
            .any(|other| other.port == grants[at].port)
    });
    match twice.map(|at| &grants[at]) {
        Some(grant) => Err(Error::new(
            grant.line,
            format!(
                "domain `{}` has the grant `{}` twice",
                domain.name, grant.port
            ),
        )),
        None => Ok(()),
    }
}

fn grants(entries: &[Entry]) -> Result<Vec<Grant>, Error> {
    let grant = |entry: &Entry| {
        let source =
            Source::parse(string(entry)?).map_err(|message| Error::new(entry.line, message))?;
        Ok(Grant {
            port: short(&entry.key, entry.line)?,
            source,
            line: entry.line,
        })
    };
    entries.iter().map(grant).collect()
}

/// The section `[services]`: any number of grants, for programs.
fn services(entries: &[Entry]) -> Result<Vec<Grant>, Error> {
    let services = grants(entries)?;
    match services.iter().find(|it| !it.source.is_for_programs()) {
        None => Ok(services),
        Some(service) => Err(Error::new(
            service.line,
            format!(
                "`{}` cannot be a service of programs: expected a service of the kernel or of `init`, `NAME` or `NAME.OFFER`",
                service.port
            ),
        )),
    }
}

fn limits(entries: &[Entry]) -> Result<Limits, Error> {
    let mut limits = Limits::default();
    for entry in entries {
        match entry.key.as_str() {
            "pages" => limits.pages = number(entry, i64::MAX as u64)?,
            "shared_pages" => limits.shared_pages = number(entry, i64::MAX as u64)?,
            "threads" => limits.threads = small(entry)?,
            "calls" => limits.calls = small(entry)?,
            "call_ms" => limits.call_ms = small(entry)?,
            "total_pages" => limits.total_pages = number(entry, i64::MAX as u64)?,
            "reserve_pages" => limits.reserve_pages = number(entry, i64::MAX as u64)?,
            "log_rate" => limits.log_rate = small(entry)?,
            "weight" => limits.weight = small(entry)?,
            "cpu_percent" => limits.cpu_percent = small(entry)?,
            "deadline_percent" => limits.deadline_percent = small(entry)?,
            "restarts" => limits.restarts = small(entry)?,
            "window_s" => limits.window_s = small(entry)?,
            _ => {
                return Err(unknown(
                    entry,
                    "limits",
                    "pages, shared_pages, total_pages, reserve_pages, threads, calls, call_ms, log_rate, weight, cpu_percent, deadline_percent, restarts, window_s",
                ));
            }
        }
    }
    Ok(limits)
}

fn program(name: &str, section: &Section) -> Result<Program, Error> {
    let mut program = Program {
        name: short(name, section.line)?,
        services: Vec::new(),
        line: section.line,
    };
    for entry in &section.entries {
        match entry.key.as_str() {
            "services" => program.services = strings(entry)?.to_vec(),
            _ => return Err(unknown(entry, &format!("[program.{name}]"), "services")),
        }
    }
    Ok(program)
}

pub(crate) fn unknown(entry: &Entry, place: &str, known: &str) -> Error {
    Error::new(
        entry.line,
        format!("{place} has no key `{}`; it has {known}", entry.key),
    )
}

fn wrong_kind(entry: &Entry, wanted: &str) -> Error {
    Error::new(
        entry.line,
        format!(
            "`{}` is {}, expected {wanted}",
            entry.key,
            entry.value.kind()
        ),
    )
}

pub(crate) fn string(entry: &Entry) -> Result<&str, Error> {
    match &entry.value {
        Value::String(text) => Ok(text),
        _ => Err(wrong_kind(entry, "a string")),
    }
}

fn strings(entry: &Entry) -> Result<&[String], Error> {
    match &entry.value {
        Value::Strings(texts) => Ok(texts),
        _ => Err(wrong_kind(entry, "an array of strings")),
    }
}

fn table(entry: &Entry) -> Result<&[Entry], Error> {
    match &entry.value {
        Value::Table(entries) => Ok(entries),
        _ => Err(wrong_kind(entry, "an inline table")),
    }
}

fn number(entry: &Entry, most: u64) -> Result<u64, Error> {
    let Value::Integer(value) = entry.value else {
        return Err(wrong_kind(entry, "an integer"));
    };
    let value = u64::try_from(value).ok().filter(|&value| value <= most);
    value.ok_or_else(|| {
        Error::new(
            entry.line,
            format!("`{}` must be between 0 and {most}", entry.key),
        )
    })
}

fn small(entry: &Entry) -> Result<u32, Error> {
    Ok(number(entry, u64::from(u32::MAX))? as u32)
}

pub(crate) fn short(name: &str, line: u32) -> Result<String, Error> {
    match name.len() {
        1..=LONGEST_NAME => Ok(name.to_owned()),
        _ => Err(Error::new(
            line,
            format!("the name `{name}` must have 1 to {LONGEST_NAME} bytes"),
        )),
    }
}

#[cfg(test)]
mod tests;
