//! weir
#![allow(missing_docs)]
pub mod decide;
pub mod http;
pub mod load;
pub mod measure;
