//! Requests that a program sends together, each on a stream of its own.

use std::collections::HashMap;

/// Sends of several requests, by user: what HTTP/1.1 pipelines on one connection. Their responses come in any order, and
/// the user goes on behind the last one.
#[derive(Debug, Default)]
pub(in crate::worker) struct SplitSends {
    /// Number of requests without an end.
    open: HashMap<u32, usize>,
}

impl SplitSends {
    /// Begins a send of several requests.
    pub(in crate::worker) fn begin(&mut self, user: u32, requests: usize) {
        self.open.insert(user, requests);
    }

    /// Ends one request of a user; returns how many of the same send are left, none for a send of one request.
    #[inline]
    pub(in crate::worker) fn end_request(&mut self, user: u32) -> usize {
        if self.open.is_empty() {
            return 0;
        }
        let Some(open) = self.open.get_mut(&user) else { return 0 };
        *open = open.saturating_sub(1);
        let left = *open;
        if left == 0 {
            self.open.remove(&user);
        }
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_request_of_a_send_has_none_left() {
        let mut sends = SplitSends::default();
        assert_eq!(sends.end_request(1), 0);
        sends.begin(1, 3);
        sends.begin(2, 2);
        assert_eq!([1, 2, 1, 3, 1, 2].map(|user| sends.end_request(user)), [2, 1, 1, 0, 0, 0]);
        assert!(sends.open.is_empty());
    }
}
