//! Requests that their service handles without a future.

use std::cell::RefCell;
use std::rc::Rc;

use super::request_stream::RequestStream;
use super::{ConcludedReply, until_client_leaves};
use crate::Service;
use crate::connection_state::ConnectionState;
use crate::direct::DirectReply;
use crate::thread_context::{OpenedRequest, ThreadContext};

/// The response to a request; None if the client leaves, or gets none.
pub(super) async fn respond<S: Service>(
    home: &Rc<ThreadContext<S>>,
    watch: &Rc<ConnectionState>,
    stream: &Rc<RefCell<RequestStream>>,
    mut opened: OpenedRequest,
    direct: DirectReply,
) -> Option<ConcludedReply> {
    let mut future = match direct {
        DirectReply::Ready(reply) => return home.conclude(watch, opened, reply).ok().map(ConcludedReply::Any),
        DirectReply::Future(future) => future,
        DirectReply::Pending(mut request) => {
            if let Some(mut response) = until_client_leaves(stream, |cx| request.poll(cx)).await? {
                home.conclude_head(watch, &mut opened, response.status, &mut response.headers);
                return Some(ConcludedReply::Whole(response, opened.record));
            }
            request.into_future()
        }
    };
    let reply = until_client_leaves(stream, |cx| future.as_mut().poll(cx)).await?;
    home.conclude(watch, opened, reply).ok().map(ConcludedReply::Any)
}
