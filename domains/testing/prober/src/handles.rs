//! Handles: who holds what, and what happens when the last one is dropped.

use crate::lab::{Lab, say, wait_for};
use crate::{Test, Verdict, ensure};
use alloc::vec::Vec;
use interfaces::{AnyHandle, Block, Handle, RVec, StartError, Subject};

/// The tests of this file.
pub const TESTS: &[Test] = &[
    ("handles-drop-their-object", drop_last),
    ("handles-can-be-duplicated", duplicates),
    ("handles-of-a-dead-holder-are-dropped", dead_holder),
    ("handles-survive-the-one-who-handed-them-on", handed_on),
    ("handles-have-a-type", typed),
    ("grants-are-checked", grants),
    ("ids-are-never-reused", ids),
];

fn drop_last(lab: &Lab) -> Verdict {
    let victim = lab.start()?;
    let children: Result<Vec<_>, _> = (0..10).map(|_| victim.subject.offspring()).collect();
    ensure!(victim.subject.offspring_alive() == Ok(10), "ten children");
    drop(children.map_err(say)?);
    ensure!(
        victim.subject.offspring_alive() == Ok(0),
        "children without a parent handle live on"
    );
    victim.end()
}

fn duplicates(lab: &Lab) -> Verdict {
    let victim = lab.start()?;
    let child = victim.subject.offspring().map_err(say)?;
    let twin = child.duplicate().map_err(say)?;
    drop(child);
    ensure!(
        victim.subject.offspring_alive() == Ok(1),
        "the twin holds the child"
    );
    ensure!(twin.add(4, 4) == Ok(8), "the twin cannot be called");
    drop(twin);
    ensure!(
        victim.subject.offspring_alive() == Ok(0),
        "nobody holds the child"
    );
    victim.end()
}

fn dead_holder(lab: &Lab) -> Verdict {
    let server = lab.start()?;
    let holder = lab.start()?;
    let child = server.subject.offspring().map_err(say)?;
    holder.subject.follow(Some(child)).map_err(say)?;
    ensure!(
        server.subject.offspring_alive() == Ok(1),
        "the holder holds the child"
    );
    holder.end()?;
    wait_for("the child to be dropped", || {
        server.subject.offspring_alive() == Ok(0)
    })?;
    server.end()
}

fn handed_on(lab: &Lab) -> Verdict {
    let server = lab.start()?;
    let between = lab.start()?;
    let holder = lab.start()?;
    let child = server.subject.offspring().map_err(say)?;
    between
        .subject
        .follow(Some(child.duplicate().map_err(say)?))
        .map_err(say)?;
    holder.subject.follow(Some(child)).map_err(say)?;
    between.end()?;
    ensure!(
        holder.subject.depth(1) == Ok(1),
        "the holder lost its handle"
    );
    holder.end()?;
    server.end()
}

fn typed(lab: &Lab) -> Verdict {
    let victim = lab.start()?;
    let any = victim.subject.duplicate().map_err(say)?.into_any();
    let any = match any.downcast::<dyn Block>() {
        Ok(_) => return Err("a subject passed for a block device".into()),
        Err(any) => any,
    };
    ensure!(
        any.downcast::<dyn Subject>().is_ok(),
        "a subject is no subject"
    );
    victim.end()
}

fn grants(lab: &Lab) -> Verdict {
    let start = |grants: [Option<AnyHandle>; 16]| {
        let spec = crate::lab::unlimited();
        let options = RVec::from_slice(b"").map_err(say)?;
        Ok::<_, alloc::string::String>(lab.victim_image()?.start(spec, grants, options).err())
    };
    let mut wrong = [const { None }; 16];
    wrong[0] = Some(lab.monitor.duplicate().map_err(say)?.into_any());
    match start(wrong)? {
        Some(StartError::WrongGrant(name)) => ensure!(name.as_str() == "next", "it blames {name}"),
        other => return Err(say(other)),
    }
    let mut extra = [const { None }; 16];
    extra[1] = Some(lab.monitor.duplicate().map_err(say)?.into_any());
    match start(extra)? {
        Some(StartError::ExtraGrant) => Ok(()),
        other => Err(say(other)),
    }
}

fn ids(lab: &Lab) -> Verdict {
    let mut last = 0;
    for _ in 0..20 {
        let victim = lab.start()?;
        ensure!(victim.id > last, "{} after {last}", victim.id);
        last = victim.id;
        victim.end()?;
    }
    let gone: Option<Handle<_>> = lab.control.domain(last).map_err(say)?;
    ensure!(gone.is_none(), "a gone domain can still be named");
    Ok(())
}
