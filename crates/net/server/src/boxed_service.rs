//! Services of any type behind one: the server is then compiled once for all of them, and not for each.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;

use http::Request;
use prometheus_client::registry::Registry;
use weir_machine::executor::BoxedFuture;
use weir_machine::timer::Timer;

use super::{
    ListenerOptions, Options, RequestBody, RequestContext, RunningServer, ServerError, Service, ServiceReply,
    StaticBody, start_on,
};

/// Starts a service, as [`start`](super::start) does. Each request costs an allocation more, and the compiler a server less: for
/// services whose requests cost more than that.
///
/// # Errors
/// See [`start`](super::start).
pub fn start_boxed(service: impl Service, options: &Options) -> Result<RunningServer, ServerError> {
    start_boxed_on(service, options, &[options.plain_listener()])
}

/// Starts a service on several listeners, as [`start_on`] does; see [`start_boxed`].
///
/// # Errors
/// See [`start_on`].
pub fn start_boxed_on(
    service: impl Service,
    options: &Options,
    listeners: &[ListenerOptions],
) -> Result<RunningServer, ServerError> {
    start_any(BoxedService(Box::new(Arc::new(service))), options, listeners)
}

/// Not generic, so that this crate has the code of the server.
fn start_any(
    service: BoxedService,
    options: &Options,
    listeners: &[ListenerOptions],
) -> Result<RunningServer, ServerError> {
    start_on(service, options, listeners)
}

/// Service of any type.
struct BoxedService(Box<dyn AnyService>);

/// [`Service`] as an object.
trait AnyService: Send + Sync {
    fn bind(&self, timer: &Timer) -> io::Result<Box<dyn BoundService>>;

    fn builtin_path<'p>(&self, path: &'p str) -> Cow<'p, str>;

    fn register_metrics(&self, registry: &mut Registry);

    fn static_body(&self) -> Option<Arc<StaticBody>>;
}

/// Service with its state of one event loop, as an object.
trait BoundService {
    fn handle<'a>(
        &'a self,
        request: Request<RequestBody>,
        context: &'a RequestContext,
    ) -> BoxedFuture<'a, ServiceReply>;

    fn shutdown(&self) -> BoxedFuture<'_, ()>;

    fn crowds_out_others(&self, connection: u32) -> bool;
}

/// Service of one type with its state of one event loop.
struct ThreadService<S: Service> {
    service: Arc<S>,
    local: S::Local,
}

impl<S: Service> AnyService for Arc<S> {
    fn bind(&self, timer: &Timer) -> io::Result<Box<dyn BoundService>> {
        let local = self.init_thread(timer)?;
        Ok(Box::new(ThreadService { service: Self::clone(self), local }))
    }

    fn builtin_path<'p>(&self, path: &'p str) -> Cow<'p, str> {
        S::builtin_path(self, path)
    }

    fn register_metrics(&self, registry: &mut Registry) {
        S::register_metrics(self, registry);
    }

    fn static_body(&self) -> Option<Arc<StaticBody>> {
        S::static_body(self)
    }
}

impl<S: Service> BoundService for ThreadService<S> {
    fn handle<'a>(
        &'a self,
        request: Request<RequestBody>,
        context: &'a RequestContext,
    ) -> BoxedFuture<'a, ServiceReply> {
        Box::pin(self.service.handle(&self.local, request, context))
    }

    fn shutdown(&self) -> BoxedFuture<'_, ()> {
        Box::pin(self.service.shutdown(&self.local))
    }

    fn crowds_out_others(&self, connection: u32) -> bool {
        self.service.crowds_out_others(&self.local, connection)
    }
}

impl Service for BoxedService {
    type Local = Box<dyn BoundService>;

    fn init_thread(&self, timer: &Timer) -> io::Result<Self::Local> {
        self.0.bind(timer)
    }

    async fn handle(
        &self,
        local: &Self::Local,
        request: Request<RequestBody>,
        context: &RequestContext,
    ) -> ServiceReply {
        local.handle(request, context).await
    }

    async fn shutdown(&self, local: &Self::Local) {
        local.shutdown().await;
    }

    fn crowds_out_others(&self, local: &Self::Local, connection: u32) -> bool {
        local.crowds_out_others(connection)
    }

    fn builtin_path<'p>(&self, path: &'p str) -> Cow<'p, str> {
        self.0.builtin_path(path)
    }

    fn register_metrics(&self, registry: &mut Registry) {
        self.0.register_metrics(registry);
    }

    fn static_body(&self) -> Option<Arc<StaticBody>> {
        self.0.static_body()
    }
}
