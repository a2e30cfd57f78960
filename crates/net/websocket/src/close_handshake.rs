//! State of a close (RFC 6455, 7.1).

use crate::close_code::CloseCode;

/// How far a connection is closed: each side sends one close frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CloseHandshake {
    sent: Option<CloseCode>,
    received: Option<CloseCode>,
}

/// What follows from a close frame of the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseStep {
    /// The peer has begun, and gets its close frame with this code; none if its own had none.
    Reply(Option<CloseCode>),
    /// The peer has replied: both sides have closed.
    Complete,
}

impl CloseHandshake {
    /// Whether this side may begin: it has not sent a close frame.
    pub fn may_send(self) -> bool {
        self.sent.is_none()
    }

    /// Notes a close frame of this side.
    pub fn sent(&mut self, code: Option<CloseCode>) {
        self.sent.get_or_insert(code.unwrap_or(CloseCode::ABSENT));
    }

    /// Takes a close frame of the peer; none without a code.
    pub fn receive(&mut self, code: Option<CloseCode>) -> CloseStep {
        self.received.get_or_insert(code.unwrap_or(CloseCode::ABSENT));
        if self.may_send() {
            self.sent(code);
            CloseStep::Reply(code)
        } else {
            CloseStep::Complete
        }
    }

    /// Whether both sides have sent their close frames.
    pub fn is_complete(self) -> bool {
        self.sent.is_some() && self.received.is_some()
    }

    /// Whether either side has begun.
    pub fn has_begun(self) -> bool {
        self.sent.is_some() || self.received.is_some()
    }

    /// Code of an end by the peer: of its close frame, or [`CloseCode::ABNORMAL`] without one.
    pub fn peer_code(self) -> CloseCode {
        self.received.unwrap_or(CloseCode::ABNORMAL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_side_sends_one_close_frame() {
        let mut ours = CloseHandshake::default();
        assert_eq!(ours.peer_code(), CloseCode::ABNORMAL);
        ours.sent(Some(CloseCode::NORMAL));
        assert!(!ours.may_send() && !ours.is_complete());
        assert_eq!(ours.receive(Some(CloseCode::NORMAL)), CloseStep::Complete);
        assert!(ours.is_complete());

        let mut theirs = CloseHandshake::default();
        assert_eq!(theirs.receive(Some(CloseCode::INTERNAL)), CloseStep::Reply(Some(CloseCode::INTERNAL)));
        assert!(theirs.is_complete() && !theirs.may_send());
        assert_eq!(theirs.peer_code(), CloseCode::INTERNAL);

        let mut both = CloseHandshake::default();
        both.sent(Some(CloseCode::GOING_AWAY));
        assert_eq!(both.receive(None), CloseStep::Complete, "both began at the same time");
        assert_eq!(both.peer_code(), CloseCode::ABSENT);
    }
}
