//! Reports that a frame of the page shows, each at an address that cannot be guessed: a frame sends no token.

use std::collections::VecDeque;

/// Maximum number of reports that are kept; the oldest ones go first.
const MAX_DOCUMENTS: usize = 16;

/// Reports by the last part of their address.
#[derive(Debug, Default)]
pub(crate) struct ShownDocuments(VecDeque<(String, String)>);

impl ShownDocuments {
    /// Keeps a report.
    pub(crate) fn add(&mut self, name: String, html: String) {
        self.0.push_back((name, html));
        let surplus = self.0.len().saturating_sub(MAX_DOCUMENTS);
        self.0.drain(..surplus);
    }

    /// Report of a name.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, html)| html.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_reports_are_kept() {
        let mut documents = ShownDocuments::default();
        (0..100).for_each(|i| documents.add(format!("name-{i}"), i.to_string()));
        let found = [documents.get("name-99"), documents.get("name-84"), documents.get("name-83"), documents.get("")];
        assert_eq!(found, [Some("99"), Some("84"), None, None]);
    }
}
