//! Tests of the decision about culprits: estimates and choices against naive ones, and properties of both together.

mod choices;
mod estimates;
mod rules;

use super::use_table::UseRow;
use super::*;

fn ms(ms: u64) -> Nanos {
    Nanos::from_millis(ms)
}
