//! Lists of free objects: each holds the address of the next in its first word.

use core::ptr::null_mut;

/// Puts a free object in front of a list.
///
/// # Safety
/// It is in no list, and at least 16 bytes long.
pub(super) unsafe fn push(list: &mut *mut u8, object: *mut u8) {
    // SAFETY: the object is free, so its first word is ours.
    unsafe { object.cast::<*mut u8>().write(*list) };
    *list = object;
}

/// The object behind `object` in its list.
///
/// # Safety
/// It is a free object.
pub(super) unsafe fn next_of(object: *mut u8) -> *mut u8 {
    // SAFETY: a free object holds the address of the next; it is at least 16 bytes long.
    unsafe { object.cast::<*mut u8>().read() }
}

/// Sorts a list of free objects by their addresses, without memory: lists of 1, 2, 4 ... objects
/// are merged.
pub(super) fn sort(mut list: *mut u8) -> *mut u8 {
    const BINS: usize = usize::BITS as usize;
    let mut bins: [*mut u8; BINS] = [null_mut(); BINS];
    while !list.is_null() {
        // SAFETY: free objects, each in one list.
        let mut carry = unsafe {
            let object = list;
            list = next_of(object);
            object.cast::<*mut u8>().write(null_mut());
            object
        };
        for bin in &mut bins {
            let before = core::mem::replace(bin, null_mut());
            if before.is_null() {
                *bin = carry;
                break;
            }
            carry = join(before, carry);
        }
    }
    bins.into_iter().fold(null_mut(), join)
}

/// One sorted list from two.
fn join(mut left: *mut u8, mut right: *mut u8) -> *mut u8 {
    let mut first: *mut u8 = null_mut();
    let mut end: *mut *mut u8 = &raw mut first;
    // SAFETY: `end` is `first` or the first word of the last free object of the new list.
    unsafe {
        while !left.is_null() && !right.is_null() {
            let least = if left < right { &mut left } else { &mut right };
            let object = *least;
            *least = next_of(object);
            end.write(object);
            end = object.cast();
        }
        end.write(if left.is_null() { right } else { left });
    }
    first
}
