//! Which domain of a manifest, and tables with a row for each.

use crate::model::{Domain, Manifest};
use alloc::vec::Vec;
use core::ops::{Index, IndexMut};

/// A domain of a manifest, by its place there. The number of an instance is something else: the
/// kernel gives it, and only once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DomainIndex(pub(crate) usize);

impl DomainIndex {
    /// Its place in the file, from 1.
    pub fn number(self) -> u32 {
        // A manifest of so many domains is no manifest that anybody has.
        u32::try_from(self.0).map_or(u32::MAX, |place| place.saturating_add(1))
    }
}

impl Manifest {
    /// All domains, in the order of the file.
    pub fn indices(&self) -> impl Iterator<Item = DomainIndex> + use<> {
        (0..self.domains.len()).map(DomainIndex)
    }

    /// The domain with this name.
    pub fn index_of(&self, name: &str) -> Option<DomainIndex> {
        let place = self.domains.iter().position(|domain| domain.name == name);
        place.map(DomainIndex)
    }
}

impl Index<DomainIndex> for Manifest {
    type Output = Domain;

    fn index(&self, index: DomainIndex) -> &Domain {
        &self.domains[index.0]
    }
}

/// Something for each domain of a manifest.
#[derive(Clone, Debug)]
pub struct ByDomain<T>(Vec<T>);

impl<T> ByDomain<T> {
    /// From what there is for each, in the order of the manifest.
    pub fn new(rows: Vec<T>) -> Self {
        ByDomain(rows)
    }

    /// What there is for each, in the order of the manifest.
    pub fn into_rows(self) -> impl Iterator<Item = T> {
        self.0.into_iter()
    }

    /// Each with its domain.
    pub fn iter(&self) -> impl Iterator<Item = (DomainIndex, &T)> {
        let rows = self.0.iter().enumerate();
        rows.map(|(place, row)| (DomainIndex(place), row))
    }
}

impl<T> Index<DomainIndex> for ByDomain<T> {
    type Output = T;

    fn index(&self, index: DomainIndex) -> &T {
        &self.0[index.0]
    }
}

impl<T> IndexMut<DomainIndex> for ByDomain<T> {
    fn index_mut(&mut self, index: DomainIndex) -> &mut T {
        &mut self.0[index.0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn a_row_for_each_domain() {
        let manifest = Manifest::parse("[domain.a]\n[domain.b]\n").expect("well-formed");
        let b = manifest.index_of("b").expect("there");
        let mut rows = ByDomain::new(vec![1, 2]);
        rows[b] += 5;
        assert_eq!((rows[b], manifest[b].name.as_str()), (7, "b"));
        let found: Vec<_> = rows.iter().map(|(index, row)| (index, *row)).collect();
        let all: Vec<_> = manifest.indices().collect();
        assert_eq!(found, [(all[0], 1), (b, 7)]);
        assert_eq!(manifest.index_of("c"), None);
    }
}
