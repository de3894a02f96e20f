//! The feature words of the superblock: which bits are known, what every bit is called, and what an
//! unknown one forbids (ext2 spec, "s_feature_compat" and the two after it).

/// The file system has a journal.
pub(crate) const COMPAT_HAS_JOURNAL: u32 = 0x4;
/// Room is reserved for more group descriptors.
pub(crate) const COMPAT_RESIZE_INODE: u32 = 0x10;
/// Directories may have an index.
pub(crate) const COMPAT_DIR_INDEX: u32 = 0x20;
/// The journal must be replayed first.
pub(crate) const INCOMPAT_RECOVER: u32 = 0x4;
/// Directories carry the kind of each entry.
pub(crate) const INCOMPAT_FILETYPE: u32 = 0x2;
/// Only some groups carry copies of the superblock.
pub(crate) const RO_SPARSE_SUPER: u32 = 0x1;
/// Files of 2 GiB and more exist.
pub(crate) const RO_LARGE_FILE: u32 = 0x2;
/// Exactly two groups, named in the superblock, carry copies of it.
pub(crate) const COMPAT_SPARSE_SUPER2: u32 = 0x200;

const INCOMPAT_KNOWN: u32 = INCOMPAT_FILETYPE | INCOMPAT_RECOVER;
const RO_KNOWN: u32 = RO_SPARSE_SUPER | RO_LARGE_FILE;

const INCOMPAT_NAMES: &[(u32, &str)] = &[
    (0x1, "compression"),
    (0x2, "filetype"),
    (0x4, "needs_recovery"),
    (0x8, "journal_dev"),
    (0x10, "meta_bg"),
    (0x40, "extent"),
    (0x80, "64bit"),
    (0x100, "mmp"),
    (0x200, "flex_bg"),
    (0x400, "ea_inode"),
    (0x1000, "dirdata"),
    (0x2000, "metadata_csum_seed"),
    (0x4000, "large_dir"),
    (0x8000, "inline_data"),
    (0x10000, "encrypt"),
    (0x20000, "casefold"),
];

const RO_NAMES: &[(u32, &str)] = &[
    (0x1, "sparse_super"),
    (0x2, "large_file"),
    (0x4, "btree_dir"),
    (0x8, "huge_file"),
    (0x10, "uninit_bg"),
    (0x20, "dir_nlink"),
    (0x40, "extra_isize"),
    (0x80, "snapshot"),
    (0x100, "quota"),
    (0x200, "bigalloc"),
    (0x400, "metadata_csum"),
    (0x800, "replica"),
    (0x1000, "read-only"),
    (0x2000, "project"),
    (0x4000, "shared_blocks"),
    (0x8000, "verity"),
    (0x10000, "orphan_present"),
];

/// There may be revoke blocks.
const JOURNAL_INCOMPAT_KNOWN: u32 = 0x1;
const JOURNAL_NAMES: &[(u32, &str)] = &[
    (0x1, "journal_incompat_revoke"),
    (0x2, "journal_64bit"),
    (0x4, "journal_async_commit"),
    (0x8, "journal_checksum_v2"),
    (0x10, "journal_checksum_v3"),
    (0x20, "journal_fast_commit"),
];
const JOURNAL_COMPAT_NAMES: &[(u32, &str)] = &[(0x1, "journal_checksum")];

/// Which word of the superblock a feature bit belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeatureClass {
    /// Who does not know the feature must not mount.
    Incompatible,
    /// Who does not know the feature must not write.
    ReadOnlyCompatible,
    /// Who does not know the feature must not replay or write the journal.
    Journal,
    /// A feature of the journal that changes what is written to it.
    JournalCompatible,
}

/// A set of feature bits of one class. Its `Display` lists them by the names that the host's tools
/// use, and bits without a name by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeatureSet {
    /// The word that the bits stand in.
    pub class: FeatureClass,
    /// The bits.
    pub bits: u32,
}

impl FeatureSet {
    /// The incompatible features among `bits` that this library does not know.
    pub(crate) fn unknown_incompatible(bits: u32) -> Option<Self> {
        Self::non_empty(FeatureClass::Incompatible, bits & !INCOMPAT_KNOWN)
    }

    /// The read-only-compatible features among `bits` that this library does not know.
    pub(crate) fn unknown_read_only(bits: u32) -> Option<Self> {
        Self::non_empty(FeatureClass::ReadOnlyCompatible, bits & !RO_KNOWN)
    }

    /// The features of a journal that this library does not know.
    pub(crate) fn unknown_journal(compat: u32, incompat: u32) -> Option<Self> {
        let unknown = incompat & !JOURNAL_INCOMPAT_KNOWN;
        Self::non_empty(FeatureClass::Journal, unknown)
            .or_else(|| Self::non_empty(FeatureClass::JournalCompatible, compat))
    }

    fn non_empty(class: FeatureClass, bits: u32) -> Option<Self> {
        (bits != 0).then_some(Self { class, bits })
    }

    fn names(&self) -> &'static [(u32, &'static str)] {
        match self.class {
            FeatureClass::Incompatible => INCOMPAT_NAMES,
            FeatureClass::ReadOnlyCompatible => RO_NAMES,
            FeatureClass::Journal => JOURNAL_NAMES,
            FeatureClass::JournalCompatible => JOURNAL_COMPAT_NAMES,
        }
    }
}

impl core::fmt::Display for FeatureSet {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let mut separator = "";
        for bit in (0..32)
            .map(|n| 1u32 << n)
            .filter(|bit| self.bits & bit != 0)
        {
            f.write_str(separator)?;
            separator = ", ";
            match self.names().iter().find(|(known, _)| *known == bit) {
                Some((_, name)) => f.write_str(name)?,
                None => write!(f, "unknown bit {bit:#x}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn known_features_are_accepted() {
        assert_eq!(FeatureSet::unknown_incompatible(INCOMPAT_FILETYPE), None);
        assert_eq!(FeatureSet::unknown_read_only(3), None);
        assert_eq!(FeatureSet::unknown_journal(0, 1), None);
    }

    #[test]
    fn unknown_features_are_listed_by_name_or_number() {
        let set = FeatureSet::unknown_incompatible(0x40 | 0x80 | 0x8000_0000).expect("unknown");
        assert_eq!(set.to_string(), "extent, 64bit, unknown bit 0x80000000");
        let set = FeatureSet::unknown_read_only(0x400 | 0x2).expect("unknown");
        assert_eq!(set.to_string(), "metadata_csum");
        let set = FeatureSet::unknown_journal(1, 0x13).expect("unknown");
        assert_eq!(set.to_string(), "journal_64bit, journal_checksum_v3");
        let set = FeatureSet::unknown_journal(1, 1).expect("unknown");
        assert_eq!(set.to_string(), "journal_checksum");
    }
}
