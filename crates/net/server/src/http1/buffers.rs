//! Memory that the connections of an event loop share.

use std::cell::{Cell, RefCell};
use std::mem::MaybeUninit;
use std::time::{Duration, UNIX_EPOCH};

use http::HeaderMap;
use weir_machine::clock::unix_s;
use weir_net::wire::{PassedFields, PassedNames};

use super::request_head::HeadFields;

/// Bytes of a read.
const READ_BYTES: usize = 64 * 1024;
/// Buffers and maps that are kept: a connection needs one for as long as it writes a head.
const MAX_KEPT: usize = 64;
/// Larger ones are freed.
const MAX_KEPT_BYTES: usize = 64 * 1024;
const MAX_KEPT_FIELDS: usize = 64;

/// Buffers of one event loop, and the date.
#[derive(Debug)]
pub(crate) struct Http1Buffers {
    /// Buffer that sockets are read into. Not to be held across an await.
    pub(super) read: RefCell<Vec<MaybeUninit<u8>>>,
    write: RefCell<Vec<Vec<u8>>>,
    headers: RefCell<Vec<HeaderMap>>,
    passed: RefCell<Vec<PassedFields>>,
    /// Second since 1970, and its text for a Date header.
    date: RefCell<String>,
    date_s: Cell<u64>,
}

impl Http1Buffers {
    pub(crate) fn new() -> Self {
        let new = Self {
            read: RefCell::new(vec![MaybeUninit::uninit(); READ_BYTES]),
            write: RefCell::default(),
            headers: RefCell::default(),
            passed: RefCell::default(),
            date: RefCell::default(),
            date_s: Cell::default(),
        };
        new.update_date();
        new
    }

    /// Sets the date of the next responses. Called several times per second.
    pub(crate) fn update_date(&self) {
        let now_s = unix_s() as u64;
        if self.date_s.replace(now_s) != now_s || self.date.borrow().is_empty() {
            *self.date.borrow_mut() = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(now_s));
        }
    }

    /// Calls `write` with the text of a Date header.
    pub(super) fn with_date<T>(&self, write: impl FnOnce(&[u8]) -> T) -> T {
        write(self.date.borrow().as_bytes())
    }

    /// An empty buffer.
    pub(super) fn buffer(&self) -> Vec<u8> {
        self.write.borrow_mut().pop().unwrap_or_default()
    }

    /// Takes a buffer back.
    pub(super) fn recycle_buffer(&self, buffer: Vec<u8>) {
        let mut kept = self.write.borrow_mut();
        if kept.len() < MAX_KEPT && buffer.capacity() <= MAX_KEPT_BYTES {
            kept.push(buffer);
        }
    }

    /// Memory for the fields of a head.
    pub(super) fn head_fields(&self, passed_names: PassedNames) -> HeadFields {
        let headers = self.headers.borrow_mut().pop().unwrap_or_default();
        let passed = self.passed.borrow_mut().pop().unwrap_or_default();
        HeadFields { headers, passed_names, passed }
    }

    /// Takes it back.
    pub(super) fn recycle_fields(&self, fields: HeadFields) {
        self.recycle(fields.headers);
        self.recycle_passed(fields.passed);
    }

    /// Takes the memory of passed fields back.
    pub(super) fn recycle_passed(&self, mut passed: PassedFields) {
        let mut kept = self.passed.borrow_mut();
        if kept.len() < MAX_KEPT && (1..=MAX_KEPT_BYTES).contains(&passed.capacity()) {
            passed.clear();
            kept.push(passed);
        }
    }

    /// Takes a map back.
    pub(super) fn recycle(&self, mut headers: HeaderMap) {
        let mut kept = self.headers.borrow_mut();
        if kept.len() < MAX_KEPT && (1..=MAX_KEPT_FIELDS).contains(&headers.capacity()) {
            headers.clear();
            kept.push(headers);
        }
    }
}
