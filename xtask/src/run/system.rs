//! Which system `run` boots: Debian's programs on a disk of their packages, unless something else
//! is asked for. Where that disk is not to be had a person at the terminal gets `rv6`'s shell.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use machine::programs;

use super::Options;

/// A system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum System {
    /// The root is a disk of Debian's packages, the shell its bash.
    Debian,
    /// Trefoil's own shell and programs, on the personality `rv6`.
    Rv6,
    /// Static programs, on the files of the boot archive.
    Static,
    /// What a manifest says.
    Own,
}

/// What is booted, and the disk that was made or found for it.
pub(super) type Choice = (System, Option<PathBuf>);

impl Options {
    /// The system that these options ask for.
    pub(super) fn system(&self) -> System {
        match self {
            _ if self.manifest.is_some() => System::Own,
            _ if self.statics => System::Static,
            // The image for Debian's programs has one disk, which is its root.
            _ if self.rv6 || self.no_disk || !self.disk2.is_empty() => System::Rv6,
            _ => System::Debian,
        }
    }

    /// The disk that was named as the first one.
    fn first_disk(&self) -> Option<&Path> {
        self.disk.as_deref().or(self.nvme.as_deref())
    }
}

/// The system that is booted. `make` gets the default disk of Debian's packages.
///
/// # Errors
/// If a disk that was named has no shell, or `make` fails where nothing but Debian's programs would
/// do: `--linux` was said, or a line is to be run, which would mean something else elsewhere.
pub(super) fn choose(options: &Options, make: impl FnOnce() -> Result<PathBuf>) -> Result<Choice> {
    let system = options.system();
    if system != System::Debian {
        return Ok((system, None));
    }
    if let Some(disk) = options.first_disk() {
        programs::expect_shell(disk)?;
        return Ok((system, None));
    }
    match make() {
        Ok(disk) => Ok((system, Some(disk))),
        Err(error) if options.linux || options.exec.is_some() => {
            let hint = "no disk of Debian's packages; `--rv6` needs none";
            Err(error).context(hint)
        }
        Err(error) => {
            eprintln!("{}", fallen_back(&error));
            Ok((System::Rv6, None))
        }
    }
}

/// The one line that says why there is no bash.
fn fallen_back(error: &anyhow::Error) -> String {
    let why = error.to_string();
    let why = why.lines().next().unwrap_or_default();
    format!(
        "note: no Debian packages ({why}), so this is Trefoil's own shell; `cargo xtask run --linux` says more"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::bail;

    fn none() -> Result<PathBuf> {
        let failed: Result<PathBuf> = bail_with("E: no such host\nE: and more");
        failed.context("Debian's lists of packages are not to be had")
    }

    fn bail_with(text: &str) -> Result<PathBuf> {
        bail!("{text}")
    }

    #[test]
    fn bash_is_what_is_booted_unless_something_else_is_asked_for() {
        let usual = Options::default();
        let made = || Ok(PathBuf::from("/d"));
        let chosen = choose(&usual, made).expect("there is a disk");
        assert_eq!(chosen, (System::Debian, Some("/d".into())));
        type Change = fn(&mut Options);
        let others: [(Change, System); 5] = [
            (|it| it.rv6 = true, System::Rv6),
            (|it| it.no_disk = true, System::Rv6),
            (|it| it.disk2.push("/e".into()), System::Rv6),
            (|it| it.statics = true, System::Static),
            (|it| it.manifest = Some("/m".into()), System::Own),
        ];
        for (change, system) in others {
            let mut options = usual.clone();
            change(&mut options);
            let chosen = choose(&options, || bail_with("nobody asked for it"));
            assert_eq!(chosen.expect("nothing is made"), (system, None));
        }
    }

    #[test]
    fn without_packages_a_person_gets_another_shell_and_a_line_is_not_run_by_it() {
        let person = Options::default();
        let chosen = choose(&person, none).expect("there is another shell");
        assert_eq!(chosen, (System::Rv6, None));
        let told = fallen_back(&none().expect_err("none"));
        assert!(told.contains("lists of packages are not to be had") && !told.contains('\n'));
        let line = Options {
            exec: Some("ls".into()),
            ..Options::default()
        };
        let linux = Options {
            linux: true,
            ..Options::default()
        };
        for options in [line, linux] {
            let error = choose(&options, none).expect_err("refused");
            assert!(format!("{error:#}").contains("--rv6"), "{error:#}");
        }
    }

    #[test]
    fn a_disk_that_was_named_is_looked_at() {
        let options = Options {
            disk: Some("/dev/null".into()),
            ..Options::default()
        };
        assert!(choose(&options, none).is_err());
    }
}
