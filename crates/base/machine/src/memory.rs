//! Return of freed memory to the system.
//!
//! An allocator keeps freed memory for reuse; after a burst that may be much, for long. Only the program that has
//! chosen the allocator can make it return memory, so it registers a hook, which is called after large amounts were
//! freed.

use std::sync::OnceLock;

static RELEASE_HOOK: OnceLock<fn()> = OnceLock::new();

/// Sets the hook that returns memory freed by the calling thread. Only the first call counts.
pub fn set_release_hook(release: fn()) {
    let _ = RELEASE_HOOK.set(release);
}

/// Returns memory freed by the calling thread, if there is a hook. It takes some milliseconds after a burst.
pub fn release() {
    if let Some(release) = RELEASE_HOOK.get() {
        release();
    }
}
