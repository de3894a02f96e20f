//! Taking memory.

use alloc::vec::Vec;
use ulib::{Env, Error, Stop, println};

/// Bytes that are asked for at once.
const PIECE: usize = 256 * 1024;

/// Takes all that can be had, politely.
pub fn eat(env: &Env) -> Result<i32, Stop> {
    let mut pieces: Vec<Vec<u8>> = Vec::new();
    loop {
        let mut piece: Vec<u8> = Vec::new();
        if pieces.try_reserve(1).is_err() || piece.try_reserve_exact(PIECE).is_err() {
            break;
        }
        piece.resize(PIECE, 1);
        pieces.push(piece);
    }
    let taken = (pieces.len() * PIECE) >> 20;
    drop(pieces);
    println!(env, "{}", if taken > 4 { "much" } else { "little" })?;
    Ok(0)
}

/// Takes so many MiB, and keeps them for so many seconds.
pub fn hold(env: &Env, amount: u64, seconds: u64) -> Result<i32, Stop> {
    let mut pieces: Vec<Vec<u8>> = Vec::new();
    for _ in 0..(amount << 20) / PIECE as u64 {
        let mut piece: Vec<u8> = Vec::new();
        if pieces.try_reserve(1).is_err() || piece.try_reserve_exact(PIECE).is_err() {
            let taken = (pieces.len() * PIECE) >> 20;
            return Err(Stop::about(
                b"hold",
                Error::text(if taken > 4 { "only some" } else { "hardly any" }),
            ));
        }
        piece.resize(PIECE, 1);
        pieces.push(piece);
    }
    env.process().sleep(seconds * 1_000_000_000)?;
    println!(env, "{} MiB held", (pieces.len() * PIECE) >> 20)?;
    Ok(0)
}

/// Takes memory as if there were no end of it.
pub fn burst() -> ! {
    let mut pieces: Vec<Vec<u8>> = Vec::new();
    loop {
        pieces.push(alloc::vec![1; PIECE]);
    }
}
