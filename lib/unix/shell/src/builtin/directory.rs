//! `cd` and `pwd`.

use super::*;

impl<S: System> Shell<S> {
    pub(super) fn change_directory(&mut self, arguments: &[Vec<u8>]) -> Outcome {
        let (physical, arguments) = physical(arguments);
        let from = self.directory().ok();
        let (path, shown) = match arguments {
            [] => (
                self.variable("HOME").unwrap_or_else(|| b"/".to_vec()),
                false,
            ),
            [path] if path == b"-" => {
                let old = self.variable("OLDPWD");
                (old.ok_or((2, "OLDPWD not set".to_string()))?, true)
            }
            [path] => (path.clone(), false),
            _ => return Err((2, "too many arguments".to_string())),
        };
        let logical = match (physical, &from) {
            (false, Some(from)) => self.logical(from, &path),
            _ => None,
        };
        let changed = self
            .system
            .change_directory(logical.as_deref().unwrap_or(&path));
        changed.map_err(|error| (2, format!("{}: {error}", lossy(&path))))?;
        let now = match logical {
            Some(logical) => logical,
            None => self.system.working_directory().unwrap_or(path),
        };
        if let Some(from) = from {
            self.assign("OLDPWD", from).map_err(|error| (2, error))?;
        }
        self.assign("PWD", now.clone())
            .map_err(|error| (2, error))?;
        Ok(match shown {
            true => self.put(&[&now, &b"\n"[..]].concat()),
            false => Flow::Next,
        })
    }

    pub(super) fn print_directory(&mut self, arguments: &[Vec<u8>]) -> Outcome {
        let path = match physical(arguments).0 {
            true => self.system.working_directory(),
            false => self.directory(),
        };
        let path = path.map_err(|error| (2, error))?;
        Ok(self.put(&[&path, &b"\n"[..]].concat()))
    }

    /// The working directory as the user went there, through symbolic links perhaps: `PWD`, if that
    /// is right.
    fn directory(&mut self) -> Result<Vec<u8>, String> {
        match self.variable("PWD") {
            Some(path) if path.starts_with(b"/") && self.system.same_file(&path, b".") => Ok(path),
            _ => self.system.working_directory(),
        }
    }

    /// Where `path` leads from the directory `from`, with `..` taken for what stands before it
    /// (POSIX, `cd`, step 8). `None` if that is no directory: then the system may say what is
    /// wrong.
    fn logical(&mut self, from: &[u8], path: &[u8]) -> Option<Vec<u8>> {
        let whole = match path.starts_with(b"/") {
            true => path.to_vec(),
            false => [from, b"/", path].concat(),
        };
        let mut done: Vec<u8> = Vec::new();
        for name in whole.split(|&byte| byte == b'/') {
            match name {
                b"" | b"." => {}
                b".." => {
                    if self.system.lookup(&[&done, &b"/"[..]].concat()) != Lookup::Directory {
                        return None;
                    }
                    let parent = done.iter().rposition(|&byte| byte == b'/');
                    done.truncate(parent.unwrap_or(0));
                }
                name => done.extend_from_slice(&[b"/", name].concat()),
            }
        }
        if done.is_empty() {
            done.push(b'/');
        }
        Some(done)
    }
}

/// What `-L` and `-P` in front of the others say, the last of them, and the others.
fn physical(mut arguments: &[Vec<u8>]) -> (bool, &[Vec<u8>]) {
    let mut physical = false;
    while let Some((option, rest)) = arguments.split_first() {
        match option.as_slice() {
            b"-L" => physical = false,
            b"-P" => physical = true,
            b"--" => return (physical, rest),
            _ => break,
        }
        arguments = rest;
    }
    (physical, arguments)
}
