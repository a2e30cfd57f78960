//! A shop whose protocol has rules: login, items, item, cart, purchase, logout.
//!
//! - [`store`]: the shop, which takes a request and returns its outcome
//! - [`catalog`]: items and their prices
//! - [`credential`]: tokens and cookies, which can be verified without a list of those that were issued
//! - [`violation`]: rules, and the status of a request that breaks one
//!
//! The shop has no clock and no faults; services delay, break and count its outcomes. Its memory is bounded: by the
//! number of sessions, by the lines of a cart and by the number of distinct users.

pub mod catalog;
pub mod credential;
pub mod session;
pub mod store;
pub mod violation;

#[cfg(test)]
mod tests;
