//! Files that become scenarios, and those that an import writes.
//!
//! - [`ImportInput`]: files of other tools with their texts; [`ImportOutput`]: a scenario, its mix, variables and rows
//! - [`import_scenarios()`]: the same in memory, for a load that names a file of another tool: [`ImportedScenarios`]
//! - [`read_variables`]: files of variables; `data_rows`: rows with the names of their columns

mod data_rows;
mod import_input;
mod import_output;
mod imported_scenarios;
mod variables_file;

pub use self::import_input::ImportInput;
pub use self::import_output::{ImportFormat, ImportOutput, ensure_free, write_script};
pub use self::imported_scenarios::{ImportedScenarios, import_scenarios};
pub use self::variables_file::read_variables;
