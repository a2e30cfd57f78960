//! Modules of k6, as scripts use them.

mod crypto;
mod files;
mod html;
mod memory;
mod streams;
