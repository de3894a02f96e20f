//! What the expansion of words asks of the shell.

use super::*;

impl<S: System> Environment for Shell<S> {
    fn variable(&self, name: &str) -> Option<Vec<u8>> {
        self.variables.get(name)?.value.clone()
    }

    fn set_variable(&mut self, name: &str, value: Vec<u8>) -> Result<(), ExpandError> {
        self.assign(name, value).map_err(ExpandError)
    }

    fn positional(&self, index: usize) -> Option<Vec<u8>> {
        self.positional.get(index).cloned()
    }

    fn count(&self) -> usize {
        self.positional.len().saturating_sub(1)
    }

    fn special(&self, parameter: &Parameter) -> Option<i64> {
        match parameter {
            Parameter::Status => Some(self.status.into()),
            Parameter::Pid => Some(self.first_pid.unwrap_or_else(|| self.system.pid()).into()),
            Parameter::Background => self.last_background.map(Into::into),
            _ => None,
        }
    }

    fn flags(&self) -> Vec<u8> {
        let switches = self.switches;
        let all = [
            (switches.exit_on_error, b'e'),
            (switches.no_patterns, b'f'),
            (switches.unset_is_error, b'u'),
            (switches.trace, b'x'),
            (switches.export_all, b'a'),
            (switches.keep_files, b'C'),
            (switches.check_only, b'n'),
            (self.interactive, b'i'),
        ];
        let on = all.into_iter().filter(|(on, _)| *on);
        on.map(|(_, letter)| letter).collect()
    }

    fn unset_is_error(&self) -> bool {
        self.switches.unset_is_error
    }

    fn no_patterns(&self) -> bool {
        self.switches.no_patterns
    }

    fn substitute(&mut self, command: &[u8]) -> Result<Vec<u8>, ExpandError> {
        // `$?` in the same command is still what it was.
        let before = self.status;
        let output = self.output_of(command).map_err(ExpandError);
        self.substituted = Some(core::mem::replace(&mut self.status, before));
        output
    }

    fn list(&mut self, directory: &[u8]) -> Vec<Vec<u8>> {
        self.system.list(directory)
    }
}
