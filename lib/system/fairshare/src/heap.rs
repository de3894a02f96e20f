//! Leftist heaps of indices: insert and take the least in logarithmic time, without memory of their
//! own.
//!
//! The links lie in the elements, which some [`Store`] keeps; a heap is no more than the index of
//! its root. So as many heaps as one likes share a store, and none needs room set aside.

/// No element.
pub const NIL: u32 = u32::MAX;

/// What an element is sorted by: the first number, and where that is equal, the second.
pub type Key = (u64, u64);

/// An element's place in a heap.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    /// What it is sorted by.
    pub key: Key,
    pub(crate) left: u32,
    pub(crate) right: u32,
    /// Steps to the nearest missing child.
    rank: u32,
}

impl Link {
    /// Whether its element is the only one of the heap whose root it is.
    pub(crate) fn is_alone(&self) -> bool {
        self.left == NIL && self.right == NIL
    }

    /// Of an element that is in no heap.
    pub const NONE: Self = Self {
        key: (0, 0),
        left: NIL,
        right: NIL,
        rank: 1,
    };
}

/// Where the elements are.
pub trait Store {
    /// The element's link.
    fn link(&self, index: u32) -> &Link;
    /// The element's link.
    fn link_mut(&mut self, index: u32) -> &mut Link;
}

/// Puts the element `index`, which is in no heap of this store, into the heap `root`.
pub fn push<S: Store>(store: &mut S, root: &mut u32, index: u32, key: Key) {
    *store.link_mut(index) = Link { key, ..Link::NONE };
    *root = meld(store, *root, index);
}

/// Takes the least element out of the heap `root`.
pub fn pop<S: Store>(store: &mut S, root: &mut u32) -> Option<u32> {
    let least = *root;
    if least == NIL {
        return None;
    }
    let Link { left, right, .. } = *store.link(least);
    *root = meld(store, left, right);
    Some(least)
}

/// One heap of two.
fn meld<S: Store>(store: &mut S, one: u32, other: u32) -> u32 {
    if one == NIL || other == NIL {
        return one.min(other);
    }
    let (one, other) = (root_of(store, one), root_of(store, other));
    join(store, one, other).0
}

/// The root of a heap and what it is sorted by.
type Root = (u32, Key);

fn root_of<S: Store>(store: &S, index: u32) -> Root {
    (index, store.link(index).key)
}

/// One heap of two that have elements: its root, and that one's rank. Goes down the right edges
/// alone, which have at most `log2(n + 1)` elements each, and asks for each of these once.
fn join<S: Store>(store: &mut S, one: Root, other: Root) -> (u32, u32) {
    let (top, below) = match other.1 < one.1 {
        true => (other.0, one),
        false => (one.0, other),
    };
    let Link { left, right, .. } = *store.link(top);
    let (melded, rank) = match right {
        NIL => (below.0, store.link(below.0).rank),
        _ => {
            let right = root_of(store, right);
            join(store, right, below)
        }
    };
    let left_rank = match left {
        NIL => 0,
        _ => store.link(left).rank,
    };
    let (left, right, rank) = match left_rank >= rank {
        true => (left, melded, rank + 1),
        false => (melded, left, left_rank + 1),
    };
    let link = store.link_mut(top);
    (link.left, link.right, link.rank) = (left, right, rank);
    (top, rank)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    struct Links(Vec<Link>);

    impl Store for Links {
        fn link(&self, index: u32) -> &Link {
            &self.0[index as usize]
        }
        fn link_mut(&mut self, index: u32) -> &mut Link {
            &mut self.0[index as usize]
        }
    }

    #[test]
    fn gives_back_in_order_whatever_the_order_of_pushes() {
        let mut seed = 7_u64;
        let mut store = Links(alloc::vec![Link::NONE; 3000]);
        let mut root = NIL;
        for index in 0..3000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            push(&mut store, &mut root, index, (seed >> 54, u64::from(index)));
        }
        let mut last = (0, 0);
        for _ in 0..3000 {
            let least = pop(&mut store, &mut root).expect("3000 were pushed");
            let key = store.link(least).key;
            assert!(key >= last, "{key:?} after {last:?}");
            last = key;
        }
        assert_eq!(pop(&mut store, &mut root), None);
    }

    #[test]
    fn ascending_pushes_make_no_long_right_edge() {
        let mut store = Links(alloc::vec![Link::NONE; 60_000]);
        let mut root = NIL;
        for index in 0..60_000 {
            push(&mut store, &mut root, index, (u64::from(index), 0));
        }
        let (mut at, mut steps) = (root, 0);
        while at != NIL {
            at = store.link(at).right;
            steps += 1;
        }
        assert!(steps <= 16, "{steps} elements on the right edge");
    }
}
