//! Fairness, balance, latency and limits over loads that are made up.

mod classes;
mod limits;
mod parts;
mod sim;
mod turns;
