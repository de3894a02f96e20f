//! Objects that belong to domains: [`heap`] has them and their owner tables, [`owner`] says who may
//! be looked for there. [`relief`] is what is done when there is no memory: images that are kept
//! for instances to come are given up, and domains that keep some for speed alone are asked for it.
//! [`grown`] has tables that are read without a lock, [`late`] those that few ever want.

pub mod grown;
pub mod heap;
pub(crate) mod kept;
pub(crate) mod late;
pub mod owner;
pub mod relief;
