//! Freed memory of bodies, which the process keeps for the next ones.
//!
//! A program that reads a body of 1 MiB in pieces and joins them has 2 MiB in use, and frees them together. glibc gives free
//! memory at the end of its heap back to the system once it is twice the largest block that was freed so far: 2 MiB, here.
//! Then each call gets all of it anew, with a page fault per 4 KiB, which costs more than receiving the body. glibc has no
//! other safe way to set that limit than to free a larger block. Other allocators are not affected.

use std::hint::black_box;
use std::sync::Once;

/// Size of the block; up to twice as much stays with the process.
const FREED_BLOCK_BYTES: usize = 4 << 20;

/// Has the allocator keep freed memory; once per process. No page of the block is used.
pub(super) fn keep_freed_memory() {
    static KEPT: Once = Once::new();
    KEPT.call_once(|| drop(black_box(Vec::<u8>::with_capacity(FREED_BLOCK_BYTES))));
}
