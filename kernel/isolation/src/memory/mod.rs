//! Objects that belong to domains: [`heap`] has them and their owner tables, [`owner`] says who may
//! be looked for there, [`budget`] how much a domain may own. [`relief`] is what is done when there
//! is no memory: domains that keep some for speed alone are asked for it.

pub mod budget;
pub mod heap;
pub mod owner;
pub mod relief;
