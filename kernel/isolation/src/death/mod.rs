//! How a domain dies: [`kill`] crashes it and waits until nobody is inside, [`undertaker`] frees
//! what it had, and [`drops`] says where objects are dropped whose last handle went elsewhere.

pub(crate) mod drops;
pub mod kill;
pub(crate) mod undertaker;
