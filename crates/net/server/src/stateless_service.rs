//! Services without state of an event loop.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;

use http::Request;
use prometheus_client::registry::Registry;
use weir_machine::timer::Timer;

use super::{RequestBody, RequestContext, Service, ServiceReply, StaticBody};

/// [`Service`] whose event loops have no state but the server's.
pub trait StatelessService: Send + Sync + 'static {
    /// Handles a request. The future is dropped when the client leaves.
    fn handle(&self, request: Request<RequestBody>, context: &RequestContext) -> impl Future<Output = ServiceReply>;

    /// Path of the request by which the server's own pages are looked up.
    fn builtin_path<'p>(&self, path: &'p str) -> Cow<'p, str> {
        Cow::Borrowed(path)
    }

    /// Adds the service's own counters to `/metrics`.
    fn register_metrics(&self, _registry: &mut Registry) {}

    /// Bytes that responses repeat and that can be sent without a copy.
    fn static_body(&self) -> Option<Arc<StaticBody>> {
        None
    }
}

impl<S: StatelessService> Service for S {
    type Local = ();

    fn init_thread(&self, _: &Timer) -> io::Result<()> {
        Ok(())
    }

    fn handle(
        &self,
        (): &(),
        request: Request<RequestBody>,
        context: &RequestContext,
    ) -> impl Future<Output = ServiceReply> {
        StatelessService::handle(self, request, context)
    }

    fn builtin_path<'p>(&self, path: &'p str) -> Cow<'p, str> {
        StatelessService::builtin_path(self, path)
    }

    fn register_metrics(&self, registry: &mut Registry) {
        StatelessService::register_metrics(self, registry);
    }

    fn static_body(&self) -> Option<Arc<StaticBody>> {
        StatelessService::static_body(self)
    }
}
