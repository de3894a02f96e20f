//! The order in which domains start: a domain after all that its grants come from.
//!
//! A right to respawn counts as well as an offer: asking for a working instance may start that
//! domain while the asking one is starting, and if each of two could wait for the other to start,
//! both would for ever.

use crate::index::{ByDomain, DomainIndex};
use crate::model::Manifest;
use crate::syntax::Error;
use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

/// The domains that this one needs, as its grants name them.
pub fn needs(manifest: &Manifest, index: DomainIndex) -> Vec<DomainIndex> {
    let grants = manifest[index].grants.iter();
    let mut needs: Vec<_> = grants
        .filter_map(|grant| manifest.index_of(grant.source.domain()?))
        .collect();
    needs.sort_unstable();
    needs.dedup();
    needs
}

/// The domains in an order in which each comes after what it needs; among those that
/// could be next, the one that the file has first.
///
/// # Errors
/// A cycle, with the names of the domains on it.
pub fn start_order(manifest: &Manifest) -> Result<Vec<DomainIndex>, Error> {
    let count = manifest.domains.len();
    let needs = ByDomain::new(manifest.indices().map(|it| needs(manifest, it)).collect());
    let mut placed = ByDomain::new(vec![false; count]);
    let mut order = Vec::with_capacity(count);
    while order.len() < count {
        let ready =
            |&index: &DomainIndex| !placed[index] && needs[index].iter().all(|&need| placed[need]);
        let Some(next) = manifest.indices().find(ready) else {
            return Err(cycle(manifest, &needs, &placed));
        };
        placed[next] = true;
        order.push(next);
    }
    Ok(order)
}

/// Names a cycle among the domains that could not be placed. Each of them needs another one of
/// them, so following the needs from any comes back to one that was passed.
fn cycle(
    manifest: &Manifest,
    needs: &ByDomain<Vec<DomainIndex>>,
    placed: &ByDomain<bool>,
) -> Error {
    let mut path: Vec<DomainIndex> = Vec::new();
    let mut at = manifest
        .indices()
        .find(|&index| !placed[index])
        .expect("called when some are not placed");
    while !path.contains(&at) {
        path.push(at);
        at = *needs[at]
            .iter()
            .find(|&&need| !placed[need])
            .expect("what is not placed needs what is not placed");
    }
    let start = path
        .iter()
        .position(|&index| index == at)
        .expect("the loop ended because it is there");
    let names = path[start..]
        .iter()
        .chain([&at])
        .map(|&index| manifest[index].name.as_str());
    let names: Vec<&str> = names.collect();
    let message = format!(
        "the grants go in a circle, so none of these can start first: {}",
        names.join(" needs ")
    );
    Error::new(manifest[at].line, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_needed_comes_first() {
        let text = "[domain.c]\ngrants = { x = \"b.respawn\", y = \"a\" }\n[domain.b]\ngrants = { x = \"a.claim(1af4:1042)\" }\n[domain.d]\n[domain.a]";
        let manifest = Manifest::parse(text).expect("well-formed");
        let names: Vec<_> = start_order(&manifest)
            .expect("no cycle")
            .into_iter()
            .map(|at| manifest[at].name.as_str())
            .collect();
        assert_eq!(names, ["d", "a", "b", "c"]);
    }

    #[test]
    fn names_a_cycle() {
        let text = "[domain.x]\ngrants = { g = \"a\" }\n[domain.a]\ngrants = { g = \"b.respawn\" }\n[domain.b]\ngrants = { g = \"a\" }";
        let error = Manifest::parse(text).expect_err("a cycle");
        assert!(error.message.ends_with("a needs b needs a"), "{error}");
        assert_eq!(error.line, 3);
    }

    #[test]
    fn nothing_needs_itself() {
        let error =
            Manifest::parse("[domain.a]\ngrants = { g = \"a.respawn\" }").expect_err("a cycle");
        assert!(error.message.ends_with("a needs a"), "{error}");
    }
}
