//! Indices of the steps that requests are counted under.

use std::collections::HashMap;

use super::request::ScriptRequest;

/// Indices of the steps of one thread, by class, method, and name or URL. A lookup allocates nothing.
#[derive(Debug, Default)]
pub(super) struct StepCache {
    indices: HashMap<Vec<u8>, u32>,
    /// Key of the last look.
    key: Vec<u8>,
}

impl StepCache {
    /// Index of the step of a request by a user of this scenario, if it is known.
    pub(super) fn get(&mut self, scenario: u32, request: &ScriptRequest) -> Option<u32> {
        let (kind, name) = request.name.as_ref().map_or((b'u', &request.url), |name| (b'n', name));
        self.key.clear();
        self.key.extend_from_slice(&scenario.to_ne_bytes());
        self.key.extend_from_slice(request.method.as_bytes());
        // No method has such a byte.
        self.key.extend_from_slice(&[0, kind]);
        self.key.extend_from_slice(name.as_bytes());
        self.indices.get(self.key.as_slice()).copied()
    }

    /// Stores the index of the step that was looked for last.
    pub(super) fn insert(&mut self, step: u32) {
        self.indices.insert(self.key.clone(), step);
    }
}
