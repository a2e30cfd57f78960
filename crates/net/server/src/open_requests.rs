//! Requests in flight, for an operator who asks: each event loop has a list of its own and is asked by a message, so
//! that a request costs no lock.

use std::cell::RefCell;
use std::rc::Rc;

use slab::Slab;
use tokio::sync::{mpsc, oneshot};

use super::request_info::{RequestInFlight, RequestLogInfo};
use weir_base::Nanos;
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

    /// Number of all, and the oldest ones; only these are described, since the event loop waits for it.
    fn oldest(&self, now: Nanos, limit: usize) -> OldestRequests {
        let open = self.0.borrow();
        let mut oldest: Vec<&Rc<RequestLogInfo>> = open.iter().map(|(_, request)| request).collect();
        if limit > 0 && limit < oldest.len() {
            oldest.select_nth_unstable_by_key(limit - 1, |request| request.began);
        }
        oldest.truncate(limit);
        (open.len(), oldest.into_iter().map(|request| request.describe(now)).collect())
    }
}

/// Number of requests in flight, and the oldest of them.
type OldestRequests = (usize, Vec<RequestInFlight>);

/// A question to an event loop: how many requests to describe, at which time, and the way of the response.
#[derive(Debug)]
pub(super) struct OpenRequestsQuery {
    limit: usize,
    /// That of the asker: event loops respond one after the other, and ages at different times have no order.
    now: Nanos,
    listed: oneshot::Sender<OldestRequests>,
}

/// Responds to questions until the server has ended.
pub(super) async fn respond(requests: Rc<OpenRequests>, mut queries: mpsc::UnboundedReceiver<OpenRequestsQuery>) {
    while let Some(query) = queries.recv().await {
        // The asker may be gone.
        let _ = query.listed.send(requests.oldest(query.now, query.limit));
    }
}

/// Lists the requests in flight of a server; see [`super::RunningServer::open_requests`].
#[derive(Clone, Debug)]
pub struct OpenRequestsHandle {
    pub(super) clock: Clock,
    pub(super) event_loops: Vec<mpsc::UnboundedSender<OpenRequestsQuery>>,
}

impl OpenRequestsHandle {
    /// All requests in flight, the oldest first. Event loops that have ended have none.
    pub async fn list(&self) -> Vec<RequestInFlight> {
        self.oldest(usize::MAX).await.1
    }

    /// Number of requests in flight, and the oldest `limit` of them, the oldest first.
    pub async fn oldest(&self, limit: usize) -> (usize, Vec<RequestInFlight>) {
        let now = self.clock.now();
        let ask = |event_loop: &mpsc::UnboundedSender<OpenRequestsQuery>| {
            let (listed, list) = oneshot::channel();
            event_loop.send(OpenRequestsQuery { limit, now, listed }).ok().map(|()| list)
        };
        // All are asked before the first one responds.
        let lists: Vec<_> = self.event_loops.iter().filter_map(ask).collect();
        let (mut count, mut all) = (0, Vec::new());
        for list in lists {
            let (of_one, oldest) = list.await.unwrap_or_default();
            count += of_one;
            all.extend(oldest);
        }
        all.sort_by_key(|request: &RequestInFlight| std::cmp::Reverse(request.age));
        all.truncate(limit);
        (count, all)
    }
}
