//! Timeouts of a server's connections.

use crate::transfer_pace::{PaceRule, TransferPace};
use weir_base::Nanos;

/// Timeouts of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Idle keep-alive timeout: for the first byte of the next request.
    pub idle: Nanos,
    /// For the rest of a request's head, from its first byte (against Slowloris attacks).
    pub head: Nanos,
    /// For further bytes of a request's body.
    pub body: Nanos,
    /// For the peer to accept further bytes of a response.
    pub write: Nanos,
    /// For any byte, in either direction, of a connection that was upgraded to another protocol.
    pub tunnel: Nanos,
    /// Minimum rate of bodies while the server waits for the peer, in bytes per second; 0 is none. A peer below it ends
    /// after [`Self::body`] or [`Self::write`].
    pub min_bytes_per_s: u64,
}

impl Timeouts {
    /// Pace of a request's body.
    pub fn body_pace(&self) -> PaceRule {
        PaceRule { stall: self.body, min_bytes_per_s: self.min_bytes_per_s }
    }

    /// Pace of a response.
    pub fn write_pace(&self) -> PaceRule {
        PaceRule { stall: self.write, min_bytes_per_s: self.min_bytes_per_s }
    }
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            idle: Nanos::from_secs(75),
            head: Nanos::from_secs(10),
            body: Nanos::from_secs(60),
            write: Nanos::from_secs(60),
            tunnel: Nanos::from_secs(3600),
            min_bytes_per_s: 240,
        }
    }
}

/// Timeout that has expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeoutKind {
    /// [`Timeouts::idle`].
    Idle,
    /// [`Timeouts::head`].
    Head,
    /// [`Timeouts::body`].
    Body,
    /// [`Timeouts::write`].
    Write,
    /// [`Timeouts::tunnel`].
    Tunnel,
}

/// Time after which the system is queried whether a peer that accepts no bytes has taken some. Chosen: most stalls
/// are shorter.
const MIN_STALL: Nanos = Nanos::from_millis(500);

/// State of one connection's timeouts. None runs while the service works on a response.
#[derive(Clone, Copy, Debug)]
pub struct TimeoutTracker {
    /// Requests in progress; several with HTTP/2.
    open_requests: u32,
    /// End of the last request.
    idle: Nanos,
    head: Option<Nanos>,
    body: TransferPace,
    write: TransferPace,
    /// Last byte of an upgraded connection.
    tunnel: Option<Nanos>,
}

impl TimeoutTracker {
    /// State of a new connection.
    pub fn new(now: Nanos) -> Self {
        Self {
            open_requests: 0,
            idle: now,
            head: None,
            body: TransferPace::default(),
            write: TransferPace::default(),
            tunnel: None,
        }
    }

    /// Whether no request is in progress, not even a part of a head.
    pub fn is_idle(&self) -> bool {
        self.open_requests == 0 && self.head.is_none()
    }

    /// Whether it is idle, and all responses are written.
    pub fn is_drained(&self) -> bool {
        self.is_idle() && !self.write.is_waiting()
    }

    /// For how long it has been idle with all responses written; zero if it is not.
    pub fn idle_time(&self, now: Nanos) -> Nanos {
        if self.is_drained() && self.tunnel.is_none() { now - self.idle } else { Nanos::ZERO }
    }

    /// Records a number of received bytes.
    pub fn received(&mut self, now: Nanos, bytes: u64) {
        if let Some(last) = &mut self.tunnel {
            *last = now;
        } else if self.body.is_waiting() {
            self.body.record_moved(now, bytes);
        } else if self.open_requests == 0 && self.head.is_none() {
            self.head = Some(now);
        }
    }

    /// Records whether a part of a head has come, over HTTP/2: other frames are not one.
    pub fn set_in_head(&mut self, now: Nanos, is_in_head: bool) {
        if is_in_head {
            self.head.get_or_insert(now);
        } else {
            self.head = None;
        }
    }

    /// Requests in progress.
    pub fn open_requests(&self) -> u32 {
        self.open_requests
    }

    /// Records that the bytes received so far were not of a head: those of a TLS handshake, or the rest of a body.
    pub fn begin_idle(&mut self, now: Nanos) {
        self.head = None;
        self.idle = now;
    }

    /// Records a complete head.
    pub fn request_began(&mut self) {
        self.open_requests += 1;
        self.head = None;
    }

    /// Records a response that is complete or cancelled.
    pub fn request_ended(&mut self, now: Nanos) {
        self.open_requests = self.open_requests.saturating_sub(1);
        self.body = TransferPace::default();
        self.idle = now;
    }

    /// Records that the service waits for more of a body.
    pub fn wants_body(&mut self, now: Nanos) {
        self.body.wait(now);
    }

    /// Records that the service waits no longer for a body.
    pub fn has_body(&mut self, now: Nanos) {
        self.body.stop_waiting(now);
    }

    /// Records that the peer accepted no bytes.
    pub fn stalled(&mut self, now: Nanos) {
        self.write.wait(now);
    }

    /// Whether the peer has accepted nothing for some time.
    pub fn is_stalled(&self, now: Nanos) -> bool {
        self.write.waited(now) >= MIN_STALL
    }

    /// Records bytes that the peer has taken from the system's buffer, though that has no room for more yet.
    pub fn drained(&mut self, now: Nanos, bytes: u64) {
        if bytes > 0 {
            self.write.record_moved(now, bytes);
        }
    }

    /// Records a number of written bytes.
    pub fn wrote(&mut self, now: Nanos, bytes: u64) {
        self.write.record_moved(now, bytes);
        self.write.stop_waiting(now);
        if let Some(last) = &mut self.tunnel {
            *last = now;
        }
    }

    /// Records the upgrade to another protocol.
    pub fn switched(&mut self, now: Nanos) {
        self.tunnel = Some(now);
    }

    /// Whether the connection was upgraded.
    pub fn has_switched(&self) -> bool {
        self.tunnel.is_some()
    }

    /// Timeout that has expired by these limits. To be called regularly, see [`TransferPace::is_expired`].
    pub fn expired(&mut self, now: Nanos, limits: &Timeouts) -> Option<TimeoutKind> {
        let over = |since: Option<Nanos>, limit: Nanos| since.is_some_and(|since| now - since > limit);
        let is_slow_body = self.body.is_expired(now, limits.body_pace());
        if self.write.is_expired(now, limits.write_pace()) {
            Some(TimeoutKind::Write)
        } else if self.tunnel.is_some() {
            over(self.tunnel, limits.tunnel).then_some(TimeoutKind::Tunnel)
        } else if is_slow_body {
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
        min_bytes_per_s: 100,
    };

    fn at(timeouts: &mut TimeoutTracker, s: u64) -> Option<TimeoutKind> {
        timeouts.expired(Nanos::from_secs(s), &TIMEOUTS)
    }

    #[test]
    fn a_connection_that_asks_nothing_is_let_go_after_the_idle_limit() {
        let mut timeouts = TimeoutTracker::new(Nanos::from_secs(5));
        assert_eq!(at(&mut timeouts, 80), None);
        assert_eq!(at(&mut timeouts, 81), Some(TimeoutKind::Idle));
    }

    #[test]
    fn a_connection_is_idle_from_the_end_of_its_last_request() {
        let s = Nanos::from_secs;
        let mut timeouts = TimeoutTracker::new(s(1));
        assert_eq!(timeouts.idle_time(s(4)), s(3));
        timeouts.received(s(4), 10_000);
        assert_eq!(timeouts.idle_time(s(5)), Nanos::ZERO, "a part of a head is there");
        timeouts.request_began();
        timeouts.stalled(s(6));
        timeouts.request_ended(s(6));
        assert_eq!(timeouts.idle_time(s(9)), Nanos::ZERO, "the response is not written");
        timeouts.wrote(s(9), 10_000);
        assert_eq!(timeouts.idle_time(s(9)), s(3));
        timeouts.switched(s(10));
        assert_eq!(timeouts.idle_time(s(20)), Nanos::ZERO, "it is another protocol");
    }

    #[test]
    fn a_head_that_drips_in_gains_no_time_by_its_bytes() {
        let mut timeouts = TimeoutTracker::new(Nanos::ZERO);
        for s in 0..=10 {
            timeouts.received(Nanos::from_secs(s), 10_000);
            assert_eq!(at(&mut timeouts, s), None);
        }
        assert_eq!(at(&mut timeouts, 11), Some(TimeoutKind::Head));
    }

    #[test]
    fn a_handshake_has_the_time_of_a_head_and_the_first_request_that_of_an_idle_connection() {
        let mut timeouts = TimeoutTracker::new(Nanos::ZERO);
        timeouts.received(Nanos::ZERO, 10_000);
        assert_eq!(at(&mut timeouts, 11), Some(TimeoutKind::Head));
        timeouts.begin_idle(Nanos::from_secs(9));
        assert_eq!(at(&mut timeouts, 84), None);
        assert_eq!(at(&mut timeouts, 85), Some(TimeoutKind::Idle));
    }

    #[test]
    fn a_service_may_take_its_time() {
        let mut timeouts = TimeoutTracker::new(Nanos::ZERO);
        timeouts.received(Nanos::ZERO, 10_000);
        timeouts.request_began();
        assert_eq!(at(&mut timeouts, 100_000), None);
        timeouts.request_ended(Nanos::from_secs(100_000));
        assert_eq!(at(&mut timeouts, 100_075), None);
        assert_eq!(at(&mut timeouts, 100_076), Some(TimeoutKind::Idle));
    }

    #[test]
    fn a_body_gains_time_by_each_of_its_bytes() {
        let mut timeouts = TimeoutTracker::new(Nanos::ZERO);
        timeouts.request_began();
        timeouts.wants_body(Nanos::ZERO);
        timeouts.received(Nanos::from_secs(25), 10_000);
        assert_eq!(at(&mut timeouts, 55), None);
        assert_eq!(at(&mut timeouts, 56), Some(TimeoutKind::Body));
        timeouts.has_body(Nanos::from_secs(56));
        assert_eq!(at(&mut timeouts, 56), None);
    }

    #[test]
    fn a_body_in_single_bytes_ends_though_each_is_in_time() {
        let mut timeouts = TimeoutTracker::new(Nanos::ZERO);
        timeouts.request_began();
        let ended = (0..200).find(|s| {
            timeouts.wants_body(Nanos::from_secs(*s));
            timeouts.received(Nanos::from_secs(*s), 1);
            timeouts.has_body(Nanos::from_secs(*s));
            timeouts.wants_body(Nanos::from_secs(*s));
            at(&mut timeouts, *s).is_some()
        });
        assert_eq!(ended, Some(31));
        timeouts.request_ended(Nanos::from_secs(31));
        timeouts.request_began();
        timeouts.wants_body(Nanos::from_secs(31));
        assert_eq!(at(&mut timeouts, 61), None, "the next request has the whole time");
    }

    #[test]
    fn a_reader_that_does_not_read_is_let_go() {
        let mut timeouts = TimeoutTracker::new(Nanos::ZERO);
        timeouts.request_began();
        timeouts.stalled(Nanos::from_secs(1));
        timeouts.stalled(Nanos::from_secs(15));
        assert_eq!(at(&mut timeouts, 22), Some(TimeoutKind::Write));
        timeouts.wrote(Nanos::from_secs(22), 10_000);
        assert_eq!(at(&mut timeouts, 22), None);
    }

    #[test]
    fn a_tunnel_lives_by_its_bytes_in_either_direction() {
        let mut timeouts = TimeoutTracker::new(Nanos::ZERO);
        timeouts.request_began();
        timeouts.request_ended(Nanos::ZERO);
        timeouts.switched(Nanos::ZERO);
        assert_eq!(at(&mut timeouts, 600), None);
        timeouts.received(Nanos::from_secs(500), 10_000);
        assert_eq!(at(&mut timeouts, 1100), None);
        timeouts.wrote(Nanos::from_secs(1000), 10_000);
        assert_eq!(at(&mut timeouts, 1600), None);
        assert_eq!(at(&mut timeouts, 1601), Some(TimeoutKind::Tunnel));
    }

    #[test]
    fn http_2_is_idle_when_its_last_request_is_done() {
        let mut timeouts = TimeoutTracker::new(Nanos::ZERO);
        timeouts.request_began();
        timeouts.request_began();
        timeouts.request_ended(Nanos::from_secs(1));
        assert_eq!(at(&mut timeouts, 1000), None);
        timeouts.request_ended(Nanos::from_secs(2));
        assert_eq!(at(&mut timeouts, 1000), Some(TimeoutKind::Idle));
    }
}
