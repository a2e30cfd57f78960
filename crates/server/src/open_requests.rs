//! Requests in flight, for an operator who asks: each event loop has a list of its own and is asked by a message, so
//! that a request costs no lock.

use std::cell::RefCell;
use std::rc::Rc;

use slab::Slab;
use tokio::sync::{mpsc, oneshot};

use super::request_info::{RequestInFlight, RequestLogInfo};
use weir_decide::Nanos;
use weir_machine::clock::Clock;

/// Requests in flight of one event loop.
#[derive(Debug, Default)]
pub(super) struct OpenRequests(RefCell<Slab<Rc<RequestLogInfo>>>);

impl OpenRequests {
    /// Adds a request; the key removes it.
    pub(super) fn add(&self, request: Rc<RequestLogInfo>) -> usize {
        self.0.borrow_mut().insert(request)
    }

    pub(super) fn remove(&self, key: usize) {
        self.0.borrow_mut().try_remove(key);
    }

    fn list(&self, now: Nanos) -> Vec<RequestInFlight> {
        self.0.borrow().iter().map(|(_, request)| request.describe(now)).collect()
    }
}

/// A question to an event loop, with the way of its response.
pub(super) type OpenRequestsQuery = oneshot::Sender<Vec<RequestInFlight>>;

/// Responds to questions until the server has ended.
pub(super) async fn respond(
    requests: Rc<OpenRequests>,
    clock: Clock,
    mut queries: mpsc::UnboundedReceiver<OpenRequestsQuery>,
) {
    while let Some(query) = queries.recv().await {
        // The asker may be gone.
        let _ = query.send(requests.list(clock.now()));
    }
}

/// Lists the requests in flight of a server; see [`super::RunningServer::open_requests`].
#[derive(Clone, Debug)]
pub struct OpenRequestsHandle(pub(super) Vec<mpsc::UnboundedSender<OpenRequestsQuery>>);

impl OpenRequestsHandle {
    /// All requests in flight, the oldest first. Event loops that have ended have none.
    pub async fn list(&self) -> Vec<RequestInFlight> {
        let ask = |event_loop: &mpsc::UnboundedSender<OpenRequestsQuery>| {
            let (query, listed) = oneshot::channel();
            event_loop.send(query).ok().map(|()| listed)
        };
        // All are asked before the first one responds.
        let lists: Vec<_> = self.0.iter().filter_map(ask).collect();
        let mut all = Vec::new();
        for list in lists {
            all.extend(list.await.unwrap_or_default());
        }
        all.sort_by_key(|request: &RequestInFlight| std::cmp::Reverse(request.age));
        all
    }
}
