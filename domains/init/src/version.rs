//! Which image a domain is started from, and which one if that crashes too often.

use crate::images::Prepared;
use alloc::string::String;
use alloc::sync::Arc;

/// An image that came by an update.
pub struct Version {
    /// The image.
    pub image: Arc<Prepared>,
    /// Its options, instead of those of the manifest.
    pub options: Option<String>,
}

/// The versions of one domain. `None` is the image that the manifest names.
#[derive(Default)]
pub struct Versions {
    /// The one that instances are started from.
    pub present: Option<Version>,
    /// The one that served before, until it is gone back to.
    before: Option<Option<Version>>,
}

impl Versions {
    /// From now on instances are started from `version`.
    pub fn adopt(&mut self, version: Version) {
        self.before = Some(self.present.replace(version));
    }

    /// Goes back to the version before; `false` if there is none.
    pub fn fall_back(&mut self) -> bool {
        let Some(before) = self.before.take() else {
            return false;
        };
        self.present = before;
        true
    }
}
