//! WebSockets of users: orders of scripts, and what happens to them.

use weir_base::Nanos;
use weir_load::program::{KeptParts, ProgramCall, ProgramSend, SocketCommand, SocketEnd, SocketEvent, SocketOpening};

use super::exchange::HttpExchange;
use super::thread::K6Thread;
use crate::host::exchange::HttpRequest;
use crate::host::sockets::SocketOrder;
use crate::metrics::registry::BuiltIn;

/// Close code of an iteration that ends before its sockets.
const GOING_AWAY: u16 = 1001;

impl K6Thread {
    /// Gives the orders of a user's script to the load.
    pub(super) fn flush_sockets(&mut self, call: &mut ProgramCall<'_>) {
        loop {
            let Some(user) = self.user(call.user) else { return };
            let order = user.state.sockets.borrow_mut().outbox.pop_front();
            match order {
                None => return,
                Some(SocketOrder::Command(command)) => call.command(command),
                Some(SocketOrder::Open(socket, request, subprotocols)) => {
                    let opened = self.upgrade(request, call);
                    match opened {
                        Ok((send, request)) => {
                            let opening = SocketOpening { socket, send, request, subprotocols };
                            call.command(SocketCommand::Open(Box::new(opening)));
                        }
                        Err(why) => {
                            if let Some(user) = self.user(call.user) {
                                user.has_failed = true;
                                user.state.sockets.borrow_mut().end(socket, why);
                            }
                        }
                    }
                }
            }
        }
    }

    /// Request of an upgrade, and how it is sent.
    fn upgrade(&mut self, request: Box<HttpRequest>, call: &ProgramCall<'_>) -> Result<(ProgramSend, Vec<u8>), String> {
        let step = self.step_of(&request, call.scenario);
        let url = request.url.clone();
        let origin =
            self.program.origin_of(&mut self.origins, &url).ok_or_else(|| format!("'{url}': too many hosts"))?;
        let script = std::sync::Arc::clone(&self.program.script);
        let user = self.user(call.user).ok_or("no user")?;
        let left = user.given.map_or(Nanos::NEVER, |given| given.cut - call.now).max(Nanos::MILLI);
        let timeout = Some(request.timeout.min(left));
        let exchange = HttpExchange::new(request, 0, step);
        let mut bytes = Vec::new();
        {
            let mut jars = user.state.jars.borrow_mut();
            let at = if exchange.request.jar < jars.len() { exchange.request.jar } else { 0 };
            exchange.write(&script.head, &mut jars[at], &mut bytes)?;
        }
        let (intended, keeps) = (user.due, KeptParts::Nothing);
        Ok((ProgramSend { step, origin, intended, timeout, is_bodyless: false, keeps, key: 0 }, bytes))
    }

    /// Takes what has happened to a socket; whether the script of the user goes on.
    pub(super) fn take_socket_event(&mut self, event: &SocketEvent<'_>, call: &mut ProgramCall<'_>) -> bool {
        let (now, id) = (call.now, event.socket());
        let Some(user) = self.user(call.user) else { return false };
        user.state.now.set(now);
        let state = std::rc::Rc::clone(&user.state);
        let mut sockets = state.sockets.borrow_mut();
        // One of an iteration that has ended, or that the script has left.
        let Some(socket) = sockets.socket(id) else { return false };
        let ms = |time: Nanos| time.0 as f64 / 1e6;
        let value = match event {
            SocketEvent::Opened { .. } => Some((BuiltIn::WsConnecting, ms(now - socket.begun))),
            SocketEvent::Message { .. } => Some((BuiltIn::WsMsgsReceived, 1.0)),
            SocketEvent::Ping { .. } => None,
            SocketEvent::Pong { .. } => socket.pings.pop_front().map(|sent| (BuiltIn::WsPing, ms(now - sent))),
            SocketEvent::Ended { end, .. } => {
                user.has_failed |= !matches!(end, SocketEnd::Closed { .. });
                None
            }
        };
        drop(sockets);
        if matches!(event, SocketEvent::Ended { .. }) {
            state.end_socket(id);
        }
        if let Some((metric, value)) = value {
            let values = [(metric as usize, value), (BuiltIn::WsSessions as usize, 1.0)];
            let count = 1 + usize::from(matches!(event, SocketEvent::Opened { .. }));
            state.add_of_socket(id, &values[..count]);
        }
        let mut sockets = state.sockets.borrow_mut();
        if !sockets.add(id, event, now) {
            sockets.fail(id);
            user.has_failed = true;
        }
        user.due = now;
        true
    }

    /// Closes the sockets of a user whose iteration ends.
    pub(super) fn close_sockets(&mut self, call: &mut ProgramCall<'_>) {
        self.flush_sockets(call);
        let Some(user) = self.user(call.user) else { return };
        let open = user.state.sockets.borrow().ids();
        let state = std::rc::Rc::clone(&user.state);
        for socket in open {
            state.end_socket(socket);
            call.command(SocketCommand::Close { socket, code: GOING_AWAY, reason: String::new() });
        }
    }
}
