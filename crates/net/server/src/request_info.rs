//! A request as logs and lists describe it.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use http::{Method, Uri, Version};
use serde_json::value::RawValue;

use weir_base::Nanos;

/// Snapshot of a request in flight, for an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestInFlight {
    /// Address of the client with port, or `unix:`.
    pub client: String,
    /// Method.
    pub method: String,
    /// Path and query.
    pub target: String,
    /// Time since its head was complete.
    pub age: Nanos,
    /// Route of the request, as its service names it.
    pub route: Option<String>,
    /// Stage that the request waits in, as its service names it; `responding` once its response has begun.
    pub stage: &'static str,
}

/// Fields of the access log besides the response.
#[derive(Debug)]
pub(super) struct RequestLogInfo {
    pub(super) method: Method,
    pub(super) uri: Uri,
    pub(super) version: Version,
    pub(super) attempts: RefCell<Option<Box<RawValue>>>,
    pub(super) client: String,
    /// Values of the headers that lines of the access log have, in their order.
    pub(super) headers: Vec<Option<Vec<u8>>>,
    pub(super) began: Nanos,
    pub(super) route: RefCell<Option<Arc<str>>>,
    /// Name of the caller, by the service.
    pub(super) caller: RefCell<Option<String>>,
    pub(super) stage: Cell<&'static str>,
}

impl RequestLogInfo {
    /// Text of the service about the request.
    pub(super) fn set_attempts(&self, story: Box<RawValue>) {
        self.attempts.replace(Some(story));
    }

    /// Sets what the request belongs to, and waits for.
    pub(super) fn set_progress(&self, route: Option<&Arc<str>>, stage: &'static str) {
        if let Some(route) = route {
            self.route.replace(Some(Arc::clone(route)));
        }
        self.stage.set(stage);
    }

    /// The request at this time.
    pub(super) fn describe(&self, now: Nanos) -> RequestInFlight {
        RequestInFlight {
            client: self.client.clone(),
            method: self.method.as_str().to_owned(),
            target: self.uri.path_and_query().map_or("", |target| target.as_str()).to_owned(),
            age: now - self.began,
            route: self.route.borrow().as_deref().map(str::to_owned),
            stage: self.stage.get(),
        }
    }
}
