//! Lanes of intervals that lie inside of each other or beside each other, never across.

/// Something that took some time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interval {
    /// When it began, in nanoseconds.
    pub from: u64,
    /// When it was over.
    pub to: u64,
    /// What it is.
    pub name: String,
    /// Which sort of thing.
    pub sort: &'static str,
    /// What else is known, by name.
    pub more: Vec<(&'static str, String)>,
}

/// Intervals in one lane, ordered so that those outside come first.
#[derive(Clone, Debug, Default)]
pub struct Lane {
    /// Its number among its like.
    pub number: u64,
    /// What people call it.
    pub name: String,
    /// What is in it.
    pub intervals: Vec<Interval>,
}

/// A step through a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// The interval begins.
    Begin(&'a Interval),
    /// The interval that began last and is not over is over, at this time.
    End(u64),
}

impl Lane {
    /// Puts the intervals into their order. Those that begin and end together stay in theirs.
    pub fn sort(&mut self) {
        let key = |interval: &Interval| (interval.from, std::cmp::Reverse(interval.to));
        self.intervals.sort_by_key(key);
    }

    /// Calls `visit` for each begin and end, in their order.
    ///
    /// # Errors
    /// Those of `visit`.
    pub fn walk<'a, E>(
        &'a self,
        mut visit: impl FnMut(Step<'a>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut open: Vec<u64> = Vec::new();
        for interval in &self.intervals {
            while let Some(to) = open.pop_if(|to| *to <= interval.from) {
                visit(Step::End(to))?;
            }
            visit(Step::Begin(interval))?;
            open.push(interval.to);
        }
        open.into_iter()
            .rev()
            .try_for_each(|to| visit(Step::End(to)))
    }
}
