//! What cargo knows about the packages of the workspace.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::project::Project;
use crate::setup::Toolchain;
use crate::tool;

/// A package of the workspace, or one that such a package depends on.
#[derive(Clone, Debug, Default)]
pub struct Package {
    /// Cargo's unique id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// The folder with its `Cargo.toml`.
    pub folder: PathBuf,
    /// It is part of the workspace.
    pub is_ours: bool,
    /// What its `Cargo.toml` says it depends on.
    pub dependencies: Vec<Dependency>,
    /// What it builds: kind (`lib`, `bin`, `custom-build`, `proc-macro`, ...) and root file.
    pub targets: Vec<(String, PathBuf)>,
    /// If it is a domain: what `[package.metadata.trefoil]` says.
    pub domain: Option<Domain>,
}

/// An entry in a list of dependencies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dependency {
    /// The package's name.
    pub name: String,
    /// Its folder, if it is no registry's package.
    pub path: Option<PathBuf>,
    /// Which versions will do, as cargo says it: `^1.2`.
    pub version: String,
    /// `normal`, `dev` or `build`.
    pub kind: String,
}

/// How a domain is built and where its image goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Domain {
    /// The name of the image.
    pub image: String,
    /// The module of its entry in `interfaces::domains`.
    pub entry: String,
    /// Where the image goes in the archive.
    pub path: String,
    /// Another name under which the same code is signed once more, as something to try `update`
    /// with.
    pub update: Option<String>,
}

/// All packages that the workspace needs, its own first.
///
/// # Errors
/// If cargo fails.
pub fn all(project: &Project, toolchain: &Toolchain) -> Result<Packages> {
    read(
        toolchain
            .cargo(project)
            .args(["metadata", "--format-version", "1"]),
    )
}

/// The packages of the workspace alone. Quicker than [`all`], and without a resolved graph.
///
/// # Errors
/// If cargo fails.
pub fn ours(project: &Project, toolchain: &Toolchain) -> Result<Packages> {
    read(
        toolchain
            .cargo(project)
            .args(["metadata", "--format-version", "1", "--no-deps"]),
    )
}

fn read(command: &mut std::process::Command) -> Result<Packages> {
    let text = tool::output(command.stderr(std::process::Stdio::inherit()))?;
    parse(&serde_json::from_str(&text).context("cargo metadata does not print JSON")?)
}

/// A set of packages and, if known, which needs which.
#[derive(Clone, Debug, Default)]
pub struct Packages {
    /// The packages.
    pub list: Vec<Package>,
    /// Pairs of ids: the first needs the second at run time (no `dev` or `build` dependencies).
    needs: Vec<(String, String)>,
    /// Why the kernel links a library, by its name: `[workspace.metadata.trefoil.trusted]`.
    pub reasons: BTreeMap<String, String>,
}

impl Packages {
    /// A set of packages of which none needs another.
    pub fn of(list: Vec<Package>) -> Self {
        Packages {
            list,
            ..Packages::default()
        }
    }

    /// The package of the workspace called `name`.
    pub fn named(&self, name: &str) -> Option<&Package> {
        self.list
            .iter()
            .find(|package| package.is_ours && package.name == name)
    }

    /// The packages that are domains.
    pub fn domains(&self) -> impl Iterator<Item = (&Package, &Domain)> {
        self.list
            .iter()
            .filter_map(|package| Some((package, package.domain.as_ref()?)))
    }

    /// `from` and all that is linked with it.
    pub fn linked(&self, from: &Package) -> Vec<&Package> {
        let mut found = vec![from.id.as_str()];
        let mut at = 0;
        while at < found.len() {
            let from = found[at];
            for (_, needed) in self.needs.iter().filter(|(needer, _)| needer == from) {
                if !found.contains(&needed.as_str()) {
                    found.push(needed);
                }
            }
            at += 1;
        }
        found
            .iter()
            .filter_map(|id| self.list.iter().find(|package| package.id == *id))
            .collect()
    }
}

fn parse(metadata: &Value) -> Result<Packages> {
    let members: Vec<&str> = strings(&metadata["workspace_members"]);
    let mut list = Vec::new();
    for value in metadata["packages"].as_array().context("no packages")? {
        list.push(package(value, &members)?);
    }
    list.sort_by_key(|package| (!package.is_ours, package.folder.clone()));
    let mut needs = Vec::new();
    for node in metadata["resolve"]["nodes"]
        .as_array()
        .into_iter()
        .flatten()
    {
        let from = node["id"].as_str().unwrap_or_default();
        for dependency in node["deps"].as_array().into_iter().flatten() {
            let kinds = dependency["dep_kinds"].as_array();
            if kinds
                .into_iter()
                .flatten()
                .any(|kind| kind["kind"].is_null())
            {
                needs.push((
                    from.to_string(),
                    dependency["pkg"].as_str().unwrap_or_default().to_string(),
                ));
            }
        }
    }
    Ok(Packages {
        list,
        needs,
        reasons: reasons(&metadata["metadata"]["trefoil"]["trusted"]),
    })
}

fn reasons(trusted: &Value) -> BTreeMap<String, String> {
    let entries = trusted.as_object().into_iter().flatten();
    entries
        .filter_map(|(name, reason)| Some((name.clone(), reason.as_str()?.to_string())))
        .collect()
}

fn package(value: &Value, members: &[&str]) -> Result<Package> {
    let text = |key: &str| value[key].as_str().unwrap_or_default().to_string();
    let (id, name) = (text("id"), text("name"));
    let folder = Path::new(&text("manifest_path"))
        .parent()
        .map(Path::to_path_buf)
        .unwrap_or_default();
    let dependencies = value["dependencies"]
        .as_array()
        .into_iter()
        .flatten()
        .map(dependency)
        .collect();
    let targets = value["targets"]
        .as_array()
        .into_iter()
        .flatten()
        .flat_map(target)
        .collect();
    let is_ours = members.contains(&id.as_str());
    let domain = domain(&value["metadata"]["trefoil"])
        .with_context(|| format!("{}/Cargo.toml", folder.display()))?;
    Ok(Package {
        id,
        name,
        folder,
        is_ours,
        dependencies,
        targets,
        domain,
    })
}

fn dependency(value: &Value) -> Dependency {
    let name = value["name"].as_str().unwrap_or_default().to_string();
    let kind = value["kind"].as_str().unwrap_or("normal").to_string();
    let version = value["req"].as_str().unwrap_or_default().to_string();
    Dependency {
        name,
        kind,
        version,
        path: value["path"].as_str().map(PathBuf::from),
    }
}

fn target(value: &Value) -> Vec<(String, PathBuf)> {
    let file = PathBuf::from(value["src_path"].as_str().unwrap_or_default());
    strings(&value["kind"])
        .into_iter()
        .map(|kind| (kind.to_string(), file.clone()))
        .collect()
}

fn strings(value: &Value) -> Vec<&str> {
    value
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

fn domain(metadata: &Value) -> Result<Option<Domain>> {
    let Some(image) = metadata["image"].as_str() else {
        return Ok(None);
    };
    let entry = metadata["entry"]
        .as_str()
        .context("[package.metadata.trefoil] has `image` but no `entry`")?;
    let folder = match metadata["path"].as_str() {
        None => "domains".to_string(),
        Some(path) if path.split('/').all(is_plain_name) => match path.starts_with("boot/") {
            true => path.to_string(),
            false => format!("boot/{path}"),
        },
        Some(path) => bail!("[package.metadata.trefoil] `path = {path:?}` is not a plain path"),
    };
    let update = metadata["update"].as_str().map(str::to_string);
    if let Some(name) = update.as_deref().filter(|name| !is_plain_name(name)) {
        bail!("[package.metadata.trefoil] `update = {name:?}` is not a plain name");
    }
    if !is_plain_name(image) || !entry.chars().all(|c| c == '_' || c.is_ascii_alphanumeric()) {
        bail!("[package.metadata.trefoil]: {image:?} or {entry:?} is not a plain name");
    }
    let path = format!("{folder}/{image}");
    Ok(Some(Domain {
        image: image.to_string(),
        entry: entry.to_string(),
        path,
        update,
    }))
}

fn is_plain_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    !name.is_empty() && name.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn sample() -> Value {
        json!({
            "workspace_members": ["a", "b"],
            "packages": [
                { "id": "c", "name": "vetted", "manifest_path": "/registry/vetted/Cargo.toml" },
                { "id": "a", "name": "ls", "manifest_path": "/w/programs/ls/Cargo.toml",
                  "metadata": { "trefoil": { "image": "ls", "entry": "program_entry", "path": "bin" } },
                  "dependencies": [{ "name": "vetted", "kind": null }, { "name": "b", "kind": "dev", "path": "/w/lib/b" }],
                  "targets": [{ "kind": ["lib"], "src_path": "/w/programs/ls/src/lib.rs" }] },
                { "id": "b", "name": "b", "manifest_path": "/w/lib/b/Cargo.toml" },
            ],
            "resolve": { "nodes": [{ "id": "a", "deps": [
                { "pkg": "c", "dep_kinds": [{ "kind": null }] }, { "pkg": "b", "dep_kinds": [{ "kind": "dev" }] }] }] }
        })
    }

    #[test]
    fn packages_domains_and_what_is_linked() {
        let packages = parse(&sample()).expect("well-formed");
        let (package, domain) = packages.domains().next().expect("one domain");
        assert_eq!(
            (domain.path.as_str(), domain.entry.as_str()),
            ("boot/bin/ls", "program_entry")
        );
        let linked: Vec<_> = packages
            .linked(package)
            .iter()
            .map(|package| package.name.clone())
            .collect();
        assert_eq!(linked, ["ls", "vetted"]);
        assert_eq!(package.dependencies[1].kind, "dev");
        assert!(packages.named("vetted").is_none());
    }

    #[test]
    fn metadata_that_would_leave_the_build_folder_is_refused() {
        let domain = |path: &str, image: &str, entry: &str| {
            domain(&json!({ "image": image, "entry": entry, "path": path }))
        };
        assert!(domain("bin", "ls", "program_entry").is_ok());
        assert!(domain("../bin", "ls", "program_entry").is_err());
        let update = json!({ "image": "disk", "entry": "disk", "update": "../disk-2" });
        assert!(super::domain(&update).is_err());
        assert!(domain("bin", "../ls", "program_entry").is_err());
        assert!(domain("bin", "ls", "x!{}").is_err());
        assert!(super::domain(&json!({ "image": "ls" })).is_err());
        assert_eq!(super::domain(&Value::Null).expect("no domain"), None);
    }
}
