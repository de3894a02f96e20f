//! The list against a model, and the protocol in many schedules.

mod list;
mod schedules;
