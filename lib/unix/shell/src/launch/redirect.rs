//! Redirections: where the descriptors of one command lead.

use super::*;

impl<S: System> Shell<S> {
    #[inline(never)]
    pub(crate) fn close_all(&mut self, descriptors: &[u32]) {
        for &descriptor in descriptors {
            self.system.close(descriptor);
        }
    }

    /// Opens what `redirects` name; `None`, with nothing left open, after a message about what
    /// failed.
    pub(crate) fn redirect(&mut self, redirects: &[Redirect]) -> Option<Box<Opened>> {
        let mut opened = Box::new(Opened {
            descriptors: self.descriptors,
            to_close: Vec::new(),
        });
        for redirect in redirects {
            match self.redirect_one(redirect, &opened.descriptors) {
                Ok((descriptor, new)) => {
                    opened.descriptors[redirect.descriptor] = descriptor;
                    opened.to_close.extend(descriptor.filter(|_| new));
                }
                Err(message) => {
                    self.close_all(&opened.to_close);
                    self.complain(&message);
                    return None;
                }
            }
        }
        Some(opened)
    }

    /// Where one redirection leads, and whether that was opened for it.
    fn redirect_one(
        &mut self,
        redirect: &Redirect,
        now: &Descriptors,
    ) -> Result<(Option<u32>, bool), String> {
        let (word, mode) = match &redirect.target {
            Target::Same(word) => return self.same_descriptor(word, now).map(|it| (it, false)),
            Target::Document(document) => {
                let word = document.borrow().clone();
                let text = expand_one(&word, self).map_err(|error| error.to_string())?;
                return Ok((Some(self.system.document(&text)?), true));
            }
            Target::Read(word) => (word, OpenMode::Read),
            Target::Write(word) if self.switches.keep_files => (word, OpenMode::Create),
            Target::Write(word) | Target::Replace(word) => (word, OpenMode::Write),
            Target::Append(word) => (word, OpenMode::Append),
        };
        // Neither split nor matched with names (POSIX, 2.7).
        let path = expand_one(word, self).map_err(|error| error.to_string())?;
        let descriptor = self.system.open(&path, mode);
        let descriptor = descriptor.map_err(|error| alloc::format!("{}: {error}", lossy(&path)))?;
        Ok((Some(descriptor), true))
    }

    fn same_descriptor(&mut self, word: &Word, now: &Descriptors) -> Result<Option<u32>, String> {
        let text = expand_one(word, self).map_err(|error| error.to_string())?;
        match text.as_slice() {
            b"-" => Ok(None),
            [digit @ b'0'..=b'9'] => match now[usize::from(digit - b'0')] {
                Some(descriptor) => Ok(Some(descriptor)),
                None => Err(alloc::format!("{}: Bad file descriptor", lossy(&text))),
            },
            _ => Err(alloc::format!(
                "{}: only descriptors 0 to 9 can be redirected",
                lossy(&text)
            )),
        }
    }
}
