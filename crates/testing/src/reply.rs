//! Replies of a scripted service, step by step.

use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// A step of an answer.
#[derive(Clone, Debug)]
pub enum Step {
    /// Write these bytes.
    Send(Arc<[u8]>),
    /// Do nothing for a time, or until a moment.
    Wait(Duration),
    WaitUntil(Instant),
    /// Do nothing until the gate is open.
    Await(Gate),
    /// End the connection in order (FIN), or with a reset.
    Close,
    Reset,
    /// Read no more and answer no more, but keep the connection.
    Freeze,
}

/// An answer, step by step.
#[derive(Clone, Debug, Default)]
pub struct Reply {
    pub steps: Vec<Step>,
}

impl Reply {
    /// Nothing at all: the next request is read, and this one never answered.
    pub fn nothing() -> Self {
        Self::default()
    }

    /// These bytes.
    pub fn raw(bytes: impl AsRef<[u8]>) -> Self {
        Self::nothing().send(bytes)
    }

    /// Status 200 with a Content-Length and this body.
    pub fn ok(body: &str) -> Self {
        Self::status(200, body)
    }

    /// This status, with a Content-Length and this body.
    pub fn status(status: u16, body: &str) -> Self {
        Self::raw(format!("HTTP/1.1 {status} Said\r\nServer: scripted\r\nContent-Length: {}\r\n\r\n{body}", body.len()))
    }

    /// These bytes next.
    pub fn send(self, bytes: impl AsRef<[u8]>) -> Self {
        self.step(Step::Send(bytes.as_ref().into()))
    }

    /// The same bytes, but never more than `size` at a time, with a pause between them so that they are read singly.
    pub fn in_pieces(self, size: usize) -> Self {
        let mut steps = Vec::new();
        for step in self.steps {
            let Step::Send(bytes) = step else {
                steps.push(step);
                continue;
            };
            for piece in bytes.chunks(size) {
                steps.push(Step::Send(piece.into()));
                steps.push(Step::Wait(Duration::from_micros(200)));
            }
        }
        Self { steps }
    }

    /// All of it after this time only.
    pub fn after(mut self, time: Duration) -> Self {
        self.steps.insert(0, Step::Wait(time));
        self
    }

    /// All of it not before this moment.
    pub fn not_before(mut self, moment: Instant) -> Self {
        self.steps.insert(0, Step::WaitUntil(moment));
        self
    }

    /// A pause here.
    pub fn wait(self, time: Duration) -> Self {
        self.step(Step::Wait(time))
    }

    /// Goes on here when the gate is open.
    pub fn wait_for(self, gate: &Gate) -> Self {
        self.step(Step::Await(gate.clone()))
    }

    /// Then ends the connection in order.
    pub fn close(self) -> Self {
        self.step(Step::Close)
    }

    /// Then resets the connection.
    pub fn reset(self) -> Self {
        self.step(Step::Reset)
    }

    /// Then keeps the connection open and does nothing on it any more.
    pub fn freeze(self) -> Self {
        self.step(Step::Freeze)
    }

    fn step(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }
}

/// Holds answers back until it is opened, or for 10 min, so that no test hangs on it.
#[derive(Clone, Debug, Default)]
pub struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    pub fn open(&self) {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_all();
    }

    pub fn pass(&self) {
        let open = self.0.0.lock().unwrap();
        drop(self.0.1.wait_timeout_while(open, Duration::from_secs(600), |open| !*open).unwrap());
    }
}
