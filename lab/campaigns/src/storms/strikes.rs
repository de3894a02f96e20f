//! What strikes the domains in a storm, and the shell commands that do it.

use std::fs;

use anyhow::Result;
use machine::{manifests, nvme};
use trefoil_gate::project::Project;
use workload::Random;

/// What happens to a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Strike {
    /// It crashes or is killed, and starts again
    Crash,
    /// Another image of it takes its place
    Update,
}

/// The driver that the system has its disk by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Driver {
    /// That of a virtio disk.
    Virtio,
    /// That of an NVMe controller.
    Nvme,
}

impl Driver {
    /// The name of its domain.
    pub fn name(self) -> &'static str {
        match self {
            Driver::Virtio => "virtio-blk",
            Driver::Nvme => "nvme",
        }
    }

    /// The manifest `text` with this driver.
    ///
    /// # Errors
    /// If that is not the default one.
    fn in_manifest(self, text: String) -> Result<String> {
        match self {
            Driver::Virtio => Ok(text),
            Driver::Nvme => nvme::manifest(&text),
        }
    }

    /// The default manifest, [patient](Self::patient).
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn patient_manifest(self, project: &Project, at: At) -> Result<String> {
        let text = fs::read_to_string(project.root.join("images/default.toml"))?;
        self.patient(text, at)
    }

    /// The manifest `text` with this driver and as many restarts of it, and of what else is
    /// struck, as it takes.
    ///
    /// # Errors
    /// If a domain is missing in it.
    pub fn patient(self, text: String, at: At) -> Result<String> {
        let text = self.in_manifest(text)?;
        let domains = [at.domains(), &[self.name()]].concat();
        manifests::with_limits(&text, &domains, "restarts = 100000")
    }
}

/// What is struck, at times the driver with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum At {
    /// The file system
    Ext2,
    /// The shadow in front of it
    Vfs,
    /// Now the one, now the other, now both
    All,
}

impl At {
    /// The domains.
    pub fn domains(self) -> &'static [&'static str] {
        match self {
            At::Ext2 => &["ext2"],
            At::Vfs => &["vfs"],
            At::All => &["ext2", "vfs"],
        }
    }
}

/// A strike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blow {
    /// So many milliseconds after the last one.
    pub pause: u64,
    /// Each of these is struck.
    pub domains: Vec<&'static str>,
}

impl Blow {
    /// One at random: the driver is among what it strikes, or not.
    pub fn draw(random: &mut Random, longest: u64, at: At, driver: Option<Driver>) -> Self {
        let pause = 10 + random.below(longest);
        let mut domains = at.domains().to_vec();
        let chosen = random.below(domains.len() as u64 + 1) as usize;
        if chosen < domains.len() {
            domains = vec![domains[chosen]];
        }
        domains.extend(driver.map(Driver::name));
        Blow { pause, domains }
    }

    /// The shell command that waits for it.
    fn wait(&self) -> String {
        format!("sleep {:.3}; ", self.pause as f64 / 1000.0)
    }
}

/// Shell commands that have a domain crash, or killed, by the program `how`. Where it has just
/// crashed and is not there, they wait for the next instance.
pub fn strike(how: &str, domain: &str) -> String {
    format!("until {how} {domain} 2> /dev/null; do sleep 0.01; done; ")
}

/// What the shell prints where an update failed.
pub const NOT_UPDATED: &str = "not updated";

/// Shell commands that replace a domain by its other image.
fn update(domain: &str) -> String {
    let image = match domain {
        "vfs" => "vfs-shadow",
        other => other,
    };
    format!("update {domain} /boot/updates/{image}-2 || echo {NOT_UPDATED}; ")
}

/// Shell commands that have each of these crash, the first perhaps be killed.
fn crash(domains: &[&str], random: &mut Random) -> String {
    let first = ["crash", "kill-domain"][random.below(2) as usize];
    let how = std::iter::once(first).chain(std::iter::repeat("crash"));
    let each = domains.iter().zip(how);
    each.map(|(domain, how)| strike(how, domain)).collect()
}

/// The pauses and strikes as the shell does them; `said` is printed after each.
pub fn script(strike: Strike, blows: &[Blow], random: &mut Random, said: &str) -> String {
    let one = |blow: &Blow| {
        let done: String = match strike {
            Strike::Crash => crash(&blow.domains, random),
            Strike::Update => blow.domains.iter().map(|domain| update(domain)).collect(),
        };
        format!("{}{done}echo {said}; ", blow.wait())
    };
    blows.iter().map(one).collect()
}

/// A job of the shell that has domains crash over and over, at most so many milliseconds after all
/// serve again, and says nothing.
pub fn without_end(count: usize, longest: u64, at: At, random: &mut Random) -> String {
    let one = |number: usize| {
        let driver = number.is_multiple_of(2).then_some(Driver::Virtio);
        let blow = Blow::draw(random, longest, at, driver);
        // What never served may be said to be down when it is struck, and a change may be given up
        // that two shadows die in.
        format!("ls / ; {}{}", blow.wait(), crash(&blow.domains, random))
    };
    let blows: String = (0..count).map(one).collect();
    format!("{{ while true; do {blows}done; }} > /dev/null 2>&1 &")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn default_manifest() -> String {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../images/default.toml");
        std::fs::read_to_string(file).expect("it is there")
    }

    #[test]
    fn both_drivers_may_start_as_often_as_it_takes() {
        for driver in [Driver::Virtio, Driver::Nvme] {
            let text = driver
                .patient(default_manifest(), At::Ext2)
                .expect("all are there");
            assert_eq!(text.matches("restarts = 100000").count(), 2, "{text}");
            assert!(text.contains(&format!("\"{}.respawn\"", driver.name())));
        }
    }

    #[test]
    fn a_manifest_without_the_file_system_is_refused() {
        assert!(
            Driver::Virtio
                .patient("[domain.other]\n".into(), At::All)
                .is_err()
        );
    }

    #[test]
    fn each_blow_is_told_and_takes_the_driver_along_where_it_says_so() {
        let mut random = Random::new(1, 1);
        let blow = |pause, domains: &[&'static str]| Blow {
            pause,
            domains: domains.to_vec(),
        };
        let blows = [blow(10, &["ext2", "nvme"]), blow(1500, &["ext2", "vfs"])];
        let line = script(Strike::Update, &blows, &mut random, "hit");
        assert_eq!(
            line,
            "sleep 0.010; update ext2 /boot/updates/ext2-2 || echo not updated; \
             update nvme /boot/updates/nvme-2 || echo not updated; echo hit; \
             sleep 1.500; update ext2 /boot/updates/ext2-2 || echo not updated; \
             update vfs /boot/updates/vfs-shadow-2 || echo not updated; echo hit; "
        );
        let line = script(Strike::Crash, &blows, &mut random, "hit");
        assert_eq!(line.matches(" ext2 ").count(), 2);
        assert_eq!(line.matches("until crash nvme ").count(), 1);
        assert_eq!(line.matches("echo hit").count(), 2);
    }

    #[test]
    fn a_job_without_end_strikes_as_often_as_it_says_and_is_silent() {
        let job = without_end(4, 200, At::All, &mut Random::new(3, 1));
        assert_eq!(
            job.matches("sleep 0.").count() - job.matches("sleep 0.01;").count(),
            4
        );
        assert_eq!(job.matches(" virtio-blk ").count(), 2);
        assert!(job.starts_with("{ while true; do ls / ; sleep "), "{job}");
        assert!(job.ends_with("done; done; } > /dev/null 2>&1 &"), "{job}");
    }

    #[test]
    fn all_are_struck_in_turn_with_the_driver_or_without() {
        let mut random = Random::new(7, 1);
        let blows: Vec<_> = (0..40)
            .map(|_| Blow::draw(&mut random, 100, At::All, Some(Driver::Virtio)))
            .collect();
        for domain in At::All.domains() {
            let with = [domain, "virtio-blk"];
            assert!(blows.iter().any(|blow| blow.domains == with), "{domain}");
        }
        let all = ["ext2", "vfs", "virtio-blk"];
        assert!(blows.iter().any(|blow| blow.domains == all));
        assert!(blows.iter().all(|blow| (10..110).contains(&blow.pause)));
        let alone = Blow::draw(&mut random, 100, At::Vfs, None);
        assert_eq!(alone.domains, ["vfs"]);
    }
}
