//! What the programs on both systems are told, and how they do it.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::figures::{percentile, worst_deviation};
use crate::{System, work};

/// What is said to somebody who asks for something else.
pub const USAGE: &str = "
usage: threadbench alone [PART]           times threads that have the machine to themselves: all, or
                                          one of waking, messages, yields, fairness
       threadbench soon SECONDS           prints what the clock shows in so many seconds
       threadbench spin NAME N AT MS      N threads spin from AT on for so many milliseconds
       threadbench beside N AT            times waking from AT on, beside N threads that spin";

const SECOND: u64 = 1_000_000_000;
/// Numbers of threads that are looked at.
const THREADS: [usize; 3] = [1, 10, 1000];
/// Rounds of waking for each of [`THREADS`]: enough for a percentile.
const ROUNDS: [usize; 3] = [500, 200, 10];
/// Groups, senders in each, loops: 2, 20 and 1,000 threads, and some 20,000 messages.
const GROUPS: [(usize, usize, usize); 3] = [(1, 1, 20_000), (1, 10, 200), (25, 20, 2)];
/// How often threads give way altogether.
const YIELDS: usize = 50_000;
/// Threads that are woken beside those that spin.
const WOKEN: usize = 10;
/// How long threads spin to see what each gets, for each of [`THREADS`].
const WINDOWS: [u64; 3] = [SECOND / 2, 2 * SECOND, 5 * SECOND];
/// How often that is measured, for each of [`THREADS`]; what counts is the median. Threads are
/// compared by the work that they have done, so if the machine is emulated, and its host takes a
/// processor away for a while, that counts against whoever was on it.
const TIMES: [usize; 3] = [1, 7, 1];

/// A part of what needs no second program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Threads that one wakes.
    Waking,
    /// Messages among threads.
    Messages,
    /// Threads that give way.
    Yields,
    /// What each of threads that spin gets.
    Fairness,
}

impl Part {
    /// All of them, in their order.
    pub const ALL: [Part; 4] = [Part::Waking, Part::Messages, Part::Yields, Part::Fairness];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Part::Waking => "waking",
            Part::Messages => "messages",
            Part::Yields => "yields",
            Part::Fairness => "fairness",
        }
    }

    /// The part with that name.
    pub fn named(name: &str) -> Option<Self> {
        Part::ALL.into_iter().find(|part| part.name() == name)
    }

    /// How many lines with figures it tells.
    pub fn lines(self) -> usize {
        match self {
            Part::Waking => 2 * THREADS.len(),
            Part::Messages => GROUPS.len(),
            Part::Yields => THREADS.len(),
            Part::Fairness => THREADS.len() - 1,
        }
    }
}

/// What a program is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// All that needs no second program, or a part of it.
    Alone(Option<Part>),
    /// Prints the time in so many seconds.
    Soon(u64),
    /// So many threads spin from a time on for so many nanoseconds, under a name.
    Spin(String, usize, u64, u64),
    /// Times waking beside so many threads that spin, from a time on.
    Beside(usize, u64),
}

impl Command {
    /// What the words ask for, if they make sense.
    pub fn parse(words: &[&str]) -> Option<Self> {
        let number = |text: &&str| text.parse::<u64>().ok();
        let threads = |text: &&str| number(text).filter(|n| (1..=10_000).contains(n));
        Some(match words {
            ["alone"] => Command::Alone(None),
            ["alone", part] => Command::Alone(Some(Part::named(part)?)),
            ["soon", seconds] => Command::Soon(number(seconds)?),
            ["spin", name, count, at, milliseconds] => {
                let nanoseconds = number(milliseconds)?.checked_mul(1_000_000)?;
                let count = threads(count)? as usize;
                Command::Spin((*name).into(), count, number(at)?, nanoseconds)
            }
            ["beside", count, at] => Command::Beside(threads(count)? as usize, number(at)?),
            _ => return None,
        })
    }

    /// Does it, and tells each line of what is to be printed.
    ///
    /// # Errors
    /// If a thread does not start.
    pub fn run<S: System>(&self, tell: &mut impl FnMut(String)) -> Result<(), S::Error> {
        match self {
            Command::Alone(Some(part)) => alone::<S>(*part, tell),
            Command::Alone(None) => {
                let mut parts = Part::ALL.into_iter();
                parts.try_for_each(|part| alone::<S>(part, tell))
            }
            Command::Soon(seconds) => {
                tell(format!("{}", S::now() + seconds * SECOND));
                Ok(())
            }
            Command::Spin(name, count, at, nanoseconds) => {
                let (shares, begin) = work::spin::<S>(*count, *at, *nanoseconds)?;
                let sum: u64 = shares.iter().sum();
                match begin > *at {
                    true => tell("threadbench came too late to spin".into()),
                    false => tell(line("count", &format!("work of {name}"), sum)),
                }
                Ok(())
            }
            Command::Beside(count, at) => {
                if !work::wait_for::<S>(*at + SECOND / 2) {
                    tell("threadbench came too late".into());
                }
                let delays = work::wake_ups::<S>(WOKEN, ROUNDS[1])?;
                waking(tell, &format!("beside {count} spinning"), WOKEN, &delays);
                Ok(())
            }
        }
    }
}

fn alone<S: System>(part: Part, tell: &mut impl FnMut(String)) -> Result<(), S::Error> {
    match part {
        Part::Waking => {
            for (count, rounds) in THREADS.into_iter().zip(ROUNDS) {
                let delays = work::wake_ups::<S>(count, rounds)?;
                waking(tell, "idle", count, &delays);
            }
        }
        Part::Messages => {
            for (groups, fan, loops) in GROUPS {
                let time = work::messages::<S>(groups, fan, loops)?;
                let name = format!("message among {} threads", 2 * groups * fan);
                tell(line("ns", &name, time));
            }
        }
        Part::Yields => {
            for count in THREADS {
                let time = work::yields::<S>(count, YIELDS)?;
                tell(line("ns", &format!("yield of {}", threads(count)), time));
            }
        }
        Part::Fairness => {
            for ((count, window), times) in THREADS.into_iter().zip(WINDOWS).zip(TIMES).skip(1) {
                let name = format!("unfairness among {count} threads");
                tell(line("ppm", &name, unfairness::<S>(count, window, times)?));
            }
        }
    }
    Ok(())
}

/// The median of `times` measurements.
fn unfairness<S: System>(count: usize, window: u64, times: usize) -> Result<u64, S::Error> {
    let mut all = Vec::new();
    for _ in 0..times {
        let (shares, _) = work::spin::<S>(count, 0, window)?;
        all.push(worst_deviation(&shares));
    }
    all.sort_unstable();
    Ok(percentile(&all, 50))
}

/// The lines for the delays of waking, which are sorted.
fn waking(tell: &mut impl FnMut(String), where_to: &str, count: usize, delays: &[u64]) {
    for percent in [50, 99] {
        let name = format!("wake-up of {}, {where_to}, p{percent}", threads(count));
        tell(line("ns", &name, percentile(delays, percent)));
    }
}

fn threads(count: usize) -> String {
    match count {
        1 => "1 thread".into(),
        _ => format!("{count} threads"),
    }
}

fn line(unit: &str, name: &str, value: u64) -> String {
    format!("threadbench {unit} \"{name}\" {value}")
}

/// The unit, the name and the value in such a line as the programs print; `None` for any other
/// line.
pub fn parse_line(text: &str) -> Option<(&str, &str, f64)> {
    let (_, rest) = text.split_once("threadbench ")?;
    let (unit, rest) = rest.split_once(" \"")?;
    let (name, value) = rest.split_once("\" ")?;
    Some((unit, name, value.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Host;
    use alloc::vec::Vec;

    #[test]
    fn words_are_understood_or_refused() {
        let spin = Command::Spin("left".into(), 10, 7, 3_000_000);
        assert_eq!(
            Command::parse(&["spin", "left", "10", "7", "3"]),
            Some(spin)
        );
        assert_eq!(Command::parse(&["soon", "2"]), Some(Command::Soon(2)));
        assert_eq!(Command::parse(&["alone"]), Some(Command::Alone(None)));
        for part in Part::ALL {
            let one = Some(Command::Alone(Some(part)));
            assert_eq!(Command::parse(&["alone", part.name()]), one);
        }
        for wrong in [
            &["spin", "left", "0", "7", "3"][..],
            &["spin", "left", "10", "7", "18446744073709551615"],
            &["beside", "many", "7"],
            &["alone", "too"],
            &["alone", "waking", "yields"],
            &[],
        ] {
            assert_eq!(Command::parse(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn lines_are_read_back() {
        let text = line("ns", "wake-up of 1 thread, idle, p50", 1234);
        let expected = ("ns", "wake-up of 1 thread, idle, p50", 1234.0);
        assert_eq!(parse_line(&text), Some(expected));
        assert_eq!(parse_line("threadbench came too late"), None);
    }

    #[test]
    fn spinning_is_reported_or_said_to_be_late() {
        let mut lines = Vec::new();
        let at = Host::now() + SECOND / 2;
        let early = Command::Spin("a".into(), 2, at, 10_000_000);
        early
            .run::<Host>(&mut |line| lines.push(line))
            .expect("threads start");
        let late = Command::Spin("b".into(), 2, 0, 1);
        late.run::<Host>(&mut |line| lines.push(line))
            .expect("threads start");
        let first = parse_line(&lines[0]).expect("a figure");
        assert!(first.1 == "work of a" && first.2 > 0.0, "{lines:?}");
        assert_eq!(lines[1], "threadbench came too late to spin");
    }
}
