//! What an attempt's request carries beside the caller's headers: how much time is left, and its place in a trace.

use std::cell::RefCell;
use std::fmt::{self, Write};

use http::{HeaderName, HeaderValue};

use super::plan::Plan;
use super::trace::TraceContext;
use crate::decide::Nanos;
use crate::decide::deadline::Form;

/// Headers of one attempt.
pub(super) type List = Vec<(HeaderName, HeaderValue)>;

/// Makes lists of headers, and keeps what it can use again: most calls start with the same time.
#[derive(Debug, Default)]
pub(super) struct Headers {
    lists: RefCell<Vec<List>>,
    written: RefCell<Vec<(Form, Nanos, HeaderValue)>>,
}

/// Values of so many policies are kept.
const MOST_WRITTEN: usize = 16;

impl Headers {
    /// For an attempt that has so much time, which is NEVER without a deadline.
    pub(super) fn list(&self, plan: &Plan, left: Nanos, trace: Option<TraceContext>) -> List {
        let mut list = self.lists.borrow_mut().pop().unwrap_or_default();
        if left < Nanos::NEVER {
            for (name, form) in &plan.deadline_headers {
                let value = if left == plan.policy.deadline { self.kept(*form, left) } else { time(*form, left) };
                list.extend(value.map(|value| (name.clone(), value)));
            }
        }
        list.extend(trace.and_then(parent).map(|value| (HeaderName::from_static("traceparent"), value)));
        list
    }

    /// Takes a list that is not needed any more.
    pub(super) fn spare(&self, mut list: List) {
        list.clear();
        self.lists.borrow_mut().push(list);
    }

    fn kept(&self, form: Form, left: Nanos) -> Option<HeaderValue> {
        let mut written = self.written.borrow_mut();
        if let Some((.., value)) = written.iter().find(|(of, when, _)| (*of, *when) == (form, left)) {
            return Some(value.clone());
        }
        let value = time(form, left)?;
        if written.len() == MOST_WRITTEN {
            written.clear();
        }
        written.push((form, left, value.clone()));
        Some(value)
    }
}

fn time(form: Form, left: Nanos) -> Option<HeaderValue> {
    let mut text = Text::default();
    form.write(left, &mut text).ok()?;
    text.value()
}

fn parent(trace: TraceContext) -> Option<HeaderValue> {
    let mut text = Text::default();
    write!(text, "{trace}").ok()?;
    text.value()
}

/// A short text on the stack.
struct Text {
    bytes: [u8; 64],
    length: usize,
}

impl Default for Text {
    fn default() -> Self {
        Self { bytes: [0; 64], length: 0 }
    }
}

impl Text {
    fn value(&self) -> Option<HeaderValue> {
        HeaderValue::from_bytes(&self.bytes[..self.length]).ok()
    }
}

impl fmt::Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.bytes[self.length..].get_mut(..text.len()).ok_or(fmt::Error)?;
        room.copy_from_slice(text.as_bytes());
        self.length += text.len();
        Ok(())
    }
}
