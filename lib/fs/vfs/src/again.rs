//! Looking again where others replace what has a name.
//!
//! A name is looked up, and then something is done with the number that it led to. In between
//! others may replace what has the name: the number is nobody's then, or another's, and whoever is
//! asked to act by it says that it is stale. That is not to say that there is no such name.

/// How often one looks. Each time in vain somebody else has replaced something, and who waits for a
/// lock with those who do may look many times.
pub const LOOKS: u32 = 1024;

/// How often one looks before those who change names are made to wait, where that can be done.
pub const PATIENCE: u32 = 4;

/// Has `attempt` made, which looks names up, until what it finds is not stale. It is told how often
/// it was made before.
///
/// # Errors
/// Those of `attempt`; `missing` where it was stale each time: whatever had the name, somebody has
/// removed it.
pub fn look_again<T, E>(
    is_stale: impl Fn(&E) -> bool,
    missing: E,
    mut attempt: impl FnMut(u32) -> Result<T, E>,
) -> Result<T, E> {
    for before in 0..LOOKS {
        match attempt(before) {
            Err(error) if is_stale(&error) => {}
            done => return done,
        }
    }
    Err(missing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;
    use alloc::vec::Vec;
    use core::cell::RefCell;

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Error {
        Missing,
        Stale,
    }

    /// A directory with one name, whose numbers are given out again at once.
    #[derive(Default)]
    struct Model {
        name: Option<u64>,
        /// Generation and content, by number.
        files: BTreeMap<u64, (u32, u32)>,
        lives: BTreeMap<u64, u32>,
        held: Vec<u64>,
        made: u32,
    }

    impl Model {
        /// Makes a file without a name, by the lowest number that is free.
        fn make(&mut self) -> u64 {
            let number = (1..).find(|number| !self.files.contains_key(number));
            let number = number.expect("there is no end of numbers");
            let life = self.lives.entry(number).or_default();
            *life += 1;
            self.made += 1;
            self.files.insert(number, (*life, self.made));
            number
        }

        /// A file takes the place of what has the name.
        fn replace(&mut self) {
            let new = self.make();
            if let Some(old) = self.name.replace(new)
                && !self.held.contains(&old)
            {
                self.files.remove(&old);
            }
        }

        fn look_up(&self) -> Result<(u64, u32), Error> {
            let number = self.name.ok_or(Error::Missing)?;
            Ok((number, self.files[&number].0))
        }

        /// Holds a number in this life; its content.
        fn hold(&mut self, number: u64, life: u32) -> Result<u32, Error> {
            match self.files.get(&number) {
                Some((now, content)) if *now == life => {
                    self.held.push(number);
                    Ok(*content)
                }
                _ => Err(Error::Stale),
            }
        }
    }

    /// Opens what has the name, while `meanwhile` is done between looking it up and holding it;
    /// what has been in it, and how often it was looked up.
    fn open(model: &RefCell<Model>, meanwhile: impl Fn(&mut Model)) -> (Result<u32, Error>, u32) {
        let mut looks = 0;
        let is_stale = |error: &Error| *error == Error::Stale;
        let opened = look_again(is_stale, Error::Missing, |before| {
            looks += 1;
            if before >= PATIENCE {
                // Nobody else does anything.
                let mut model = model.borrow_mut();
                let (number, life) = model.look_up()?;
                return model.hold(number, life);
            }
            let (number, life) = model.borrow().look_up()?;
            meanwhile(&mut model.borrow_mut());
            model.borrow_mut().hold(number, life)
        });
        (opened, looks)
    }

    #[test]
    fn what_is_replaced_is_looked_for_again() {
        for times in 0..PATIENCE {
            let model = RefCell::new(Model::default());
            model.borrow_mut().replace();
            let left = RefCell::new(times);
            let (opened, looks) = open(&model, |model| {
                if *left.borrow() > 0 {
                    *left.borrow_mut() -= 1;
                    // The number is another file's in between, and the same in the end.
                    model.replace();
                    model.replace();
                }
            });
            // What had the name when it was looked up last.
            assert_eq!((opened, looks), (Ok(1 + 2 * times), 1 + times));
        }
    }

    #[test]
    fn what_is_replaced_all_the_time_is_opened_all_the_same() {
        let model = RefCell::new(Model::default());
        model.borrow_mut().replace();
        let (opened, looks) = open(&model, |model| {
            model.replace();
            model.replace();
        });
        assert_eq!((opened, looks), (Ok(1 + 2 * PATIENCE), 1 + PATIENCE));
    }

    #[test]
    fn what_is_not_there_is_missing_at_once() {
        let model = RefCell::new(Model::default());
        assert_eq!(open(&model, |_| ()), (Err(Error::Missing), 1));
        let is_stale = |error: &Error| *error == Error::Stale;
        let stale = |_| Err::<(), _>(Error::Stale);
        assert_eq!(
            look_again(is_stale, Error::Missing, stale),
            Err(Error::Missing)
        );
    }
}
