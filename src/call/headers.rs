//! What an attempt's request carries beside the caller's headers: how much time is left, and its place in a trace.

use std::cell::RefCell;
use std::fmt::{self, Write};

use http::{HeaderName, HeaderValue};

use super::plan::CallPlan;
use super::trace::TraceContext;
use crate::decide::Nanos;
use crate::decide::deadline::DeadlineFormat;

/// Headers of one attempt.
pub(super) type HeaderList = Vec<(HeaderName, HeaderValue)>;

/// Makes lists of headers, and keeps what it can use again: most calls start with the same time.
#[derive(Debug, Default)]
pub(super) struct AttemptHeaders {
    spare_lists: RefCell<Vec<HeaderList>>,
    cached_values: RefCell<Vec<(DeadlineFormat, Nanos, HeaderValue)>>,
}

/// Values of so many policies are kept.
const MAX_CACHED_VALUES: usize = 16;

impl AttemptHeaders {
    /// For an attempt that has so much time, which is NEVER without a deadline.
    pub(super) fn list(&self, plan: &CallPlan, left: Nanos, trace: Option<TraceContext>) -> HeaderList {
        let mut list = self.spare_lists.borrow_mut().pop().unwrap_or_default();
        if left < Nanos::NEVER {
            for (name, form) in &plan.deadline_headers {
                let value = if left == plan.policy.deadline {
                    self.cached_value(*form, left)
                } else {
                    deadline_value(*form, left)
                };
                list.extend(value.map(|value| (name.clone(), value)));
            }
        }
        list.extend(trace.and_then(traceparent_value).map(|value| (HeaderName::from_static("traceparent"), value)));
        list
    }

    /// Takes a list that is not needed any more.
    pub(super) fn recycle(&self, mut list: HeaderList) {
        list.clear();
        self.spare_lists.borrow_mut().push(list);
    }

    fn cached_value(&self, form: DeadlineFormat, left: Nanos) -> Option<HeaderValue> {
        let mut written = self.cached_values.borrow_mut();
        if let Some((.., value)) = written.iter().find(|(of, when, _)| (*of, *when) == (form, left)) {
            return Some(value.clone());
        }
        let value = deadline_value(form, left)?;
        if written.len() == MAX_CACHED_VALUES {
            written.clear();
        }
        written.push((form, left, value.clone()));
        Some(value)
    }
}

fn deadline_value(form: DeadlineFormat, left: Nanos) -> Option<HeaderValue> {
    let mut text = HeaderText::default();
    form.write(left, &mut text).ok()?;
    text.value()
}

fn traceparent_value(trace: TraceContext) -> Option<HeaderValue> {
    let mut text = HeaderText::default();
    write!(text, "{trace}").ok()?;
    text.value()
}

/// A short text on the stack.
struct HeaderText {
    bytes: [u8; 64],
    length: usize,
}

impl Default for HeaderText {
    fn default() -> Self {
        Self { bytes: [0; 64], length: 0 }
    }
}

impl HeaderText {
    fn value(&self) -> Option<HeaderValue> {
        HeaderValue::from_bytes(&self.bytes[..self.length]).ok()
    }
}

impl fmt::Write for HeaderText {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.bytes[self.length..].get_mut(..text.len()).ok_or(fmt::Error)?;
        room.copy_from_slice(text.as_bytes());
        self.length += text.len();
        Ok(())
    }
}
