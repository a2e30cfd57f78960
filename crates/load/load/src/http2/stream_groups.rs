//! Users that share a connection.

use std::collections::HashMap;

use weir_scenario::plan::OriginId;

/// Users that share a connection to a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct StreamGroup {
    /// Scenario and origin; `None` for requests of the plan.
    pub(crate) origin: Option<(u32, OriginId)>,
    /// Number of the group among all users of the thread.
    pub(crate) number: u32,
}

/// Connections of groups, and origins that do not speak HTTP/2.
#[derive(Debug, Default)]
pub(crate) struct StreamGroups {
    connections: HashMap<StreamGroup, u32>,
    http1_origins: Vec<(u32, OriginId)>,
}

impl StreamGroups {
    /// Connection that a group had last. It may have ended, and its place may have gone to another one.
    pub(crate) fn get(&self, group: StreamGroup) -> Option<u32> {
        self.connections.get(&group).copied()
    }

    /// Stores the connection of a group.
    pub(crate) fn set(&mut self, group: StreamGroup, index: u32) {
        self.connections.insert(group, index);
    }

    /// Whether an origin has chosen HTTP/1.1.
    pub(crate) fn is_http1(&self, origin: (u32, OriginId)) -> bool {
        self.http1_origins.contains(&origin)
    }

    /// Notes that an origin has chosen HTTP/1.1.
    pub(crate) fn set_http1(&mut self, origin: (u32, OriginId)) {
        if !self.is_http1(origin) {
            self.http1_origins.push(origin);
        }
    }
}
