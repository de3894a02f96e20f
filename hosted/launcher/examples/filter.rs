//! A text filter as a plug-in that crashes, is restarted, and is replaced by a newer version while
//! it is called.
//!
//! `filter FOLDER [UPDATES]`: FOLDER is the build folder, `target/trefoil`. After the tour the
//! plug-in is updated UPDATES times (1000) under calls from four threads, of which none may fail,
//! and then crashed 1,000 times under such calls.

use anyhow::{Context, Result, bail, ensure};
use hosted::plug::{CallError, Host, PlugIn};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

fn main() -> Result<()> {
    let mut words = std::env::args().skip(1);
    let folder = PathBuf::from(words.next().context("which folder?")?);
    let updates = words.next().map_or(Ok(1000), |word| word.parse())?;
    let read = |name: &str| std::fs::read(folder.join(name)).with_context(|| name.to_string());
    let (one, two) = (
        read("images/domains/filter-one")?,
        read("images/domains/filter-two")?,
    );
    let host = Host::start(&read("hosted-core")?, 256 << 20)?;
    let filter = host.plug_in(&one, b"")?;
    tour(&filter, &two)?;
    feigned(&filter)?;
    under_load(&filter, [&one, &two], updates)?;
    storm(&filter, CRASHES)
}

/// How often the plug-in crashes while it is called.
const CRASHES: usize = 1000;

/// Crashes the plug-in while four threads call it: every call gets an answer or the error.
fn storm(filter: &PlugIn, crashes: usize) -> Result<()> {
    let (stop, answers, errors) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let strange = AtomicU64::new(0);
    let begin = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let counter = match filter.call(b"SOME TEXT") {
                        Ok(answer) if answer == b"SOME TEXT" => &answers,
                        Err(CallError::Crashed) => &errors,
                        _ => &strange,
                    };
                    counter.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for _ in 0..crashes {
            let crashed = filter.call(b"crash") == Err(CallError::Crashed);
            strange.fetch_add(u64::from(!crashed), Ordering::Relaxed);
        }
        stop.store(true, Ordering::Relaxed);
    });
    let (answers, errors) = (answers.into_inner(), errors.into_inner());
    println!(
        "{crashes} crashes in {:?}: {answers} answers, {errors} errors",
        begin.elapsed()
    );
    ensure!(strange.into_inner() == 0, "a call gave something else");
    ensure!(filter.call(b"AND ON")? == b"AND ON");
    Ok(())
}

/// A plug-in that says that it has crashed, and lives, is ended all the same: else its instances
/// would soon have all memory.
fn feigned(filter: &PlugIn) -> Result<()> {
    for round in 0..FEIGNED {
        let answer = filter.call(b"feign");
        ensure!(answer == Err(CallError::Crashed), "{round}: {answer:?}");
    }
    ensure!(filter.call(b"still here")? == b"Still Here");
    Ok(())
}

/// How often it says so: each time it takes 1 MiB, and there are 256.
const FEIGNED: usize = 400;

fn tour(filter: &PlugIn, two: &[u8]) -> Result<()> {
    let show = |what: &[u8]| -> Result<String, CallError> {
        let answer = filter
            .call(what)
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        println!("{:?} -> {answer:?}", String::from_utf8_lossy(what));
        answer
    };
    ensure!(show(b"a line of text")? == "A LINE OF TEXT");
    ensure!(show(b"crash") == Err(CallError::Crashed));
    ensure!(show(b"again")? == "AGAIN");
    println!("updating");
    filter.update(two, b"")?;
    ensure!(show(b"a line of text")? == "A Line Of Text");
    ensure!(show(b"count")? == "2");
    ensure!(filter.update(b"no image", b"").is_err());
    ensure!(show(b"still here")? == "Still Here");
    for wrong in FAILURES {
        let Err(why) = filter.update(two, wrong) else {
            bail!("the update with {wrong:?} succeeded");
        };
        println!("update with {} -> {why:#}", String::from_utf8_lossy(wrong));
    }
    // Neither the version nor its count is lost.
    ensure!(show(b"still here")? == "Still Here");
    ensure!(show(b"count")? == "4");
    Ok(())
}

/// Options of version two with which an update must not succeed.
const FAILURES: [&[u8]; 6] = [
    b"start=panic",
    b"start=refuse",
    b"take_over=panic",
    b"take_over=refuse",
    b"take_over=hang",
    b"take_over=sleep",
];

/// Updates the plug-in while four threads call it.
fn under_load(filter: &PlugIn, versions: [&[u8]; 2], updates: usize) -> Result<()> {
    let (stop, calls, failed) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let before: u64 = count(filter)?;
    let begin = Instant::now();
    let result = std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    if filter.call(b"some text").is_err() {
                        failed.fetch_add(1, Ordering::Relaxed);
                    }
                    calls.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let result = (0..updates).try_for_each(|round| filter.update(versions[round % 2], b""));
        stop.store(true, Ordering::Relaxed);
        result
    });
    result?;
    let (calls, failed) = (calls.into_inner(), failed.into_inner());
    println!(
        "{updates} updates in {:?} under {calls} calls, {failed} failed",
        begin.elapsed()
    );
    ensure!(
        failed == 0 && count(filter)? == before + calls,
        "calls failed, or were not counted"
    );
    Ok(())
}

fn count(filter: &PlugIn) -> Result<u64> {
    Ok(String::from_utf8_lossy(&filter.call(b"count")?).parse()?)
}
