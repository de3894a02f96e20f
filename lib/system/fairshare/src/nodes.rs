//! Room for the threads of one queue, in pieces, so that it grows without being moved.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::heap::{Key, Link, NIL, Store};

/// Nodes in a piece.
pub(crate) const PIECE: usize = 64;
/// Most pieces.
const MOST_PIECES: usize = 1024;

/// A thread in a queue.
pub(crate) struct Node<T> {
    link: Link,
    task: Option<T>,
}

/// A piece of room. Of so many that none is looked for beyond it.
pub(crate) type Piece<T> = Box<[Node<T>; PIECE]>;

/// A piece, or `None` for lack of memory.
pub(crate) fn piece<T>() -> Option<Piece<T>> {
    let mut nodes = Vec::new();
    nodes.try_reserve_exact(PIECE).ok()?;
    nodes.extend((0..PIECE).map(|_| Node {
        link: Link::NONE,
        task: None,
    }));
    nodes.into_boxed_slice().try_into().ok()
}

/// All nodes of a queue.
pub(crate) struct Nodes<T> {
    pieces: Vec<Piece<T>>,
    /// The first unused one; the others follow through `left`.
    free: u32,
}

impl<T> Nodes<T> {
    pub(crate) const fn new() -> Self {
        Self {
            pieces: Vec::new(),
            free: NIL,
        }
    }

    /// Threads that there is room for.
    pub(crate) fn capacity(&self) -> usize {
        self.pieces.len() * PIECE
    }

    /// Takes over a table of pieces, empty and with room for all that there will ever be.
    pub(crate) fn set_table(&mut self, table: Vec<Piece<T>>) -> Vec<Piece<T>> {
        match self.pieces.capacity() {
            0 => core::mem::replace(&mut self.pieces, table),
            _ => table,
        }
    }

    /// Room for a table of pieces.
    pub(crate) fn table() -> Option<Vec<Piece<T>>> {
        let mut table = Vec::new();
        table.try_reserve_exact(MOST_PIECES).ok()?;
        Some(table)
    }

    /// Adds a piece; gives it back if there are as many as there can be.
    pub(crate) fn add(&mut self, piece: Piece<T>) -> Result<(), Piece<T>> {
        if self.pieces.len() == self.pieces.capacity() {
            return Err(piece);
        }
        let first = self.capacity() as u32;
        self.pieces.push(piece);
        for index in first..first + PIECE as u32 {
            self.give(index);
        }
        Ok(())
    }

    fn node(&self, index: u32) -> &Node<T> {
        &self.pieces[index as usize / PIECE][index as usize % PIECE]
    }

    fn node_mut(&mut self, index: u32) -> &mut Node<T> {
        &mut self.pieces[index as usize / PIECE][index as usize % PIECE]
    }

    fn give(&mut self, index: u32) {
        let free = self.free;
        let link = &mut self.node_mut(index).link;
        *link = Link::NONE;
        link.left = free;
        self.free = index;
    }

    /// Gives the thread a node; gives it back if there is none.
    pub(crate) fn keep(&mut self, task: T) -> Result<u32, T> {
        if self.free == NIL {
            return Err(task);
        }
        let index = self.free;
        self.free = self.node(index).link.left;
        self.node_mut(index).task = Some(task);
        Ok(index)
    }

    /// Takes the thread out of a node that is in no heap.
    pub(crate) fn release(&mut self, index: u32) -> Option<T> {
        let task = self.node_mut(index).task.take();
        self.give(index);
        task
    }

    pub(crate) fn task(&self, index: u32) -> Option<&T> {
        self.node(index).task.as_ref()
    }

    pub(crate) fn key(&self, index: u32) -> Option<Key> {
        (index != NIL).then(|| self.node(index).link.key)
    }
}

impl<T> Store for Nodes<T> {
    fn link(&self, index: u32) -> &Link {
        &self.node(index).link
    }

    fn link_mut(&mut self, index: u32) -> &mut Link {
        &mut self.node_mut(index).link
    }
}
