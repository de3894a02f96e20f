//! What strikes the domains in a storm, and the shell commands that do it.

use anyhow::Result;
use machine::{manifests, nvme};
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

    /// The manifest `text` with this driver and as many restarts of it, and of `domain`, as it
    /// takes.
    ///
    /// # Errors
    /// If a domain is missing in it.
    pub fn patient(self, text: String, domain: &str) -> Result<String> {
        let text = self.in_manifest(text)?;
        manifests::with_limits(&text, &[domain, self.name()], "restarts = 100000")
    }
}

/// A strike: how many milliseconds after the last one, and whether the driver is struck with the
/// file system.
pub type Blow = (u64, bool);

/// Shell commands that have a domain crash, or killed, by the program `how`. Where it has just
/// crashed and is not there, they wait for the next instance.
pub fn strike(how: &str, domain: &str) -> String {
    format!("until {how} {domain} 2> /dev/null; do sleep 0.01; done; ")
}

/// What the shell prints where an update failed.
pub const NOT_UPDATED: &str = "not updated";

/// Shell commands that replace a domain by its other image.
fn update(domain: &str) -> String {
    format!("update {domain} /boot/updates/{domain}-2 || echo {NOT_UPDATED}; ")
}

/// The pauses and strikes as the shell does them, at the domain and at times the driver with it;
/// `said` is printed after each.
pub fn script(
    strike: Strike,
    [domain, driver]: [&str; 2],
    blows: &[Blow],
    random: &mut Random,
    said: &str,
) -> String {
    let one = |(pause, with_driver): &Blow| {
        let seconds = *pause as f64 / 1000.0;
        let both = [Some(domain), with_driver.then_some(driver)];
        let both = both.into_iter().flatten();
        let done: String = match strike {
            Strike::Crash => {
                let how = ["crash", "kill-domain"][random.below(2) as usize];
                let how = [how, "crash"].into_iter();
                both.zip(how)
                    .map(|(domain, how)| self::strike(how, domain))
                    .collect()
            }
            Strike::Update => both.map(update).collect(),
        };
        format!("sleep {seconds:.3}; {done}echo {said}; ")
    };
    blows.iter().map(one).collect()
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
                .patient(default_manifest(), "ext2")
                .expect("all are there");
            assert_eq!(text.matches("restarts = 100000").count(), 2, "{text}");
            assert!(text.contains(&format!("\"{}.respawn\"", driver.name())));
        }
    }

    #[test]
    fn a_manifest_without_the_file_system_is_refused() {
        assert!(
            Driver::Virtio
                .patient("[domain.other]\n".into(), "vfs")
                .is_err()
        );
    }

    #[test]
    fn each_blow_is_told_and_takes_the_driver_along_where_it_says_so() {
        let mut random = Random::new(1, 1);
        let blows = [(10, true), (1500, false)];
        let line = script(Strike::Update, ["ext2", "nvme"], &blows, &mut random, "hit");
        assert_eq!(
            line,
            "sleep 0.010; update ext2 /boot/updates/ext2-2 || echo not updated; \
             update nvme /boot/updates/nvme-2 || echo not updated; echo hit; \
             sleep 1.500; update ext2 /boot/updates/ext2-2 || echo not updated; echo hit; "
        );
        let line = script(
            Strike::Crash,
            ["ext2", "virtio-blk"],
            &blows,
            &mut random,
            "hit",
        );
        assert_eq!(line.matches(" ext2 ").count(), 2);
        assert_eq!(line.matches("until crash virtio-blk ").count(), 1);
        assert_eq!(line.matches("echo hit").count(), 2);
    }
}
