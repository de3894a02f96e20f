//! What `/proc/PID` tells of a process (proc(5)).

use super::{Special, TEXT, names, number, told};
use crate::errno::{ENOENT, Error};
use crate::files::{Directory, Open};
use crate::process::Process;
use crate::walk::View;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use linux::files::{DIRECTORY, LINK};

/// The longest name of a command.
const COMMAND: usize = 15;

impl View<'_> {
    /// What stands at a path behind the number of a process.
    pub(super) fn of_process(
        &self,
        process: &Arc<Process>,
        path: &[&[u8]],
    ) -> Result<Special, Error> {
        let text = |text: String| Ok(Special::Text(text.into_bytes()));
        match path {
            [] => Ok(Special::Directory(all())),
            [b"exe"] => {
                let open = told(process).file.ok_or(ENOENT)?;
                Ok(Special::Magic(process.id, open))
            }
            [b"root"] => Ok(Special::Link(b"/".to_vec())),
            [b"cwd"] => {
                let fs = process.shown.lock().1.upgrade().ok_or(ENOENT)?;
                let stand = fs.directory.lock().clone();
                let open = Open::Directory(Directory::new(stand, Vec::new()));
                Ok(Special::Magic(process.id, Arc::new(open)))
            }
            [b"cmdline"] => Ok(Special::Text(told(process).line)),
            [b"comm"] => {
                let mut name = command(process);
                name.push(b'\n');
                Ok(Special::Text(name))
            }
            [b"mounts"] => {
                text("/dev/root / ext3 rw,relatime 0 0\nproc /proc proc rw,relatime 0 0\n".into())
            }
            [b"stat"] => Ok(Special::Text(self.stat_of(process))),
            [b"fd"] => Ok(Special::Directory(open_names(process))),
            [b"fd", name] => {
                let at = number(name).ok_or(ENOENT)?;
                let files = process.shown.lock().0.upgrade().ok_or(ENOENT)?;
                let files = files.lock();
                let slot = files.get(at as usize).and_then(Option::as_ref);
                let (open, _) = slot.ok_or(ENOENT)?;
                let open = open.clone();
                drop(files);
                Ok(Special::Magic(process.id, open))
            }
            _ => Err(ENOENT),
        }
    }

    fn stat_of(&self, process: &Arc<Process>) -> Vec<u8> {
        let [parent, group, session] = self.system.kin(process.id).unwrap_or_default();
        let state = if process.is_stopped() { 'T' } else { 'S' };
        let start = format!("{} (", process.id);
        let rest = format!(
            ") {state} {parent} {group} {session} 1281 {group} 0 0 0 0 0 0 0 0 0 20 0 1 0 0 0 0{}\n",
            " 0".repeat(28)
        );
        [start.as_bytes(), &command(process), rest.as_bytes()].concat()
    }
}

/// The name of a command: the last part of the program's path, cut off.
fn command(process: &Arc<Process>) -> Vec<u8> {
    let path = told(process).path;
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    name[..name.len().min(COMMAND)].to_vec()
}

fn open_names(process: &Arc<Process>) -> Vec<(Vec<u8>, u32)> {
    let files = process.shown.lock().0.upgrade().unwrap_or_default();
    let files = files.lock();
    let open = files.iter().enumerate().filter(|(_, slot)| slot.is_some());
    open.map(|(at, _)| (format!("{at}").into_bytes(), LINK))
        .collect()
}

fn all() -> Vec<(Vec<u8>, u32)> {
    names(&["exe", "root", "cwd"], LINK)
        .chain(names(&["cmdline", "comm", "mounts", "stat"], TEXT))
        .chain(names(&["fd"], DIRECTORY))
        .collect()
}
