//! Service of a page: what the server calls, for each of the pages.

use std::cell::Cell;
use std::io;
use std::rc::Rc;

use http::{Request, Response};

use weir_server::{RequestBody, RequestContext, ResponseBody, Service, ServiceReply, Timer};

/// Number of open streams of events of a thread.
pub(crate) type StreamCount = Rc<Cell<usize>>;

/// Request of a page, with what the server and its thread have of it.
pub(crate) struct PageRequest<'a> {
    pub(crate) request: Request<RequestBody>,
    pub(crate) streams: &'a StreamCount,
    pub(crate) context: &'a RequestContext,
}

/// Responses of a page.
pub(crate) trait PageReplies: Send + Sync + 'static {
    /// Called once on the thread of the page.
    fn init_thread(&self) {}

    /// The response to a request.
    fn reply(&self, asked: PageRequest<'_>) -> impl Future<Output = Response<ResponseBody>>;
}

/// Page as a service of the server.
#[derive(Debug)]
pub(crate) struct PageService<P>(pub(crate) P);

impl<P: PageReplies> Service for PageService<P> {
    type Local = StreamCount;

    fn init_thread(&self, _: &Timer) -> io::Result<StreamCount> {
        self.0.init_thread();
        Ok(StreamCount::default())
    }

    async fn handle(
        &self,
        streams: &StreamCount,
        request: Request<RequestBody>,
        context: &RequestContext,
    ) -> ServiceReply {
        self.0.reply(PageRequest { request, streams, context }).await.into()
    }
}
