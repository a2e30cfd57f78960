//! How long a server waits for the other end of a connection, and what for.

use super::Nanos;

/// The longest waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// For the first byte of a next request.
    pub idle: Nanos,
    /// For the rest of a request's head, from its first byte (a head that drips in is an attack known as slow loris).
    pub head: Nanos,
    /// For any more of a body that was announced.
    pub body: Nanos,
    /// For any room to write more of an answer.
    pub write: Nanos,
    /// For any byte, in either direction, of a connection that speaks another protocol by now.
    pub tunnel: Nanos,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            idle: Nanos::from_secs(75),
            head: Nanos::from_secs(10),
            body: Nanos::from_secs(60),
            write: Nanos::from_secs(60),
            tunnel: Nanos::from_secs(3600),
        }
    }
}

/// What was waited for too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeoutKind {
    /// A next request.
    Idle,
    /// The rest of a head.
    Head,
    /// More of a body.
    Body,
    /// Room to write.
    Write,
    /// Any byte of a tunnel.
    Tunnel,
}

/// One connection's waiting. While the service itself works on an answer nobody is waited for.
#[derive(Clone, Copy, Debug)]
pub struct TimeoutTracker {
    /// Requests that are being answered; HTTP/2 has several at a time.
    open_requests: u32,
    /// Since when nothing, or only part of a head, has come.
    idle: Nanos,
    head: Option<Nanos>,
    body: Option<Nanos>,
    write: Option<Nanos>,
    /// When the last byte went over a connection that speaks another protocol by now.
    tunnel: Option<Nanos>,
}

impl TimeoutTracker {
    /// A new connection.
    pub fn new(now: Nanos) -> Self {
        Self { open_requests: 0, idle: now, head: None, body: None, write: None, tunnel: None }
    }

    /// Whether nothing is asked and nothing is owed.
    pub fn is_idle(&self) -> bool {
        self.open_requests == 0 && self.head.is_none()
    }

    /// Whether, beside that, all that was answered has gone.
    pub fn is_drained(&self) -> bool {
        self.is_idle() && self.write.is_none()
    }

    /// Bytes have come.
    pub fn received(&mut self, now: Nanos) {
        if let Some(last) = &mut self.tunnel {
            *last = now;
        } else if self.body.is_some() {
            self.body = Some(now);
        } else if self.open_requests == 0 && self.head.is_none() {
            self.head = Some(now);
        }
    }

    /// A head is complete.
    pub fn request_began(&mut self) {
        self.open_requests += 1;
        self.head = None;
    }

    /// An answer is complete, or given up.
    pub fn request_ended(&mut self, now: Nanos) {
        self.open_requests = self.open_requests.saturating_sub(1);
        self.idle = now;
    }

    /// The service wants more of a body.
    pub fn wants_body(&mut self, now: Nanos) {
        self.body.get_or_insert(now);
    }

    /// The service has the body, or wants no more of it.
    pub fn has_body(&mut self) {
        self.body = None;
    }

    /// There was no room to write.
    pub fn stalled(&mut self, now: Nanos) {
        self.write.get_or_insert(now);
    }

    /// Something could be written.
    pub fn wrote(&mut self, now: Nanos) {
        self.write = None;
        if let Some(last) = &mut self.tunnel {
            *last = now;
        }
    }

    /// The connection speaks another protocol from now on.
    pub fn switched(&mut self, now: Nanos) {
        self.tunnel = Some(now);
    }

    /// Whether it does.
    pub fn has_switched(&self) -> bool {
        self.tunnel.is_some()
    }

    /// What has been waited for longer than `limits` allow.
    pub fn expired(&self, now: Nanos, limits: &Timeouts) -> Option<TimeoutKind> {
        let over = |since: Option<Nanos>, limit: Nanos| since.is_some_and(|since| now - since > limit);
        if over(self.write, limits.write) {
            Some(TimeoutKind::Write)
        } else if self.tunnel.is_some() {
            over(self.tunnel, limits.tunnel).then_some(TimeoutKind::Tunnel)
        } else if over(self.body, limits.body) {
            Some(TimeoutKind::Body)
        } else if over(self.head, limits.head) {
            Some(TimeoutKind::Head)
        } else if self.is_idle() && over(Some(self.idle), limits.idle) {
            Some(TimeoutKind::Idle)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUTS: Timeouts = Timeouts {
        idle: Nanos::from_secs(75),
        head: Nanos::from_secs(10),
        body: Nanos::from_secs(30),
        write: Nanos::from_secs(20),
        tunnel: Nanos::from_secs(600),
    };

    fn at(patience: &TimeoutTracker, s: u64) -> Option<TimeoutKind> {
        patience.expired(Nanos::from_secs(s), &TIMEOUTS)
    }

    #[test]
    fn a_connection_that_asks_nothing_is_let_go_after_the_idle_limit() {
        let patience = TimeoutTracker::new(Nanos::from_secs(5));
        assert_eq!(at(&patience, 80), None);
        assert_eq!(at(&patience, 81), Some(TimeoutKind::Idle));
    }

    #[test]
    fn a_head_that_drips_in_gains_no_time_by_its_bytes() {
        let mut patience = TimeoutTracker::new(Nanos::ZERO);
        for s in 0..=10 {
            patience.received(Nanos::from_secs(s));
            assert_eq!(at(&patience, s), None);
        }
        assert_eq!(at(&patience, 11), Some(TimeoutKind::Head));
    }

    #[test]
    fn a_service_may_take_its_time() {
        let mut patience = TimeoutTracker::new(Nanos::ZERO);
        patience.received(Nanos::ZERO);
        patience.request_began();
        assert_eq!(at(&patience, 100_000), None);
        patience.request_ended(Nanos::from_secs(100_000));
        assert_eq!(at(&patience, 100_075), None);
        assert_eq!(at(&patience, 100_076), Some(TimeoutKind::Idle));
    }

    #[test]
    fn a_body_gains_time_by_each_of_its_bytes() {
        let mut patience = TimeoutTracker::new(Nanos::ZERO);
        patience.request_began();
        patience.wants_body(Nanos::ZERO);
        patience.received(Nanos::from_secs(25));
        assert_eq!(at(&patience, 55), None);
        assert_eq!(at(&patience, 56), Some(TimeoutKind::Body));
        patience.has_body();
        assert_eq!(at(&patience, 56), None);
    }

    #[test]
    fn a_reader_that_does_not_read_is_let_go() {
        let mut patience = TimeoutTracker::new(Nanos::ZERO);
        patience.request_began();
        patience.stalled(Nanos::from_secs(1));
        patience.stalled(Nanos::from_secs(15));
        assert_eq!(at(&patience, 22), Some(TimeoutKind::Write));
        patience.wrote(Nanos::from_secs(22));
        assert_eq!(at(&patience, 22), None);
    }

    #[test]
    fn a_tunnel_lives_by_its_bytes_in_either_direction() {
        let mut patience = TimeoutTracker::new(Nanos::ZERO);
        patience.request_began();
        patience.request_ended(Nanos::ZERO);
        patience.switched(Nanos::ZERO);
        assert_eq!(at(&patience, 600), None);
        patience.received(Nanos::from_secs(500));
        assert_eq!(at(&patience, 1100), None);
        patience.wrote(Nanos::from_secs(1000));
        assert_eq!(at(&patience, 1600), None);
        assert_eq!(at(&patience, 1601), Some(TimeoutKind::Tunnel));
    }

    #[test]
    fn http_2_is_idle_when_its_last_request_is_done() {
        let mut patience = TimeoutTracker::new(Nanos::ZERO);
        patience.request_began();
        patience.request_began();
        patience.request_ended(Nanos::from_secs(1));
        assert_eq!(at(&patience, 1000), None);
        patience.request_ended(Nanos::from_secs(2));
        assert_eq!(at(&patience, 1000), Some(TimeoutKind::Idle));
    }
}
