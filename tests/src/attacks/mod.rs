//! Sources of domains that must not build: each an attack, with the reason that must be given.

mod holes;
mod language;
mod manifests;
mod sources;

/// A hostile domain.
#[derive(Clone, Copy, Debug)]
pub struct Attack {
    /// The name of its test.
    pub name: &'static str,
    /// Its files, by path in its folder. Without a `Cargo.toml` it gets the usual one.
    pub files: &'static [(&'static str, &'static str)],
    /// Links in its folder: name, and where they lead.
    pub links: &'static [(&'static str, &'static str)],
    /// A part of what the build must say before it compiles anything; empty if the attack shows
    /// only later.
    pub before: &'static str,
    /// A part of what the build must say while it compiles the domain all the same; empty if it is
    /// not tried.
    pub compiling: &'static str,
}

/// An attack by one source file.
const fn attack(
    name: &'static str,
    files: &'static [(&'static str, &'static str)],
    before: &'static str,
    compiling: &'static str,
) -> Attack {
    Attack {
        name,
        files,
        links: &[],
        before,
        compiling,
    }
}

/// An attack by `src/lib.rs` alone.
macro_rules! source {
    ($name:literal, $text:expr, $before:expr, $compiling:expr) => {
        $crate::attacks::attack($name, &[("src/lib.rs", $text)], $before, $compiling)
    };
}

use source;

/// All of them.
pub fn all() -> Vec<Attack> {
    let rest = [sources::ATTACKS, language::ATTACKS, manifests::ATTACKS];
    [holes::ATTACKS, &rest.concat()].concat()
}

/// Those that the plain compiler takes: name and source of each crate.
pub fn plain() -> impl Iterator<Item = (&'static str, &'static str)> {
    let all = holes::ATTACKS.iter();
    all.flat_map(|attack| attack.files.iter().map(|(_, text)| (attack.name, *text)))
}
