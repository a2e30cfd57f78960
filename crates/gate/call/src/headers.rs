//! Headers of an attempt beside the caller's: remaining time and trace context.

use std::cell::RefCell;
use std::fmt::{self, Write};

use http::{HeaderName, HeaderValue};

use super::plan::CallPlan;
use weir_base::Nanos;
use weir_net::traceparent::TraceContext;
use weir_retry::deadline::DeadlineFormat;

/// Headers of one attempt.
pub(super) type HeaderList = Vec<(HeaderName, HeaderValue)>;

/// Builder of attempts' headers. Lists and values are reused, since most calls start with the same remaining time.
#[derive(Debug, Default)]
pub(super) struct AttemptHeaders {
    spare_lists: RefCell<Vec<HeaderList>>,
    cached_values: RefCell<Vec<(DeadlineFormat, Nanos, HeaderValue)>>,
}

/// Maximum number of cached values.
const MAX_CACHED_VALUES: usize = 16;

impl AttemptHeaders {
    /// Headers of an attempt with this remaining time, which is [`Nanos::NEVER`] without a deadline.
    pub(super) fn list(&self, plan: &CallPlan, remaining: Nanos, trace: Option<TraceContext>) -> HeaderList {
        let mut list = self.spare_lists.borrow_mut().pop().unwrap_or_default();
        if remaining < Nanos::NEVER {
            for (name, format) in &plan.deadline_headers {
                let value = if remaining == plan.policy.deadline {
                    self.cached_value(*format, remaining)
                } else {
                    deadline_value(*format, remaining)
                };
                list.extend(value.map(|value| (name.clone(), value)));
            }
        }
        list.extend(trace.and_then(traceparent_value).map(|value| (HeaderName::from_static("traceparent"), value)));
        list
    }

    /// Takes back a list for reuse.
    pub(super) fn recycle(&self, mut list: HeaderList) {
        list.clear();
        self.spare_lists.borrow_mut().push(list);
    }

    fn cached_value(&self, format: DeadlineFormat, remaining: Nanos) -> Option<HeaderValue> {
        let mut cache = self.cached_values.borrow_mut();
        if let Some((.., value)) = cache.iter().find(|(of, time, _)| (*of, *time) == (format, remaining)) {
            return Some(value.clone());
        }
        let value = deadline_value(format, remaining)?;
        if cache.len() == MAX_CACHED_VALUES {
            cache.clear();
        }
        cache.push((format, remaining, value.clone()));
        Some(value)
    }
}

fn deadline_value(format: DeadlineFormat, remaining: Nanos) -> Option<HeaderValue> {
    let mut text = HeaderText::default();
    format.write(remaining, &mut text).ok()?;
    text.value()
}

fn traceparent_value(trace: TraceContext) -> Option<HeaderValue> {
    let mut text = HeaderText::default();
    write!(text, "{trace}").ok()?;
    text.value()
}

/// A header value under construction, on the stack.
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
        let free = self.bytes[self.length..].get_mut(..text.len()).ok_or(fmt::Error)?;
        free.copy_from_slice(text.as_bytes());
        self.length += text.len();
        Ok(())
    }
}
