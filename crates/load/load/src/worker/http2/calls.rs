//! Ends of calls of gRPC: the status that a response has, or why it is a failure.

use super::super::{Flow, Worker};
use crate::event_streams::StreamObserver;
use crate::exchange::FlowExchange;
use crate::grpc::CallEnd;
use weir_base::failure::FailureKind;
use weir_base::grpc_status::{GRPC_OK, is_grpc_status};
use weir_http2::connection::ResponseTotals;

impl<F: Flow> Worker<'_, F> {
    /// Status of a whole response to a call; its exchange takes the trailers.
    ///
    /// # Errors
    /// Kind of failure of a response that has no status of gRPC, or invalid messages.
    pub(super) fn call_ended(&mut self, index: u32, key: u32, totals: &ResponseTotals) -> Result<u16, FailureKind> {
        let Self { connections, results, .. } = self;
        let streams = connections.get(index).and_then(|slot| slot.streams.as_mut());
        let Some((fields, Some(exchange))) = streams.map(|streams| streams.head_text_and(key)) else {
            return Ok(totals.status);
        };
        let has_trailers = totals.grpc_status.is_some();
        if has_trailers
            && !fields.starts_with(b"HTTP/")
            && let Some(kept) = exchange.inner.kept()
        {
            weir_net::wire::ResponseObserver::trailers(kept, fields);
        }
        let has_stopped = exchange.inner.observer().is_some_and(StreamObserver::has_stopped);
        match CallEnd::of(totals, has_stopped) {
            CallEnd::Status(GRPC_OK) => match exchange.inner.message_fault() {
                // The rest of a message does not come once the response is ended on purpose.
                Some(fault) if !has_stopped => {
                    results.counters.record_detail(FailureKind::Body, || fault.to_owned());
                    exchange.inner.set_fault(fault);
                    Err(FailureKind::Body)
                }
                _ => Ok(GRPC_OK),
            },
            CallEnd::Status(status) => {
                if !is_grpc_status(status) {
                    results.counters.record_message(status, || CallEnd::http_text(status).to_owned());
                } else if has_trailers {
                    results.counters.record_message(status, || CallEnd::message(fields));
                }
                Ok(status)
            }
            CallEnd::Missing(status) => {
                let reason = CallEnd::missing_text(status);
                exchange.inner.set_fault(&reason);
                results.counters.record_detail(FailureKind::Protocol, || reason.into_owned());
                Err(FailureKind::Protocol)
            }
        }
    }
}
