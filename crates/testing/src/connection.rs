//! One connection of a scripted service.

use std::io::{self, ErrorKind, Read, Write};
use std::thread;
use std::time::Instant;

use super::reply::{Reply, Step};
use super::seen::Seen;
use super::shared::Shared;
use super::wire::Wire;

/// Requests that are kept; beyond, they are only counted.
const KEPT: usize = 20_000;

pub struct Connection<'a> {
    /// Absent once it is closed.
    wire: Option<Wire>,
    number: u64,
    turn: u64,
    buffer: Vec<u8>,
    shared: &'a Shared,
}

impl<'a> Connection<'a> {
    pub fn new(wire: Wire, number: u64, shared: &'a Shared) -> Self {
        Self { wire: Some(wire), number, turn: 0, buffer: Vec::new(), shared }
    }

    pub fn serve(&mut self) -> io::Result<()> {
        if let Some(greeting) = &self.shared.greeting {
            self.act(greeting.clone())?;
        }
        let mut batch = Vec::new();
        loop {
            while let Some(seen) = self.next_request() {
                let reply = (self.shared.script)(&seen);
                batch.push(reply);
                if batch.len() >= self.shared.batch {
                    let whole = Reply { steps: batch.drain(..).flat_map(|reply| reply.steps).collect() };
                    self.act(if self.shared.batch > 1 { joined(whole) } else { whole })?;
                }
            }
            if let Some(reply) = &self.shared.to_head
                && self.buffer.windows(4).any(|w| w == b"\r\n\r\n")
            {
                self.act(reply.clone())?;
            }
            if !self.fill()? {
                if let Some(wire) = self.wire.take() {
                    wire.close();
                }
                return Ok(());
            }
        }
    }

    /// Reads more; `false` when the peer has closed or been idle for too long.
    fn fill(&mut self) -> io::Result<bool> {
        let Some(wire) = &mut self.wire else { return Ok(false) };
        // Between requests: on a busy machine the first one, or the rest of one, may take longer.
        let is_idle = self.turn > 0 && self.buffer.is_empty();
        wire.set_patience(self.shared.idle.filter(|_| is_idle));
        self.shared.reads_every.into_iter().for_each(thread::sleep);
        let mut piece = [0; 64 * 1024];
        let read = loop {
            match wire.read(&mut piece) {
                // A read with a timeout ends so when this process was stopped for a while.
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                read => break read,
            }
        };
        match read {
            Ok(0) => Ok(false),
            Ok(length) => {
                self.buffer.extend_from_slice(&piece[..length]);
                Ok(true)
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn next_request(&mut self) -> Option<Seen> {
        let end = self.buffer.windows(4).position(|w| w == b"\r\n\r\n")? + 4;
        let head = String::from_utf8_lossy(&self.buffer[..end - 2]).into_owned();
        let mut seen =
            Seen { connection: self.number, turn: self.turn, number: 0, at: Instant::now(), head, body: Vec::new() };
        let length: usize = seen.header("content-length").map_or(0, |text| text.parse().unwrap());
        if self.buffer.len() < end + length {
            return None;
        }
        seen.body = self.buffer[end..end + length].to_vec();
        self.buffer.drain(..end + length);
        let waiting = self.buffer.windows(4).filter(|w| *w == b"\r\n\r\n").count() as u64 + 1;
        let mut state = self.shared.state.lock().unwrap();
        seen.number = state.counts.requests;
        state.counts.requests += 1;
        state.counts.used += u64::from(self.turn == 0);
        state.counts.deepest = state.counts.deepest.max(waiting);
        if state.seen.len() < KEPT {
            state.seen.push(seen.clone());
        }
        drop(state);
        self.shared.changed.notify_all();
        self.turn += 1;
        Some(seen)
    }

    fn act(&mut self, reply: Reply) -> io::Result<()> {
        for step in reply.steps {
            let Some(wire) = &mut self.wire else { return Ok(()) };
            match step {
                Step::Send(bytes) => {
                    for piece in bytes.chunks(256 * 1024) {
                        wire.write_all(piece)?;
                        wire.flush()?;
                        self.shared.state.lock().unwrap().counts.bytes_sent += piece.len() as u64;
                        self.shared.changed.notify_all();
                    }
                }
                Step::Wait(time) => thread::sleep(time),
                Step::WaitUntil(moment) => thread::sleep(moment.saturating_duration_since(Instant::now())),
                Step::Await(gate) => gate.pass(),
                Step::Close => self.wire.take().into_iter().for_each(Wire::close),
                Step::Reset => self.wire.take().into_iter().for_each(Wire::reset),
                Step::Freeze => {
                    // Until the test is over: nothing else ends it, since nothing is read.
                    let state = self.shared.state.lock().unwrap();
                    let _state = self.shared.changed.wait_while(state, |state| !state.stopped).unwrap();
                    return Err(ErrorKind::Other.into());
                }
            }
        }
        Ok(())
    }
}

/// All bytes of a batch in one write, unless it is to come in pieces.
fn joined(reply: Reply) -> Reply {
    if reply.steps.iter().any(|step| matches!(step, Step::Wait(_))) {
        return reply;
    }
    let mut all = Vec::new();
    let mut rest = Vec::new();
    for step in reply.steps {
        match step {
            Step::Send(bytes) => all.extend_from_slice(&bytes),
            other => rest.push(other),
        }
    }
    let mut reply = Reply::raw(all);
    reply.steps.extend(rest);
    reply
}
