//! A program's memory, as whoever answers its calls sees it.
//!
//! A copy stops at the first page that is not there; [`read`] and [`write()`] have that page made
//! ready and go on. So demand paging, copy-on-write and mapped files are the affair of whoever
//! implements [`Memory`].

use crate::errno::{E2BIG, EFAULT, ENAMETOOLONG, ENOMEM, Error};
use alloc::vec::Vec;

/// Bytes of a page.
pub const PAGE: u64 = 4096;

/// What a program may do with pages, as `mmap` and `mprotect` say it.
pub const READ: u64 = 1;
/// See [`READ`].
pub const WRITE: u64 = 2;
/// See [`READ`].
pub const EXECUTE: u64 = 4;

/// So many words are written at once.
const FEW: usize = 8;
/// How often in a row one looks again at a page that goes as soon as it has come: another thread
/// may see to it that it always does.
const ATTEMPTS: u32 = 64;
/// The longest text that is read, in bytes.
const LONGEST: usize = 4096;
/// The most words of a program's arguments and environment, each, and their bytes.
const MOST_WORDS: usize = 1024;
const MOST_BYTES: usize = 128 << 10;

/// The memory of a program.
pub trait Memory {
    /// Copies from it; how many bytes, up to the first page that the program may not read now.
    fn peek(&self, at: u64, bytes: &mut [u8]) -> usize;

    /// Copies into it; how many bytes, up to the first page that the program may not write to now.
    fn poke(&self, at: u64, bytes: &[u8]) -> usize;

    /// Puts `new` into the word at `at` if it holds `old`, in one step; what it held. `None`: the
    /// program may not write there now, or `at` is no multiple of four.
    fn compare_exchange(&self, at: u64, old: u32, new: u32) -> Option<u32>;

    /// Makes a page ready to be read, or written to.
    ///
    /// # Errors
    /// `EIO`: a file is mapped there that does not reach so far, or cannot be read. Otherwise the
    /// program has nothing there, or not for this.
    fn touch(&self, at: u64, write: bool) -> Result<(), Error>;

    /// Maps pages of zeros where nothing is.
    ///
    /// # Errors
    /// `ENOMEM`, `EINVAL`: no memory; an address that cannot be had.
    fn map_zero(&self, at: u64, bytes: u64, bits: u64) -> Result<(), Error>;

    /// Unmaps whole pages, where there are some.
    ///
    /// # Errors
    /// As [`map_zero`](Self::map_zero).
    fn unmap(&self, at: u64, bytes: u64) -> Result<(), Error>;

    /// Changes what may be done with whole pages, where there are some.
    ///
    /// # Errors
    /// As [`map_zero`](Self::map_zero).
    fn protect(&self, at: u64, bytes: u64, bits: u64) -> Result<(), Error>;
}

/// Why a copy met a page that did not become ready.
fn fault(error: Error) -> Error {
    if error == ENOMEM { ENOMEM } else { EFAULT }
}

/// Copies from the program's memory.
///
/// # Errors
/// `EFAULT`: there is nothing. `ENOMEM`.
#[inline]
pub fn read(space: &impl Memory, at: u64, bytes: &mut [u8]) -> Result<(), Error> {
    match space.peek(at, bytes) {
        done if done == bytes.len() => Ok(()),
        done => read_rest(space, at, bytes, done),
    }
}

/// Goes on where a page was missing.
#[cold]
fn read_rest(space: &impl Memory, at: u64, bytes: &mut [u8], mut done: usize) -> Result<(), Error> {
    let mut vain = 0;
    while done < bytes.len() {
        let from = at.checked_add(done as u64).ok_or(EFAULT)?;
        match space.peek(from, &mut bytes[done..]) {
            0 if vain == ATTEMPTS => return Err(EFAULT),
            0 => space.touch(from, false).map_err(fault)?,
            count => (done, vain) = (done + count, 0),
        }
        vain += 1;
    }
    Ok(())
}

/// Copies into the program's memory.
///
/// # Errors
/// As [`read`].
#[inline]
pub fn write(space: &impl Memory, at: u64, bytes: &[u8]) -> Result<(), Error> {
    match space.poke(at, bytes) {
        done if done == bytes.len() => Ok(()),
        done => write_rest(space, at, bytes, done),
    }
}

/// Goes on where a page was missing.
#[cold]
fn write_rest(space: &impl Memory, at: u64, bytes: &[u8], mut done: usize) -> Result<(), Error> {
    let mut vain = 0;
    while done < bytes.len() {
        let to = at.checked_add(done as u64).ok_or(EFAULT)?;
        match space.poke(to, &bytes[done..]) {
            0 if vain == ATTEMPTS => return Err(EFAULT),
            0 => space.touch(to, true).map_err(fault)?,
            count => (done, vain) = (done + count, 0),
        }
        vain += 1;
    }
    Ok(())
}

/// Reads numbers.
///
/// # Errors
/// As [`read`].
#[inline]
pub fn read_words<const COUNT: usize>(space: &impl Memory, at: u64) -> Result<[u64; COUNT], Error> {
    let mut words = [[0; 8]; COUNT];
    read(space, at, words.as_flattened_mut())?;
    Ok(words.map(u64::from_le_bytes))
}

/// Reads a number of eight bytes.
///
/// # Errors
/// As [`read`].
pub fn read_word(space: &impl Memory, at: u64) -> Result<u64, Error> {
    read_words(space, at).map(|[word]| word)
}

/// Writes numbers.
///
/// # Errors
/// As [`read`].
#[inline]
pub fn write_words(space: &impl Memory, at: u64, words: &[u64]) -> Result<(), Error> {
    let mut few = [[0; 8]; FEW];
    for (index, words) in words.chunks(FEW).enumerate() {
        let at = at.wrapping_add((8 * FEW * index) as u64);
        let few = &mut few[..words.len()];
        for (place, word) in few.iter_mut().zip(words) {
            *place = word.to_le_bytes();
        }
        write(space, at, few.as_flattened())?;
    }
    Ok(())
}

/// Reads a text that ends with a zero byte, without that.
///
/// # Errors
/// As [`read`], and `ENAMETOOLONG`.
pub fn read_text(space: &impl Memory, at: u64) -> Result<Vec<u8>, Error> {
    let mut text = Vec::new();
    let mut from = at;
    while text.len() < LONGEST {
        let count = (PAGE - from % PAGE).min(256) as usize;
        let mut piece = [0; 256];
        read(space, from, &mut piece[..count])?;
        let end = piece[..count].iter().position(|byte| *byte == 0);
        let more = &piece[..end.unwrap_or(count)];
        text.try_reserve(more.len()).map_err(|_| ENOMEM)?;
        text.extend_from_slice(more);
        if end.is_some() {
            return Ok(text);
        }
        from = from.wrapping_add(count as u64);
    }
    Err(ENAMETOOLONG)
}

/// Reads a text that ends with a zero byte or after `most` bytes.
///
/// # Errors
/// As [`read`].
pub fn read_text_up_to(space: &impl Memory, at: u64, most: usize) -> Result<Vec<u8>, Error> {
    let mut text = Vec::new();
    text.try_reserve_exact(most).map_err(|_| ENOMEM)?;
    while text.len() < most {
        let mut byte = [0];
        read(space, at.wrapping_add(text.len() as u64), &mut byte)?;
        if byte == [0] {
            break;
        }
        text.push(byte[0]);
    }
    Ok(text)
}

/// Reads a list of texts that ends with a null pointer.
///
/// # Errors
/// As [`read_text`], and `E2BIG`.
pub fn read_texts(space: &impl Memory, at: u64) -> Result<Vec<Vec<u8>>, Error> {
    let mut texts = Vec::new();
    let mut bytes = 0;
    while texts.len() < MOST_WORDS && bytes < MOST_BYTES {
        let pointer = read_word(space, at.wrapping_add(8 * texts.len() as u64))?;
        if pointer == 0 {
            return Ok(texts);
        }
        let text = read_text(space, pointer)?;
        bytes += text.len();
        texts.try_reserve(1).map_err(|_| ENOMEM)?;
        texts.push(text);
    }
    Err(E2BIG)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::errno::{EINVAL, EIO};
    use crate::fake::Fake;

    const AT: u64 = 0x40_0000;

    fn space(bytes: u64) -> Fake {
        let space = Fake::default();
        space.map_zero(AT, bytes, READ | WRITE).expect("it is free");
        space
    }

    #[test]
    fn copies_go_on_over_pages_that_are_not_there_yet() {
        let space = space(3 * PAGE);
        let bytes: Vec<u8> = (0..2 * PAGE).map(|it| it as u8).collect();
        assert_eq!(write(&space, AT + 100, &bytes), Ok(()));
        let mut found = alloc::vec![0; bytes.len()];
        assert_eq!(read(&space, AT + 100, &mut found), Ok(()));
        assert_eq!(found, bytes);
    }

    #[test]
    fn copies_into_nothing_are_faults() {
        let space = space(PAGE);
        let mut two = [1; 2];
        for at in [0, AT - 1, AT + PAGE - 1, u64::MAX, u64::MAX - 1] {
            assert_eq!(read(&space, at, &mut two), Err(EFAULT), "{at:x}");
            assert_eq!(write(&space, at, &two), Err(EFAULT), "{at:x}");
        }
        space.protect(AT, PAGE, READ).expect("it is there");
        assert_eq!(write(&space, AT, &two), Err(EFAULT));
        assert_eq!(read(&space, AT, &mut two), Ok(()));
        assert_eq!(read(&space, AT + PAGE, &mut []), Ok(()));
    }

    /// A page that is ready and cannot be used all the same is a fault, not a wait.
    #[test]
    fn a_page_that_never_comes_is_a_fault() {
        let space = space(PAGE);
        space.is_fickle.set(true);
        assert_eq!(read(&space, AT, &mut [1]), Err(EFAULT));
        assert_eq!(write(&space, AT, &[1]), Err(EFAULT));
    }

    /// What a file does not have is an error of the call's argument, and no error of the disk.
    #[test]
    fn a_copy_behind_the_end_of_a_file_is_a_fault() {
        let space = space(PAGE);
        for error in [EIO, EINVAL] {
            space.fails.set(Some(error));
            assert_eq!(write(&space, AT, &[1]), Err(EFAULT));
        }
        space.fails.set(Some(ENOMEM));
        assert_eq!(read(&space, AT, &mut [1]), Err(ENOMEM));
    }

    #[test]
    fn numbers_come_back() {
        let space = space(PAGE);
        assert_eq!(write_words(&space, AT + 3, &[1, u64::MAX, 7]), Ok(()));
        assert_eq!(read_words(&space, AT + 3), Ok([1, u64::MAX, 7]));
        assert_eq!(read_word(&space, AT + 11), Ok(u64::MAX));
        for count in [0, FEW, FEW + 1] {
            assert_eq!(write_words(&space, AT, &[9; FEW + 1][..count]), Ok(()));
            assert_eq!(write_words(&space, AT, &[0]), Ok(()));
            let found: [u64; FEW + 1] = read_words(&space, AT).expect("it is there");
            let right = count.saturating_sub(1).min(FEW);
            assert_eq!(found[1..1 + right], [9; FEW][..right]);
        }
    }

    #[test]
    fn texts_end_at_zero_or_at_the_longest() {
        let space = space(3 * PAGE);
        // What is read at once may go beyond.
        let long = [b'x'; LONGEST + 256];
        let at = AT + PAGE - 10;
        write(&space, at, &long).expect("it is there");
        assert_eq!(read_text(&space, at), Err(ENAMETOOLONG));
        write(&space, at + 300, &[0]).expect("it is there");
        assert_eq!(read_text(&space, at), Ok(long[..300].to_vec()));
        // The last byte of all that is mapped ends it, or does not.
        let last = AT + 3 * PAGE - 1;
        assert_eq!(read_text(&space, last), Ok(Vec::new()));
        write(&space, last, b"x").expect("it is there");
        assert_eq!(read_text(&space, last), Err(EFAULT));
    }

    #[test]
    fn lists_of_texts_have_an_end() {
        let space = space(4 * PAGE);
        write(&space, AT, b"one\0two\0").expect("it is there");
        write_words(&space, AT + 16, &[AT, AT + 4, 0]).expect("it is there");
        let right = [b"one".to_vec(), b"two".to_vec()].to_vec();
        assert_eq!(read_texts(&space, AT + 16), Ok(right));
        // One that goes on to the end of what is mapped, and one of too many words.
        let last = AT + 4 * PAGE - 8;
        write_words(&space, last, &[AT]).expect("it is there");
        assert_eq!(read_texts(&space, last), Err(EFAULT));
        write_words(&space, AT + PAGE, &[AT; MOST_WORDS]).expect("it is there");
        assert_eq!(read_texts(&space, AT + PAGE), Err(E2BIG));
        assert_eq!(read_texts(&space, u64::MAX), Err(EFAULT));
    }
}
