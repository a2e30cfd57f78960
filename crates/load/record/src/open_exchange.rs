//! Record of a request that is in flight. It is written when it is dropped, however the request ends.

use std::rc::Rc;

use http::HeaderMap;
use weir_base::Nanos;

use crate::body_capture::BodyCapture;
use crate::exchange::{ExchangeResponse, RecordedExchange, is_searched};
use crate::recording_state::RecordingState;

/// Record of a request that is in flight.
#[derive(Debug)]
pub(crate) struct OpenExchange {
    recording: Rc<RecordingState>,
    exchange: RecordedExchange,
    started: Nanos,
    request_body: BodyCapture,
    response_body: BodyCapture,
}

impl OpenExchange {
    /// Record of a request that begins now; its page is that of the browser's last navigation.
    pub(crate) fn new(recording: &Rc<RecordingState>, mut exchange: RecordedExchange) -> Self {
        let started = recording.now();
        exchange.started_unix_ms = recording.unix_ms(started);
        exchange.page = recording.page_of(&exchange);
        recording.begin();
        let (request_body, response_body) = (recording.budget.capture(), recording.budget.capture());
        Self { recording: Rc::clone(recording), exchange, started, request_body, response_body }
    }

    /// Copy of the request's body.
    pub(crate) fn request_body(&self) -> BodyCapture {
        self.request_body.clone()
    }

    /// Copy of the response's body.
    pub(crate) fn response_body(&self) -> BodyCapture {
        self.response_body.clone()
    }

    /// Takes the head of the response.
    pub(crate) fn set_response(&mut self, status: u16, headers: &HeaderMap) {
        self.exchange.wait_ms = self.elapsed_ms();
        self.recording.on_status(&self.exchange, status);
        self.exchange.response = Some(ExchangeResponse { status, headers: headers.clone(), body: Default::default() });
        let media_type = crate::exchange::content_type(headers);
        if !is_searched(&media_type) || self.exchange.is_static() || !self.recording.keeps_response_bodies() {
            self.response_body.count_only();
        }
    }

    /// Notes that there is no response, or not all of it.
    pub(crate) fn set_broken(&mut self, reason: &str) {
        self.exchange.left_out = Some(match self.exchange.response {
            Some(_) => format!("the response broke off: {reason}"),
            None => format!("no response: {reason}"),
        });
    }

    /// Notes that the connection was handed over to another protocol.
    pub(crate) fn set_upgraded(&mut self) {
        for (scheme, upgraded) in [("http://", "ws://"), ("https://", "wss://")] {
            if let Some(rest) = self.exchange.url.strip_prefix(scheme) {
                self.exchange.url = format!("{upgraded}{rest}");
                break;
            }
        }
        self.recording.count_upgrade();
    }

    /// Notes that the response is whole.
    pub(crate) fn set_complete(&mut self) {
        self.exchange.duration_ms = self.elapsed_ms();
    }

    fn elapsed_ms(&self) -> f64 {
        Nanos(self.recording.now().0.saturating_sub(self.started.0)).0 as f64 / 1e6
    }
}

impl Drop for OpenExchange {
    fn drop(&mut self) {
        let mut exchange = std::mem::take(&mut self.exchange);
        if exchange.duration_ms == 0.0 {
            exchange.duration_ms = self.elapsed_ms();
        }
        exchange.body = self.request_body.take();
        if let Some(response) = &mut exchange.response {
            response.body = self.response_body.take();
        } else if exchange.left_out.is_none() {
            exchange.left_out = Some("no response before the client or the recording ended".to_owned());
        }
        if exchange.body.is_cut() && exchange.left_out.is_none() {
            let length = exchange.body.length;
            exchange.left_out = Some(format!("its body of {length} bytes is not kept; see --max-body"));
        }
        self.recording.end(&exchange);
    }
}
