//! The builtins about variables, parameters and switches.

use super::*;

impl<S: System> Shell<S> {
    /// XCU 2.14 `times`: user and system time of the shell, then of its children.
    pub(super) fn times(&mut self) -> Outcome {
        let [a, b, c, d] = self.system.times().map(|milliseconds| {
            let (seconds, rest) = (milliseconds / 1000, milliseconds % 1000);
            format!("{}m{}.{rest:03}s", seconds / 60, seconds % 60)
        });
        Ok(self.put(format!("{a} {b}\n{c} {d}\n").as_bytes()))
    }

    /// `export` and `readonly`.
    pub(super) fn mark(
        &mut self,
        arguments: &[Vec<u8>],
        before: &str,
        is_marked: fn(&Variable) -> bool,
        mark: fn(&mut Variable),
    ) -> Outcome {
        if arguments.is_empty() || arguments == [b"-p"] {
            return Ok(self.print_variables(before, is_marked));
        }
        for argument in arguments {
            let (name, value) = halves(argument);
            let name = variable_name(name)?;
            if let Some(value) = value {
                self.assign(name, value.to_vec())
                    .map_err(|error| (2, error))?;
            }
            mark(self.variables.entry(name.to_string()).or_default());
        }
        Ok(Flow::Next)
    }

    /// `set` alone lists the variables; `set -- a b` replaces the positional parameters; letters of
    /// switches have their opposites with `+`.
    pub(super) fn set(&mut self, arguments: &[Vec<u8>]) -> Outcome {
        if arguments.is_empty() {
            return Ok(self.print_variables("", |_| true));
        }
        let mut rest = arguments;
        while let Some((first, others)) = rest.split_first() {
            match first.as_slice() {
                b"--" => {
                    rest = others;
                    break;
                }
                b"-" => {
                    self.switches.trace = false;
                    rest = others;
                    if rest.is_empty() {
                        return Ok(Flow::Next);
                    }
                    break;
                }
                [sign @ (b'-' | b'+'), letters @ ..] if !letters.is_empty() => {
                    let on = *sign == b'-';
                    rest = others;
                    if letters == b"o" {
                        let name = others.first().map_or(&b""[..], |name| name);
                        rest = others.get(1..).unwrap_or_default();
                        match name {
                            b"" => return Ok(self.list_switches(on)),
                            name => self.switch_by_name(name, on)?,
                        }
                        continue;
                    }
                    if let Some(&wrong) = letters.iter().find(|it| !self.switch(**it, on)) {
                        return Err((2, format!("Illegal option -{}", char::from(wrong))));
                    }
                    if rest.is_empty() {
                        return Ok(Flow::Next);
                    }
                }
                _ => break,
            }
        }
        let only_switches = rest.is_empty() && arguments.iter().all(|it| it != b"--");
        if !only_switches {
            self.positional.truncate(1);
            self.positional.extend_from_slice(rest);
        }
        Ok(Flow::Next)
    }

    /// Switches what a letter of `set` stands for; `false` if it stands for nothing.
    pub(crate) fn switch(&mut self, letter: u8, on: bool) -> bool {
        match letter {
            b'e' => self.switches.exit_on_error = on,
            b'u' => self.switches.unset_is_error = on,
            b'x' => self.switches.trace = on,
            b'f' => self.switches.no_patterns = on,
            b'a' => self.switches.export_all = on,
            b'C' => self.switches.keep_files = on,
            // For a script; a person could not get out of it again.
            b'n' => self.switches.check_only = on && !self.interactive,
            // Job control and showing input: known, without effect.
            b'b' | b'm' | b'v' => {}
            _ => return false,
        }
        true
    }

    /// `set -o` for a person, `set +o` as commands.
    fn list_switches(&mut self, readable: bool) -> Flow {
        let on = self.flags();
        let line = |(name, letter): &(&str, u8)| match (readable, on.contains(letter)) {
            (true, on) => format!("{name:<16}{}\n", if on { "on" } else { "off" }),
            (false, true) => format!("set -o {name}\n"),
            (false, false) => format!("set +o {name}\n"),
        };
        let heading = if readable {
            "Current option settings\n"
        } else {
            ""
        };
        let text: String = NAMED_SWITCHES.iter().map(line).collect();
        self.put(&[heading.as_bytes(), text.as_bytes()].concat())
    }

    fn switch_by_name(&mut self, name: &[u8], on: bool) -> Result<(), (i32, String)> {
        let found = NAMED_SWITCHES.iter().find(|(it, _)| it.as_bytes() == name);
        match found {
            Some(&(_, letter)) => self.switch(letter, on),
            None => return Err((2, format!("Illegal option -o {}", lossy(name)))),
        };
        Ok(())
    }

    fn print_variables(&mut self, before: &str, which: fn(&Variable) -> bool) -> Flow {
        let mut text = Vec::new();
        for (name, variable) in self.variables.iter().filter(|(_, it)| which(it)) {
            text.extend_from_slice(before.as_bytes());
            text.extend_from_slice(name.as_bytes());
            if let Some(value) = &variable.value {
                text.push(b'=');
                text.extend_from_slice(crate::launch::quoted_one(value).trim_ascii_end());
            }
            text.push(b'\n');
        }
        self.put(&text)
    }

    pub(super) fn unset(&mut self, arguments: &[Vec<u8>]) -> Outcome {
        let (functions, names) = match arguments.split_first() {
            Some((option, rest)) if option == b"-f" => (true, rest),
            Some((option, rest)) if option == b"-v" => (false, rest),
            _ => (false, arguments),
        };
        for argument in names {
            let name = variable_name(argument)?;
            if functions {
                self.functions.remove(name);
                continue;
            }
            if self.variables.get(name).is_some_and(|it| it.read_only) {
                return Err((2, format!("{name}: is read only")));
            }
            self.variables.remove(name);
        }
        Ok(Flow::Next)
    }

    pub(super) fn shift(&mut self, arguments: &[Vec<u8>]) -> Outcome {
        let count = arguments
            .first()
            .map_or(Some(1), |argument| number(argument));
        let count = count.and_then(|count| usize::try_from(count).ok());
        match count.filter(|&count| count < self.positional.len().max(1)) {
            Some(count) => {
                self.positional.drain(1..=count);
                Ok(Flow::Next)
            }
            None => Err((2, "can't shift that many".to_string())),
        }
    }

    /// `trap TEXT CONDITION...`. Of the conditions only `EXIT` comes; the others are kept to be
    /// shown.
    pub(super) fn trap(&mut self, arguments: &[Vec<u8>]) -> Outcome {
        let arguments = match arguments.split_first() {
            Some((first, rest)) if first == b"--" => rest,
            _ => arguments,
        };
        let Some((action, conditions)) = arguments.split_first() else {
            let shown = self.traps.iter().map(|(number, text)| {
                let text = crate::launch::quoted_one(text);
                let name = condition_name(*number).unwrap_or_default();
                [b"trap -- ", text.as_slice(), name.as_bytes(), b"\n"].concat()
            });
            let shown: Vec<Vec<u8>> = shown.collect();
            return Ok(self.put(&shown.concat()));
        };
        // A number in front, or a condition alone: what was usual again.
        let usual = conditions.is_empty() || number(action).is_some_and(|number| number >= 0);
        let conditions = if usual { arguments } else { conditions };
        for condition in conditions {
            let Some(number) = condition_number(condition) else {
                self.complain(&format!("trap: {}: bad trap", lossy(condition)));
                self.status = 1;
                return Ok(Flow::Next);
            };
            match usual || action == b"-" {
                true => self.traps.remove(&number),
                false => self.traps.insert(number, action.clone()),
            };
        }
        Ok(Flow::Next)
    }
}

/// The names of what `set` switches, with their letters.
const NAMED_SWITCHES: [(&str, u8); 7] = [
    ("errexit", b'e'),
    ("noglob", b'f'),
    ("noexec", b'n'),
    ("xtrace", b'x'),
    ("noclobber", b'C'),
    ("allexport", b'a'),
    ("nounset", b'u'),
];
