//! Open connections of one user.

use weir_scenario::plan::OriginId;

/// Open connections of one user without a request, in the order of their last use. Some may have ended meanwhile.
#[derive(Debug, Default)]
pub(crate) struct UserConnections {
    /// Scenario, origin, and index of the connection.
    idle: Vec<(u32, OriginId, u32)>,
}

impl UserConnections {
    /// Next connection to an origin.
    pub(crate) fn take(&mut self, scenario: u32, origin: OriginId) -> Option<u32> {
        let at = self.idle.iter().position(|(of, to, _)| (*of, *to) == (scenario, origin))?;
        Some(self.idle.remove(at).2)
    }

    /// Whether there may be a connection to an origin.
    pub(crate) fn has(&self, scenario: u32, origin: OriginId) -> bool {
        self.idle.iter().any(|(of, to, _)| (*of, *to) == (scenario, origin))
    }

    /// Stores a connection for the user's next request to an origin.
    pub(crate) fn keep(&mut self, scenario: u32, origin: OriginId, index: u32) {
        self.idle.push((scenario, origin, index));
    }

    /// Connection that was used longest ago, if a further one would make more than `max`.
    pub(crate) fn take_surplus(&mut self, max: usize) -> Option<u32> {
        (!self.idle.is_empty() && self.idle.len() >= max).then(|| self.idle.remove(0).2)
    }
}
