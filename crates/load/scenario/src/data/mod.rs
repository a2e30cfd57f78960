//! Differences between users: rows of data, and think time.
//!
//! - [`DataRows`]: rows of a CSV or JSON file, stored once for all users; [`DataFormat`]: which of them a file is
//! - [`RowOrder`]: which row an iteration has, as a function of its number and the seed alone
//! - [`ScenarioOrdinals`]: ordinal of an iteration among those with the same data, in a mix
//! - [`ThinkTime`]: time between the steps of a user, drawn from the user's random numbers

mod csv_rows;
mod data_error;
mod data_format;
mod data_parser;
mod data_rows;
mod json_rows;
mod row_order;
mod scenario_ordinals;
mod think_time;

#[cfg(test)]
mod tests;

pub use self::data_error::DataError;
pub use self::data_format::DataFormat;
pub use self::data_rows::DataRows;
pub use self::row_order::RowOrder;
pub use self::scenario_ordinals::ScenarioOrdinals;
pub use self::think_time::ThinkTime;
