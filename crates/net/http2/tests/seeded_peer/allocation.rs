//! The bytes that a thread has allocated, counted by the allocator of the program.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static LIVE_BYTES: Cell<i64> = const { Cell::new(0) };
}

/// Bytes that this thread has allocated, less those that it has freed.
pub(crate) fn live_bytes() -> i64 {
    LIVE_BYTES.with(Cell::get)
}

/// The system's allocator, counting for each thread.
pub(crate) struct ThreadAllocator;

fn add(bytes: i64) {
    // After the end of a thread's variables nothing is counted.
    let _ = LIVE_BYTES.try_with(|live| live.set(live.get() + bytes));
}

// SAFETY: every call is passed on to the system's allocator; the counter is thread-local and does not allocate.
unsafe impl GlobalAlloc for ThreadAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size() as i64);
        // SAFETY: the caller meets the conditions of the system's allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        add(size as i64 - layout.size() as i64);
        // SAFETY: as above.
        unsafe { System.realloc(block, layout, size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        add(-(layout.size() as i64));
        // SAFETY: as above.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: ThreadAllocator = ThreadAllocator;
