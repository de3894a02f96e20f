//! A change that somebody asks for, with what can be made ready for it before it is his turn, and
//! seen to when others go on already.

use crate::action::{Action, Outcome, Target};
use crate::engine::Change;
use crate::front::{About, Front};
use crate::seen::{Begun, Place};

/// A change that is asked for. Who asked calls [`end`](Self::end) when he has his answer: until
/// then nobody remembers what the names lead to that it is about.
pub struct Order<T: Target> {
    /// What is to be done, until that is tried.
    pub(crate) action: Option<Change<T>>,
    /// The inodes that it is about.
    pub(crate) on: [u64; 2],
    /// Where its names are remembered.
    pub(crate) places: [Option<Place>; 2],
    /// What the host notes of it, as far as it was made before ([`Host::intend`]).
    ///
    /// [`Host::intend`]: crate::Host::intend
    pub record: Option<T::Data>,
    under_way: UnderWay,
}

/// What a change is about that has begun.
#[derive(Default)]
struct UnderWay {
    names: [Option<Begun>; 2],
    /// What the names lead to then, where that is known.
    lead_to: [Option<Option<u64>>; 2],
    inodes: [Option<(u64, Begun)>; 4],
    /// What a name is taken from.
    loses: Option<u64>,
}

impl<T: Target> Order<T> {
    /// Asks for a change about these inodes, clients' numbers.
    pub fn new(action: Change<T>, on: [u64; 2]) -> Self {
        let [first, second] = action.names();
        let place = |directory, name: Option<&T::Data>| Some(Place::new(directory, name?));
        Order {
            places: [place(on[0], first), place(on[1], second)],
            action: Some(action),
            on,
            record: None,
            under_way: UnderWay::default(),
        }
    }

    /// What is asked for, until it is tried.
    pub fn action(&self) -> Option<&Change<T>> {
        self.action.as_ref()
    }

    /// What the name leads to that it takes from something, if that is remembered.
    pub fn takes_from(&self, front: &Front<T>) -> Option<u64> {
        let [first, second] = &self.places;
        let place = match self.action()? {
            Action::Unlink { .. } => first,
            Action::Rename { .. } => second,
            _ => return None,
        };
        front.names.recall(place.as_ref()?).flatten()
    }

    /// What loses a name by it, if it was tried: an unlinked inode, or one that was replaced. It
    /// may have others.
    pub fn loses(&self) -> Option<u64> {
        self.under_way.loses
    }

    /// What it is about is not remembered from now on.
    pub(crate) fn begin(&mut self, front: &mut Front<T>, action: &Change<T>, about: &About) {
        let [one, other] = about.before;
        self.under_way.loses = match action {
            Action::Unlink { .. } => one,
            Action::Rename { .. } => other,
            _ => None,
        };
        let (places, names) = (self.places.iter(), self.under_way.names.iter_mut());
        for (place, begun) in places.zip(names) {
            *begun = place.as_ref().map(|place| front.names.begin(place));
        }
        let [first, second] = self.on;
        let second = Some(second).filter(|second| *second != first);
        let inodes = [Some(first), second, one, other];
        for (inode, begun) in inodes.into_iter().zip(&mut self.under_way.inodes) {
            *begun = inode.map(|inode| (inode, front.inodes.begin(inode)));
        }
    }

    /// It was made; the outcome in clients' numbers.
    pub(crate) fn note(&mut self, action: &Change<T>, about: &About, told: Outcome) {
        let [one, other] = about.before;
        self.under_way.lead_to = match (action, told) {
            (
                Action::Create { .. } | Action::Node { .. } | Action::Symlink { .. },
                Outcome::Made(made),
            ) => [Some(Some(made)), None],
            (Action::Link { .. }, _) => [Some(Some(self.on[1])), None],
            (Action::Unlink { .. } | Action::RemoveDirectory { .. }, _) => [Some(None), None],
            (Action::Rename { .. }, _) => [Some(None), Some(one)],
            (Action::Exchange { .. }, _) => [Some(other), Some(one)],
            // Of content, or an answer that makes no sense.
            _ => [None; 2],
        };
    }

    /// What it was about may be remembered again, and what its names lead to is.
    pub fn end(&mut self, front: &mut Front<T>) {
        let UnderWay {
            names,
            lead_to,
            inodes,
            ..
        } = &mut self.under_way;
        for ((place, begun), leads_to) in self.places.iter().zip(names).zip(lead_to) {
            if let (Some(place), Some(begun)) = (place, begun.take()) {
                front.names.end(place, begun, leads_to.take());
            }
        }
        for (inode, begun) in inodes.iter_mut().filter_map(Option::take) {
            front.inodes.end(inode, begun);
        }
    }
}
