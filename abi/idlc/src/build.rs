//! What the build scripts of `interfaces` and `kernel/proxies` do: compile the `.idl` files, write
//! one file into the build directory, and tell cargo when to do it again.

use crate::model::Model;
use crate::source;
use std::env;
use std::fs;
use std::io;
use std::path::Path;
use std::process::ExitCode;

/// Runs a build script: compiles the workspace at `root` (relative to the script's package) and
/// writes what `emit` makes of it to `file` in the build directory. Errors go to standard error, as
/// text for the user.
pub fn script(root: &str, file: &str, emit: fn(&Model) -> String) -> ExitCode {
    let root = Path::new(root);
    let model = match crate::load(root) {
        Ok(model) => model,
        Err(report) => return fail(&format!("\n{report}")),
    };
    // Only now: cargo shows these lines when the script fails, and runs a failed script again
    // anyway.
    if let Err(error) = watch(root) {
        return fail(&format!("idlc: {}: {error}", root.display()));
    }
    watch_missing(root, &model);
    let Some(folder) = env::var_os("OUT_DIR") else {
        return fail("idlc: OUT_DIR is not set; this is for build scripts");
    };
    let path = Path::new(&folder).join(file);
    match fs::write(&path, emit(&model)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&format!("idlc: {}: {error}", path.display())),
    }
}

fn fail(text: &str) -> ExitCode {
    eprintln!("{text}");
    ExitCode::FAILURE
}

/// Names the files to watch. Folders of domains are not watched as a whole: then every change of a
/// domain's source would build all domains again. A new `.idl` file is noticed by the `Cargo.toml`
/// beside it.
fn watch(root: &Path) -> io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    let mut paths = source::paths(root)?;
    paths.extend(source::manifests(root)?);
    paths.push(root.join("Cargo.lock"));
    paths.push(root.join("abi/interfaces"));
    for path in paths {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    Ok(())
}

/// A domain whose entry nobody declares yet: a warning, and the script runs again at every build
/// until it is there (cargo treats a file that does not exist as changed).
fn watch_missing(root: &Path, model: &Model) {
    for path in source::manifests(root).unwrap_or_default() {
        let text = fs::read_to_string(&path).unwrap_or_default();
        let Some(entry) = entry_of(&text) else {
            continue;
        };
        if model.entry(entry).is_none() {
            let missing = path.with_file_name(format!("{entry}.idl"));
            println!(
                "cargo::warning={}: entry \"{entry}\" is declared in no .idl file",
                path.display()
            );
            println!(
                "cargo::rerun-if-changed={}",
                missing.with_extension("idl.missing").display()
            );
        }
    }
}

/// The value of the line `entry = ".."` in a `Cargo.toml`.
fn entry_of(manifest: &str) -> Option<&str> {
    manifest.lines().find_map(|line| {
        let rest = line
            .trim()
            .strip_prefix("entry")?
            .trim_start()
            .strip_prefix('=')?
            .trim();
        rest.strip_prefix('"')?.split('"').next()
    })
}

#[cfg(test)]
mod tests {
    use super::entry_of;

    #[test]
    fn the_entry_of_a_manifest() {
        let manifest = "[package.metadata.trefoil]\nimage = \"ext2\"\n entry=\"ext2_fs\"\n";
        assert_eq!(entry_of(manifest), Some("ext2_fs"));
        assert_eq!(entry_of("entrypoint = \"x\"\nentry = 5\n"), None);
    }
}
