//! Number of allocations of a thread, counted by the allocator of the program.
#![allow(unsafe_code, reason = "an allocator that counts is one, and only in tests")]
#![allow(unreachable_pub, reason = "a test program of a crate that has few dependencies includes this file")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static ALLOCATED: Cell<u64> = const { Cell::new(0) };
}

/// The system's allocator, counting for each thread; a program names it its `#[global_allocator]`.
pub struct CountingAllocator;

impl CountingAllocator {
    /// Number of allocations of this thread so far.
    pub fn allocated() -> u64 {
        ALLOCATED.with(Cell::get)
    }
}

// SAFETY: forwards to the system allocator; the counter is thread-local and does not allocate.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ALLOCATED.try_with(|count| count.set(count.get() + 1));
        // SAFETY: by the caller's contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let _ = ALLOCATED.try_with(|count| count.set(count.get() + 1));
        // SAFETY: by the caller's contract.
        unsafe { System.realloc(place, layout, size) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: by the caller's contract.
        unsafe { System.dealloc(place, layout) }
    }
}
