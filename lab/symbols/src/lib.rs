//! Symbols of the builds that the kernel's log tells of, from the files that the compiler wrote:
//! the build leaves them in `symbols` by the builds of the images. `stacktext` puts stacks into
//! words with them.

mod compact;
mod files;
mod names;
mod table;

pub use compact::{Made, compact, compact_all, differs};
pub use files::{DebugFile, DebugFiles};
pub use stacktext::{Frame, note};

use std::path::{Path, PathBuf};

/// Reads the log of a system line by line.
pub type Reader = stacktext::Reader<DebugFiles>;

/// Who reads the log of a system that was built into `out` and boots `kernel`. `root` is the folder
/// of the sources.
pub fn reader(out: &Path, kernel: &Path, root: &Path) -> Reader {
    Reader::new(DebugFiles::new(out, kernel, root))
}

/// Where the build leaves what belongs to a kernel: the nearest folder above it that has `symbols`.
pub fn folder_of(kernel: &Path) -> Option<PathBuf> {
    let mut folders = kernel.ancestors().skip(1);
    let found = folders.find(|folder| folder.join(FOLDER).is_dir())?;
    Some(found.to_path_buf())
}

/// The name of the folder with the files with symbols.
pub const FOLDER: &str = "symbols";
