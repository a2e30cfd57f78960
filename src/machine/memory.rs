//! Memory that is free and still the process's.
//!
//! An allocator keeps what was freed, to hand it out again; after a burst that may be a lot, and for long. Only the program
//! that has chosen the allocator knows how to have it given back, so it says so once, and what frees much asks for it.

use std::sync::OnceLock;

static RELEASE_HOOK: OnceLock<fn()> = OnceLock::new();

/// Sets how this program's allocator gives back what the calling thread has freed. Only the first call counts.
pub fn set_release_hook(release: fn()) {
    let _ = RELEASE_HOOK.set(release);
}

/// Gives back what the calling thread has freed, if the program knows how. It takes some milliseconds after a burst.
pub fn release() {
    if let Some(release) = RELEASE_HOOK.get() {
        release();
    }
}
