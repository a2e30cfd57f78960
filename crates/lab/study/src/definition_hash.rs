//! Short hash of a text.

use ring::digest::{SHA256, digest};

/// First 64 bits of SHA-256, as sixteen hexadecimal digits.
pub(super) fn short_hash(text: &str) -> String {
    digest(&SHA256, text.as_bytes()).as_ref().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}
