//! The order that `/validate` checks: its JSON Schema, a valid one and an invalid one.

/// JSON Schema of an order.
pub(super) const SCHEMA: &str = include_str!("../../../../../docs/schema/order.schema.json");
/// Valid order.
pub(super) const EXAMPLE: &str = include_str!("order.json");
/// The valid order with three faults.
pub(super) const INVALID_EXAMPLE: &str = include_str!("wrong_order.json");
