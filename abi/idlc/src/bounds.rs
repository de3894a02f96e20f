//! How much of everything there may be, in one file, one item and all files together.
//!
//! Generated code and the tables of kernel and runtime have fixed room for what files say, and the
//! time and memory that this crate takes grow with them. So every number that comes from a file has
//! a bound, and a [`Rule`](crate::Rule) that refuses more. What meets fixed room in the kernel
//! stands in `abi::bounds`, too, and is asserted there once more; a test compares the two.

/// Methods of an interface: each has a place among the counts of calls, and a number in traces.
pub const MOST_METHODS: usize = 256;
/// Arguments of a method, without `self`.
pub const MOST_ARGUMENTS: usize = 16;
/// Variants of an enum.
pub const MOST_VARIANTS: usize = 256;
/// Fields of a struct or of a variant.
pub const MOST_FIELDS: usize = 256;
/// Bytes of a name.
pub const LONGEST_NAME: usize = 32;
/// How deep types are nested, definitions and built-in ones alike. Trusted code goes through what
/// crosses by a function that calls itself, on the 32 KiB of stack that a call has for certain.
pub const MOST_NESTED: usize = 32;
/// Bytes of the stack that a result may take, and all arguments of a method together.
pub const LARGEST_BY_VALUE: u64 = 4096;
/// Bytes of a value in an `RRef`, and of an element of an `RVec`.
pub const LARGEST_SHARED: u64 = 1 << 20;
/// Milliseconds of the longest budget: an hour.
pub const LONGEST_BUDGET: u32 = 3_600_000;
/// Grants of a domain (`Image::start`).
pub const MOST_WANTS: usize = 16;
/// Offers of a domain (`Started::offers`).
pub const MOST_OFFERS: usize = 4;

/// Bytes of a file.
pub const LONGEST_FILE: usize = 256 * 1024;
/// Bytes of a word that is not in a comment or a literal. It is longer than a name, so that a name
/// which is a little too long is reported as one.
pub const LONGEST_WORD: usize = 256;
/// Files.
pub const MOST_FILES: usize = 1024;
/// Bytes of all files together.
pub const MOST_TEXT: usize = 4 << 20;
/// Interfaces, in all files together.
pub const MOST_INTERFACES: usize = 1024;
/// Structs and enums, in all files together.
pub const MOST_TYPES: usize = 4096;
/// Entries of domains, in all files together.
pub const MOST_ENTRIES: usize = 1024;

/// Errors about types that are collected. Each says how its place is reached, so without a limit
/// they would take far more room than the files.
pub const MOST_ERRORS: usize = 200;
