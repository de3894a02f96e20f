//! `cp [-r] SOURCE... TARGET`: copies files and, with `-r`, directories.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::vec::Vec;
use interfaces::{FileKind, Metadata, RVec};
use textutil::path::{base_name, is_inside, join};
use ulib::{Env, Error, Handle, Process, Program, RpcResult, Stop};

const USAGE: &str = "
usage: cp [-rLpv] SOURCE TARGET
       cp [-rLpv] SOURCE... DIRECTORY
Copies files, or what a symbolic link leads to. -r: also directories with all that is in them, and links as links; -L with
it: what they lead to. -p: with mode and time; -a: as -r and -p; -v: tells what is copied.";
/// How deep `-r` goes.
const MOST_DEPTH: usize = 100;

/// The entry of the program.
///
/// # Errors
/// There is no memory for it.
pub fn start(process: Handle<dyn Process>) -> RpcResult<Handle<dyn Program>> {
    ulib::program(process, main)
}

/// How to copy.
#[derive(Clone, Copy)]
struct Manner {
    /// Directories, too.
    recursive: bool,
    /// What symbolic links lead to.
    follow: bool,
    /// With mode and time.
    keep: bool,
    /// Tell what is copied.
    tell: bool,
}

/// A copy that is still to be made.
struct Job {
    from: Vec<u8>,
    to: Vec<u8>,
    depth: usize,
}

fn main(env: &Env) -> Result<i32, Stop> {
    let options = env.options(USAGE, "rRafpvL")?;
    let recursive = ['r', 'R', 'a']
        .into_iter()
        .any(|letter| options.has(letter));
    let manner = Manner {
        recursive,
        follow: !recursive || options.has('L'),
        keep: options.has('p') || options.has('a'),
        tell: options.has('v'),
    };
    let Some((target, sources)) = options
        .operands
        .split_last()
        .filter(|(_, it)| !it.is_empty())
    else {
        return Err(Stop::usage(
            "a source and a target are needed; `cp --help` says more",
        ));
    };
    let into = is_directory(&env.metadata(target, true));
    if sources.len() > 1 && !into {
        return Err(Stop::about(target, Error::text("Not a directory")));
    }
    for source in sources {
        let to = match into {
            true => join(target, base_name(source)),
            false => target.clone(),
        };
        if let Err((path, error)) = copy_tree(env, source, to, manner) {
            env.fail(&path, &error);
        }
    }
    Ok(env.status())
}

fn is_directory(metadata: &Result<Metadata, Error>) -> bool {
    matches!(
        metadata,
        Ok(Metadata {
            kind: FileKind::Directory,
            ..
        })
    )
}

type Done<T> = Result<T, (Vec<u8>, Error)>;

/// Copies `source` and all in it to `to`. Errors inside a directory are reported and passed over.
fn copy_tree(env: &Env, source: &[u8], to: Vec<u8>, manner: Manner) -> Done<()> {
    if is_directory(&env.metadata(source, manner.follow)) {
        let error = match manner.recursive {
            false => Some("Is a directory; -r copies directories"),
            true if is_inside(&to, source) => Some("cannot be copied into itself"),
            true => None,
        };
        if let Some(error) = error {
            return Err((source.to_vec(), Error::text(error)));
        }
    }
    let mut jobs = Vec::from([Job {
        from: source.to_vec(),
        to,
        depth: 0,
    }]);
    let mut first = None;
    let mut directories = Vec::new();
    while let Some(job) = jobs.pop() {
        match copy(env, &job, manner, &mut directories) {
            Ok(more) => jobs.extend(more),
            Err(failure) if job.depth == 0 => first = Some(failure),
            Err((path, error)) => env.fail(&path, &error),
        }
    }
    // What was made in them has changed their times.
    for (path, metadata) in directories.iter().rev() {
        if let Err((path, error)) = keep(env, path, metadata) {
            env.fail(&path, &error);
        }
    }
    first.map_or(Ok(()), Err)
}

/// Makes one copy; for a directory, what is still to be copied into it.
fn copy(
    env: &Env,
    job: &Job,
    manner: Manner,
    directories: &mut Vec<(Vec<u8>, Metadata)>,
) -> Done<Vec<Job>> {
    let at = |path: &[u8]| {
        let path = path.to_vec();
        move |error| (path, error)
    };
    let metadata = env.metadata(&job.from, manner.follow);
    let metadata = metadata.map_err(at(&job.from))?;
    if manner.tell {
        let line = [b"'", job.from.as_slice(), b"' -> '", &job.to, b"'\n"].concat();
        env.write(&line)
            .map_err(|_| (job.to.clone(), Error::text("nobody reads what is told")))?;
    }
    match metadata.kind {
        FileKind::Directory if job.depth > MOST_DEPTH => {
            Err((job.from.clone(), Error::text("nested too deep")))
        }
        FileKind::Directory => {
            let made = env.with_path(&job.to, |process, path| process.make_directory(path));
            match made {
                Err(error)
                    if !(error.is_exists() && is_directory(&env.metadata(&job.to, true))) =>
                {
                    return Err((job.to.clone(), error));
                }
                _ => {}
            }
            if manner.keep {
                directories.push((job.to.clone(), metadata));
            }
            let entries = env.read_directory(&job.from).map_err(at(&job.from))?;
            let inside = entries
                .into_iter()
                .filter(|entry| entry.name != b"." && entry.name != b"..");
            let jobs = inside.map(|entry| Job {
                from: join(&job.from, &entry.name),
                to: join(&job.to, &entry.name),
                depth: job.depth + 1,
            });
            Ok(jobs.collect())
        }
        FileKind::Regular => {
            if env
                .metadata(&job.to, true)
                .is_ok_and(|other| is_same(&metadata, &other))
            {
                return Err((
                    job.to.clone(),
                    Error::text("is the same file as the source"),
                ));
            }
            copy_file(env, job, &metadata)?;
            if manner.keep {
                keep(env, &job.to, &metadata)?;
            }
            Ok(Vec::new())
        }
        FileKind::Symlink => copy_link(env, job).map(|()| Vec::new()),
        _ => Err((job.from.clone(), Error::text("not a file or directory"))),
    }
}

/// Whether both describe one file. There is no device number: two files on two file systems with
/// the same number, length, room and time of change would be taken for one.
fn is_same(one: &Metadata, other: &Metadata) -> bool {
    let key = |it: &Metadata| (it.inode, it.size, it.allocated, it.modified, it.links);
    key(one) == key(other)
}

/// Gives a copy the mode and the time of its original.
fn keep(env: &Env, path: &[u8], metadata: &Metadata) -> Done<()> {
    let target = |error| (path.to_vec(), error);
    let mode = env.with_path(path, |process, path| {
        process.set_mode(path, metadata.mode & 0o7777)
    });
    mode.map_err(target)?;
    let time = env.with_path(path, |process, path| {
        process.set_modified(path, metadata.modified)
    });
    time.map_err(target)
}

fn copy_link(env: &Env, job: &Job) -> Done<()> {
    let target = |error| (job.to.clone(), error);
    let leads_to = env
        .read_link(&job.from)
        .map_err(|error| (job.from.clone(), error))?;
    match env.metadata(&job.to, false) {
        Ok(old) if matches!(old.kind, FileKind::Directory) => {
            return Err(target(Error::text("Is a directory")));
        }
        Ok(_) => env
            .with_path(&job.to, |process, path| process.unlink(path))
            .map_err(target)?,
        Err(_) => {}
    }
    let leads_to = RVec::from_slice(&leads_to).map_err(|error| target(error.into()))?;
    let made = env.with_path(&job.to, |process, path| process.symlink(path, &leads_to));
    made.map_err(target)
}

fn copy_file(env: &Env, job: &Job, metadata: &Metadata) -> Done<()> {
    let source = |error| (job.from.clone(), error);
    let target = |error| (job.to.clone(), error);
    let mut reader = env.open(&job.from).map_err(source)?;
    let executable = metadata.mode & 0o111 != 0;
    let is_new = executable && env.metadata(&job.to, true).is_err();
    let mut writer = env.create(&job.to).map_err(target)?;
    while let Some(chunk) = reader.shared().map_err(source)? {
        writer.write(chunk).map_err(target)?;
    }
    writer.close().map_err(target)?;
    // A script stays one that can be run.
    if is_new {
        let mode = metadata.mode & 0o755;
        let set = env.with_path(&job.to, |process, path| process.set_mode(path, mode));
        set.map_err(target)?;
    }
    Ok(())
}
