//! Where the sources are and where the build goes.

use std::env;
use std::path::{Path, PathBuf};

/// The folders of this clone.
#[derive(Clone, Debug)]
pub struct Project {
    /// The top of the sources.
    pub root: PathBuf,
    /// Where cargo builds for the host.
    pub target: PathBuf,
    /// Where everything goes that belongs to the system: kernel, archive, key, disk, logs.
    pub out: PathBuf,
}

impl Project {
    /// The clone that this tool was started in (by cargo), or else built in.
    pub fn here() -> Self {
        let built_in = || PathBuf::from(env!("CARGO_MANIFEST_DIR"));
        let package = env::var_os("CARGO_MANIFEST_DIR").map_or_else(built_in, PathBuf::from);
        let root = package.parent().map_or(package.clone(), Path::to_path_buf);
        let target =
            env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), |dir| root.join(dir));
        let out = target.join("trefoil");
        Project { root, target, out }
    }

    /// The bootable kernel.
    pub fn kernel(&self) -> PathBuf {
        self.out.join("trefoil")
    }

    /// The same kernel with its own tests and benchmarks in it.
    pub fn testing_kernel(&self) -> PathBuf {
        self.out.join("trefoil-testing")
    }

    /// The archive with the default manifest.
    pub fn archive(&self) -> PathBuf {
        self.out.join("trefoil.cpio")
    }

    /// The folder with the signed images, laid out as in the archive.
    pub fn images(&self) -> PathBuf {
        self.out.join("images")
    }

    /// `path` as it is called in messages: relative to the root if it is below it.
    pub fn relative<'a>(&self, path: &'a Path) -> &'a Path {
        path.strip_prefix(&self.root).unwrap_or(path)
    }
}
