//! Programs that work on files of domains, and must not read the signing key: compilers, tests, the
//! hosted launcher.
//!
//! Nothing that a domain's author writes is meant to run while a system is built. Should it do so
//! all the same (a hole in the search, in cargo, in the compiler), or leave the hosted platform's
//! process, it must not find the key. So these programs start in a mount namespace in which an
//! empty file system lies over the key's folder, and without the privileges to take it away or to
//! look past it: the parent's files cannot be reached through `/proc` either, for that takes all of
//! the parent's privileges.
//!
//! It needs `unshare`, `mount` and `setpriv` (util-linux), and root or a kernel that lets everybody
//! make user namespaces. Where that is not to be had the programs run as they are, and it is said.
//! What this does not do: they may still write what their user may write, sources and this tool
//! included.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::keys;
use crate::project::Project;

/// How a folder can be hidden here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// We are root.
    Root,
    /// In a user namespace, of this user and group.
    User(u32, u32),
    /// Not at all.
    None,
}

/// What the shell that hides the folder is called; [`crate::tool`] looks for it to name the program
/// behind it.
pub const MARK: &str = "trefoil-confined";

/// What stands last before `--` and the program.
pub const LAST: &str = "--no-new-privs";

/// Hides the folder that is the first argument and starts what follows.
const HIDE: &str = "mount -t tmpfs -o size=4k,mode=700 none \"$1\" && shift && exec \"$@\"";

/// What root keeps: to work on files of others, as where the sources belong to another user. Not
/// among it: to mount, to trace, to open files by number, to make device files.
const KEPT: &str = "--bounding-set=-all,+chown,+dac_override,+fowner,+fsetid,+kill,+setgid,+setuid";

/// A command for `program`, which will not find the key of `project`.
pub fn command(project: &Project, program: &Path) -> Command {
    let folder = keys::folder(&project.out);
    let _ = fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&folder);
    hiding(way(), &folder, program.as_os_str())
}

/// How folders are hidden on this machine. Said once if they cannot be.
pub fn way() -> Way {
    static WAY: OnceLock<Way> = OnceLock::new();
    *WAY.get_or_init(|| {
        let way = find();
        if way == Way::None {
            eprintln!(
                "note: the signing key cannot be hidden from compilers and tests here \
                 (that takes unshare, mount and setpriv, and root or user namespaces)"
            );
        }
        way
    })
}

/// The first way that works.
fn find() -> Way {
    let Ok(own) = fs::metadata("/proc/self") else {
        return Way::None;
    };
    let user = Way::User(own.uid(), own.gid());
    let ways = if own.uid() == 0 {
        &[Way::Root, user][..]
    } else {
        &[user][..]
    };
    let works = ways.iter().find(|way| hides(**way));
    works.copied().unwrap_or(Way::None)
}

/// Whether `way` hides a folder with a file in it.
fn hides(way: Way) -> bool {
    let folder = std::env::temp_dir().join(format!("trefoil-hidden-{}", std::process::id()));
    let file = folder.join("file");
    let made = fs::create_dir_all(&folder).and_then(|()| fs::write(&file, "seen"));
    let mut look = hiding(way, &folder, OsStr::new("test"));
    look.args(["!", "-e"]).arg(&file);
    look.stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let hidden = made.is_ok() && look.status().is_ok_and(|status| status.success());
    let _ = fs::remove_dir_all(&folder);
    hidden
}

/// `program` as it runs when `folder` is hidden from it.
fn hiding(way: Way, folder: &Path, program: &OsStr) -> Command {
    let mut command = match way {
        Way::None => return Command::new(program),
        Way::Root => Command::new("unshare"),
        Way::User(..) => {
            let mut command = Command::new("unshare");
            command.args(["--user", "--map-root-user"]);
            command
        }
    };
    command
        .args(["--mount", "sh", "-c", HIDE, MARK])
        .arg(folder);
    if let Way::User(user, group) = way {
        // Back to who we were, in a namespace that has no say over the mounts.
        command.args(["unshare", "--user"]);
        command.arg(format!("--map-user={user}"));
        command.arg(format!("--map-group={group}"));
    }
    command.arg("setpriv");
    if way == Way::Root {
        command.args([KEPT, "--inh-caps=-all"]);
    }
    command.args([LAST, "--"]).arg(program);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `script` prints, which gets the path of a file in a folder that is hidden from it.
    fn printed(name: &str, script: &str) -> Option<String> {
        let folder = std::env::temp_dir().join(format!("trefoil-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("made");
        fs::write(folder.join("key"), "secret").expect("written");
        let found = (way() != Way::None).then(|| {
            let mut command = hiding(way(), &folder, OsStr::new("sh"));
            command.args(["-c", script, "sh"]).arg(folder.join("key"));
            let output = command.output().expect("the shell starts");
            String::from_utf8_lossy(&output.stdout).into_owned()
        });
        let content = fs::read_to_string(folder.join("key")).expect("still there");
        assert_eq!(content, "secret");
        fs::remove_dir_all(&folder).expect("removed");
        found
    }

    #[test]
    fn the_key_is_not_found_by_what_is_confined() {
        let script = "cat \"$1\"; umount \"${1%/*}\"; cat \"$1\"; cat /proc/$PPID/root\"$1\"; \
                      mount --bind / /mnt && cat /mnt\"$1\"; \
                      unshare --mount --user --map-root-user umount \"${1%/*}\" && cat \"$1\"; echo end";
        match printed("confined", script) {
            Some(text) => assert_eq!(text, "end\n"),
            None => eprintln!("folders cannot be hidden on this machine: nothing was tried"),
        }
    }

    #[test]
    fn what_is_confined_keeps_its_status_and_its_user() {
        if way() == Way::None {
            return;
        }
        let mut command = hiding(way(), Path::new("/tmp"), OsStr::new("sh"));
        let status = command.args(["-c", "exit 7"]).status();
        assert_eq!(status.expect("the shell starts").code(), Some(7));
        let own = fs::metadata("/proc/self").expect("we are").uid();
        let user = printed("user", "id -u").expect("there is a way");
        assert_eq!(user.trim(), own.to_string());
    }
}
