//! Which page of an object is where: a tree of nodes with 64 children each, whose leaves have 64
//! pages. Who looks a page up takes no lock; who changes the tree has the object's.
//!
//! A leaf that has no page any more, and the nodes above it that then lead nowhere, serve others.
//! So who looks up compares the leaf's tenant with what he wants, and again when he holds the
//! page's frame: if it is the same, with the same count of users, he holds the right one.

use super::nodes::{Book, Node, Nodes};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use pages::{Entry, Frames, Pool};

/// Children of a node, and pages of a leaf.
const FAN: usize = 64;
/// Pages of a leaf.
pub(super) const LEAF: u64 = FAN as u64;
/// log2 of it.
const BITS: u32 = 6;
/// The greatest height: with it a tree has more blocks than 32 bits can count.
const HIGHEST: u32 = 5;

/// Pages that an object can have at most; a quarter of a petabyte.
pub const MOST_PAGES: u64 = 1 << 36;

/// 64 pages.
type Leaf<F> = [Entry<F>; FAN];
/// The numbers of the nodes below, plus one; 0: there is none.
type Inner = [AtomicU32; FAN];

/// The tree.
pub(super) struct Index<F: Frames> {
    /// Height in the upper half; in the lower one the topmost node, as in [`Inner`].
    root: AtomicU64,
    leaves: Nodes<Leaf<F>>,
    inner: Nodes<Inner>,
}

/// What of its nodes is in use. It lies under the object's lock.
#[derive(Default)]
pub(super) struct Books {
    leaves: Book,
    inner: Book,
}

/// Where a page is.
pub(super) struct Place<'a, F: Frames> {
    pub(super) entry: &'a Entry<F>,
    leaf: &'a Node<Leaf<F>>,
    tenant: u64,
}

impl<F: Frames> Place<'_, F> {
    /// Whether the entry is still that page's. Said while its frame is held: whether it was when it
    /// was found to be in the page.
    #[inline]
    pub(super) fn is_right(&self) -> bool {
        self.leaf.tenant() == self.tenant
    }
}

/// The leaf where a page was found last, for who looks for others near it.
pub(super) struct Near<'a, F: Frames> {
    /// Whose block it was then; its pages.
    leaf: Option<(u64, Leafed<'a, F>)>,
}

/// A leaf, its pages, and its tenant.
type Leafed<'a, F> = (&'a Node<Leaf<F>>, &'a Leaf<F>, u64);

impl<F: Frames> Near<'_, F> {
    /// None was found yet.
    pub(super) const fn nowhere() -> Self {
        Near { leaf: None }
    }
}

/// What a look-up found.
pub(super) enum Found<'a, F: Frames> {
    Here(Place<'a, F>),
    Nothing,
    /// The tree was just changed there.
    Changing,
}

/// No node is left for what is to be added.
pub(super) struct NoNode;

/// The block that a page is in, and its place there.
fn block(page: u64) -> (u64, usize) {
    (page >> BITS, (page % FAN as u64) as usize)
}

/// Which child of a node at `level` leads to `block`.
fn child(block: u64, level: u32) -> usize {
    (block >> (BITS * level)) as usize % FAN
}

/// Whether a tree of this height has a place for `block`.
fn covers(height: u32, block: u64) -> bool {
    block >> (BITS * height) == 0
}

/// The leaf's tenant that has `block`.
fn tenant_of(block: u64) -> u32 {
    (block + 1) as u32
}

fn root_word(height: u32, node: u32) -> u64 {
    u64::from(height) << 32 | u64::from(node)
}

impl<F: Frames> Index<F> {
    pub(super) const fn new() -> Self {
        Index {
            root: AtomicU64::new(0),
            leaves: Nodes::new(),
            inner: Nodes::new(),
        }
    }

    /// Height and topmost node.
    fn root(&self) -> (u32, u32) {
        let root = self.root.load(Ordering::Acquire);
        ((root >> 32) as u32, root as u32)
    }

    /// As [`find`](Self::find), but does not go the way to a leaf that was just found. It may have
    /// gone to others since: who asks whether the place [is right](Place::is_right) is told so, and
    /// a page that somebody has had a count on since before then has never left its leaf.
    #[inline(always)]
    pub(super) fn find_near<'a>(&'a self, near: &mut Near<'a, F>, page: u64) -> Found<'a, F> {
        let (block, at) = block(page);
        if let Some((of, (leaf, entries, tenant))) = near.leaf
            && of == block
        {
            let entry = &entries[at];
            return Found::Here(Place {
                entry,
                leaf,
                tenant,
            });
        }
        self.find_far(near, page)
    }

    /// Not inlined, so that where this way is not gone what is at hand stays in registers.
    #[inline(never)]
    fn find_far<'a>(&'a self, near: &mut Near<'a, F>, page: u64) -> Found<'a, F> {
        let found = self.find(page);
        if let Found::Here(place) = &found {
            let entries = place.leaf.body();
            let (of, _) = block(page);
            near.leaf = entries.map(|entries| (of, (place.leaf, entries, place.tenant)));
        }
        found
    }

    /// Looks for the page.
    #[inline(always)]
    pub(super) fn find(&self, page: u64) -> Found<'_, F> {
        let (block, at) = block(page);
        let (height, mut node) = self.root();
        if !covers(height, block) {
            return Found::Nothing;
        }
        for level in (0..height).rev() {
            let Some(inner) = self.below(node) else {
                return Found::Nothing;
            };
            node = inner[child(block, level)].load(Ordering::Acquire);
        }
        let Some(number) = node.checked_sub(1) else {
            return Found::Nothing;
        };
        let leaf = self.leaves.get(number);
        let Some((leaf, entries)) = leaf.and_then(|leaf| Some((leaf, leaf.body()?))) else {
            return Found::Nothing;
        };
        let tenant = leaf.tenant();
        if tenant as u32 != tenant_of(block) {
            return Found::Changing;
        }
        let entry = &entries[at];
        Found::Here(Place {
            entry,
            leaf,
            tenant,
        })
    }

    /// The children of the inner node `node`, if it is one.
    fn below(&self, node: u32) -> Option<&Inner> {
        self.inner.get(node.checked_sub(1)?)?.body()
    }

    /// The entry of `page`, whose leaf is made if it is not there. With the lock.
    ///
    /// # Errors
    /// [`NoNode`]: to be [`prepare`](Self::prepare)d, without the lock.
    pub(super) fn make(&self, books: &mut Books, page: u64) -> Result<&Entry<F>, NoNode> {
        let missing = self.missing(page);
        // So nothing is left half made.
        if books.leaves.left() < missing.leaves || books.inner.left() < missing.inner {
            return Err(NoNode);
        }
        let (block, at) = block(page);
        self.raise(books, block)?;
        let (height, mut node) = self.root();
        for level in (0..height).rev() {
            let inner = self.below(node).ok_or(NoNode)?;
            let cell = &inner[child(block, level)];
            node = cell.load(Ordering::Relaxed);
            if node == 0 {
                node = self.new_node(books, level, block)?;
                cell.store(node, Ordering::Release);
            }
        }
        if node == 0 {
            node = self.new_node(books, 0, block)?;
            self.root.store(root_word(0, node), Ordering::Release);
        }
        let leaf = node
            .checked_sub(1)
            .and_then(|number| self.leaves.get(number));
        let entries = leaf.and_then(Node::body).ok_or(NoNode)?;
        Ok(&entries[at])
    }

    /// A node for below an inner one at `level`: a leaf below level 0.
    fn new_node(&self, books: &mut Books, level: u32, block: u64) -> Result<u32, NoNode> {
        let number = match level {
            0 => self.leaves.take(&mut books.leaves, tenant_of(block)),
            _ => self.inner.take(&mut books.inner, 1),
        };
        number.map(|number| number + 1).ok_or(NoNode)
    }

    /// Makes the tree high enough for `block`.
    fn raise(&self, books: &mut Books, block: u64) -> Result<(), NoNode> {
        let (mut height, mut node) = self.root();
        while !covers(height, block) {
            if node != 0 {
                let above = self.new_node(books, 1, 0)?;
                let inner = self.below(above).ok_or(NoNode)?;
                inner[0].store(node, Ordering::Release);
                node = above;
            }
            height += 1;
            if node != 0 {
                self.root.store(root_word(height, node), Ordering::Release);
            }
        }
        if node == 0 && height > 0 {
            node = self.new_node(books, 1, 0)?;
            self.root.store(root_word(height, node), Ordering::Release);
        }
        Ok(())
    }

    /// Bytes that it takes at most to [`prepare`](Self::prepare) what is wanted.
    pub(super) fn cost(wanted: Wanted) -> usize {
        wanted.leaf.map_or(0, Nodes::<Leaf<F>>::cost) + wanted.inner.map_or(0, Nodes::<Inner>::cost)
    }

    /// Prepares what is [`wanted`](Self::wanted); bytes that this took, and `false` if there was no
    /// memory for all. Without the lock; [`is_prepared`](Self::is_prepared) tells the books.
    pub(super) fn prepare(&self, wanted: Wanted, pool: Pool<F>) -> (usize, bool) {
        let mut bytes = 0;
        if let Some(number) = wanted.leaf {
            let entries = || core::array::from_fn(|_| pool.entry());
            match self.leaves.prepare(number, entries) {
                None => return (bytes, false),
                Some(true) => bytes += Nodes::<Leaf<F>>::cost(number),
                Some(false) => {}
            }
        }
        if let Some(number) = wanted.inner {
            let children = || core::array::from_fn(|_| AtomicU32::new(0));
            match self.inner.prepare(number, children) {
                None => return (bytes, false),
                Some(true) => bytes += Nodes::<Inner>::cost(number),
                Some(false) => {}
            }
        }
        (bytes, true)
    }

    /// Nodes that are missing on the way to `page`. With the lock.
    fn missing(&self, page: u64) -> Missing {
        let (block, _) = block(page);
        let (height, mut node) = self.root();
        let high_enough = (height..HIGHEST).find(|&height| covers(height, block));
        let needed = high_enough.unwrap_or(HIGHEST);
        if node == 0 {
            return Missing {
                leaves: 1,
                inner: needed,
            };
        }
        if needed > height {
            return Missing {
                leaves: 1,
                inner: needed - height + needed - 1,
            };
        }
        for level in (0..height).rev() {
            let inner = self.below(node);
            node = inner.map_or(0, |inner| {
                inner[child(block, level)].load(Ordering::Relaxed)
            });
            if node == 0 {
                return Missing {
                    leaves: 1,
                    inner: level,
                };
            }
        }
        Missing {
            leaves: 0,
            inner: 0,
        }
    }

    /// What has to be prepared before `page` is added, one node of each kind at most. With the
    /// lock.
    pub(super) fn wanted(&self, books: &Books, page: u64) -> Wanted {
        let missing = self.missing(page);
        let leaf = books.leaves.left() < missing.leaves;
        let inner = books.inner.left() < missing.inner;
        Wanted {
            leaf: leaf.then(|| books.leaves.next()),
            inner: inner.then(|| books.inner.next()),
        }
    }

    /// What was wanted is there. With the lock.
    pub(super) fn is_prepared(books: &mut Books, wanted: Wanted) {
        if let Some(number) = wanted.leaf {
            books.leaves.is_ready(number);
        }
        if let Some(number) = wanted.inner {
            books.inner.is_ready(number);
        }
    }

    /// The pages of the leaf that `page` is in, if there is one. With the lock.
    pub(super) fn leaf(&self, page: u64) -> Option<&Leaf<F>> {
        match self.find(page - page % FAN as u64) {
            Found::Here(place) => place.leaf.body(),
            _ => None,
        }
    }

    /// Takes the leaf that `page` is in out of the tree, which has no page any more, and the nodes
    /// above that then lead nowhere. With the lock.
    pub(super) fn drop_leaf(&self, books: &mut Books, page: u64) {
        let (block, _) = block(page);
        let (height, root) = self.root();
        let mut path = [0; HIGHEST as usize + 1];
        let mut node = root;
        for level in (0..height).rev() {
            path[level as usize + 1] = node;
            let Some(inner) = self.below(node) else {
                return;
            };
            node = inner[child(block, level)].load(Ordering::Relaxed);
        }
        let Some(number) = node.checked_sub(1) else {
            return;
        };
        for level in 0..height {
            let above = path[level as usize + 1];
            let Some(inner) = self.below(above) else {
                return;
            };
            inner[child(block, level)].store(0, Ordering::Release);
            if inner.iter().any(|child| child.load(Ordering::Relaxed) != 0) {
                self.leaves.give(&mut books.leaves, number);
                return;
            }
            self.inner.give(&mut books.inner, above - 1);
        }
        self.root.store(0, Ordering::Release);
        self.leaves.give(&mut books.leaves, number);
    }

    /// The first page from `from` on whose leaf exists. With the lock.
    pub(super) fn next_leaf(&self, from: u64) -> Option<u64> {
        let (height, node) = self.root();
        let (block, at) = block(from);
        if node == 0 || !covers(height, block) {
            return None;
        }
        let found = self.first_from(node, height, block)?;
        Some(match found == block {
            true => found * FAN as u64 + at as u64,
            false => found * FAN as u64,
        })
    }

    /// The first block from `block` on that is below the node, which has this height.
    fn first_from(&self, node: u32, height: u32, block: u64) -> Option<u64> {
        let Some(level) = height.checked_sub(1) else {
            return (node != 0).then_some(block);
        };
        let inner = self.below(node)?;
        let first = child(block, level);
        let span = BITS * level;
        for (at, below) in inner.iter().enumerate().skip(first) {
            let below = below.load(Ordering::Relaxed);
            let from = match at == first {
                true => block,
                false => (block >> (span + BITS) << BITS | at as u64) << span,
            };
            let found = (below != 0).then(|| self.first_from(below, level, from));
            if let Some(found) = found.flatten() {
                return Some(found);
            }
        }
        None
    }
}

/// Nodes that are missing.
struct Missing {
    leaves: u32,
    inner: u32,
}

/// Nodes that are to be prepared.
#[derive(Clone, Copy)]
pub(super) struct Wanted {
    leaf: Option<u32>,
    inner: Option<u32>,
}
