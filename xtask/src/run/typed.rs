//! Standard input that is no terminal: its lines are typed one by one, as a person would.

use std::io::{self, BufRead};
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::{followers, report};
use machine::qemu::{Ended, Machine};
use machine::session::Session;

/// How long a program may be silent before the next line is typed although there is no prompt: the
/// line may be meant for the program.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long we wait for a last prompt before the program in front is told that its input has ended.
const LAST_PATIENCE: Duration = Duration::from_secs(15);

/// Types the lines of standard input at the prompts of `machine`, which look like `prompt`; the
/// exit status.
///
/// # Errors
/// If it cannot be started or typed at.
pub(super) fn type_lines(
    mut machine: Machine,
    prompt: &'static str,
    limit: Duration,
    show_log: bool,
) -> Result<i32> {
    machine.words.push("panic=off".into());
    let mut session = Session::start(&machine, true)?.with_prompt(prompt);
    let mut followers = followers(&session.guest, show_log);
    let lines = lines_in_background();
    let deadline = Instant::now() + limit;
    let mut typed = Typed::Nothing;
    while !session.has_ended() && Instant::now() < deadline && typed != Typed::All {
        followers.copy(&session.guest);
        typed = match type_next(&mut session, &lines, typed) {
            Ok(typed) => typed,
            Err(_) if session.has_ended() => break,
            Err(error) => return Err(error),
        };
    }
    let ended = session.end_by(deadline).ok().flatten();
    followers.copy(&session.guest);
    match ended {
        Some(Ended::Off) => Ok(0),
        ended => report(ended, &session.guest, limit),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Typed {
    /// No line yet: the first is typed only at a prompt.
    Nothing,
    /// Some lines.
    Some,
    /// All lines, and the end of input for the program that did not give the terminal back.
    EndOfInput,
    /// All lines and `poweroff`.
    All,
}

/// Waits for a prompt and types what is next.
fn type_next(session: &mut Session, lines: &Receiver<Vec<u8>>, typed: Typed) -> Result<Typed> {
    let is_ready = session.settle(PATIENCE);
    if !is_ready && typed == Typed::Nothing {
        return Ok(typed);
    }
    match lines.try_recv() {
        Ok(line) => session.type_line(&line).map(|()| Typed::Some),
        Err(TryRecvError::Empty) => {
            thread::sleep(Duration::from_millis(20));
            Ok(typed)
        }
        Err(TryRecvError::Disconnected) if session.settle(LAST_PATIENCE) => {
            session.type_line(b"poweroff").map(|()| Typed::All)
        }
        Err(TryRecvError::Disconnected) if typed != Typed::EndOfInput => session
            .guest
            .send(&[END_OF_INPUT])
            .map(|()| Typed::EndOfInput),
        Err(TryRecvError::Disconnected) => Ok(typed),
    }
}

/// Ctrl-D.
const END_OF_INPUT: u8 = 4;

fn lines_in_background() -> Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        for line in io::stdin().lock().split(b'\n').map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    receiver
}
