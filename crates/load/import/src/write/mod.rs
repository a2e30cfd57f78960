//! Writers of an import: `.hurl` text, mix file, file of variables, cURL commands, JSON, scripts.

mod curl;
mod entry;
mod hurl;
mod json;
mod mix;
mod script;
mod variables;

pub use self::curl::to_curl;
pub use self::hurl::to_hurl;
pub use self::json::to_json;
pub use self::mix::to_mix;
pub use self::script::to_script;
pub use self::variables::to_variables_file;

pub(crate) use self::entry::entry;
