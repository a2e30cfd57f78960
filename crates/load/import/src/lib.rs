//! Imports: files of other tools become scenarios. PURE: text in, scenarios out; files are read and written by others.
//!
//! ```
//! use weir_import::{ImportFile, ImportSettings, import, to_hurl};
//! let file = ImportFile { name: "-", text: "curl -XPOST http://shop/items -d name=tea".into(), kind: None };
//! let import = import([file], &ImportSettings::default()).expect("a command of cURL");
//! assert_eq!(to_hurl(&import.scenarios[0]), "POST http://shop/items\n[Form]\nname: tea\n");
//! ```
//!
//! - [`import`] detects the [`ImportKind`] of each file from its content, calls the kind's reader (a module each), and
//!   then the `passes` over all steps: which are chosen, what is correlated, what is a secret, what has no value
//! - [`Import`] is the result: [`ImportedScenario`]s of [`ImportedStep`]s, [`ImportedVariable`]s, and [`Omission`]s
//! - [`to_hurl`], [`to_mix`], [`to_variables_file`], [`to_curl`], [`to_json`] write it; [`to_script`]: a collection of Postman with its scripts
//!
//! A reader never fails on an element that it does not know: the `ImportSession` counts an omission, and its comment
//! stands above the step. Only a file that is not of its kind is an [`ImportError`]. Texts are `weir_hurl` templates
//! from the beginning, so that a variable is never confused with braces in a text. JSON and YAML become the same
//! `tree`, whose nodes have their lines.

mod address;
mod api_auth;
mod bruno;
mod builder;
mod collection;
mod curl;
mod detect;
mod error;
mod file_reader;
mod files;
mod graphql;
mod har;
mod har_body;
mod http_environment;
mod http_file;
mod importer;
mod jmx;
mod json_comments;
mod json_indent;
mod kind;
mod multipart;
mod names;
mod omission;
mod openapi;
mod passes;
mod placeholder;
mod postman;
mod recorded;
mod request;
mod request_words;
mod script;
mod script_predicate;
mod session;
mod settings;
mod static_file;
mod text;
mod tree;
mod write;

#[cfg(test)]
mod tests;

pub use self::collection::{Import, ImportedData, ImportedLoad, ImportedScenario, ImportedVariable, ScenarioRole};
pub use self::detect::detect;
pub use self::error::ImportError;
pub use self::file_reader::{NamedFileReader, ReadFile};
pub use self::importer::{ImportFile, import, import_with_files};
pub use self::kind::ImportKind;
pub use self::omission::{Omission, OmissionKind, count_omissions};
pub use self::recorded::RecordedValue;
pub use self::request::{ImportedBody, ImportedRequest, ImportedStep, StatusRule};
pub use self::settings::ImportSettings;
pub use self::static_file::is_static_file;
pub use self::write::{to_curl, to_hurl, to_json, to_mix, to_script, to_variables_file};
