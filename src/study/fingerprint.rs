//! A short name for a text: another text has another one.

use ring::digest::{SHA256, digest};

/// Sixteen hexadecimal digits.
pub(super) fn short_hash(text: &str) -> String {
    digest(&SHA256, text.as_bytes()).as_ref().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}
