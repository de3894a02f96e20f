//! The project's own tool: the commands that developers type.
//!
//! One file per command ([`run`], [`backtrace`], [`symbols`], [`test`], [`check`], [`tcb`],
//! [`doc`], [`demo`], [`example`], [`image`]), with [`texts`] (what the documents quote),
//! [`columns`] (how wide prose may be), [`sources`] (what each source file has), [`folders`] (what
//! stands at the top), [`arch`] (where x86-64 may be named), [`subjects`] (which part of isolation
//! may know which) and [`linked`] (what is really in an image). The build is in `gate`, a machine
//! to boot on in `lab/machine`, campaigns and benchmarks in `lab/campaigns`.

pub mod arch;
pub mod backtrace;
pub mod check;
pub mod columns;
pub mod debian;
pub mod demo;
pub mod doc;
pub mod example;
pub mod folders;
pub mod image;
pub mod linked;
pub mod loops;
pub mod observed;
pub mod profile;
pub mod run;
pub mod sources;
pub mod subjects;
pub mod symbols;
pub mod tcb;
pub mod test;
pub mod texts;
pub mod trace;
