//! Clients of a file.

use std::path::Path;

use weir_base::Nanos;
use weir_document::problem::Diagnostic;
use weir_document::read::DocumentTable;

use super::client_table::{ENDLESS, client};
use super::load_client::LoadClient;

/// Composition of clients.
///
/// ```toml
/// [[client]]
/// name = "chat"
/// stages = "0-8/1m,8/5m"
/// arrivals = "weibull"
/// cv = 2.5
/// input_tokens = "lognormal 300 2000"
/// output_tokens = "exponential 250"
/// prefix_tokens = 512
/// conversations = "40%"
/// turns = "2..8"
/// think = "lognormal 20s 2m"
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClientMix {
    /// Clients, in order, at least one; their names are different.
    pub clients: Vec<LoadClient>,
}

impl ClientMix {
    /// Maximum number of clients: each is a step of the result.
    pub const MAX_CLIENTS: usize = 256;

    /// Parses a file; `name` stands before each mistake.
    ///
    /// # Errors
    /// All mistakes, a line each.
    pub fn parse(name: &str, text: &str) -> Result<Self, String> {
        let lines = |problems: Vec<Diagnostic>| {
            problems.iter().map(|problem| format!("{name}:{problem}")).collect::<Vec<_>>().join("\n")
        };
        let parsed = weir_document::parse(text, Path::new(""), |table, _| Self::take(table));
        parsed.map(|(mix, _)| mix).map_err(lines)
    }

    fn take(table: &DocumentTable<'_>) -> Self {
        let nodes = table.get("client").and_then(|node| node.list()).unwrap_or_default();
        if nodes.is_empty() {
            table.error("a composition without clients", "write [[client]] with rate = 2");
        }
        let mut clients: Vec<LoadClient> = Vec::with_capacity(nodes.len());
        for (at, node) in nodes.iter().enumerate() {
            if at == Self::MAX_CLIENTS {
                node.error(
                    format!("more than {at} clients"),
                    "put those that are alike together, with the sum of their rates",
                );
                break;
            }
            let Some(client) = client(node, at) else { continue };
            if clients.iter().any(|other| other.name == client.name) {
                node.error(
                    format!("a second client with the name {:?}", client.name),
                    r#"give it another one, name = "...""#,
                );
            }
            clients.push(client);
        }
        table.check_unknown_keys();
        Self { clients }
    }

    /// Whether a client has no end.
    pub fn is_endless(&self) -> bool {
        self.clients.iter().any(|client| client.end() >= ENDLESS)
    }

    /// Whether sessions have several turns.
    pub fn has_turns(&self) -> bool {
        self.clients.iter().any(|client| client.conversations > 0.0)
    }

    /// Mean rate of sessions of all clients, per second: of each over its own time.
    pub fn mean_rate(&self) -> f64 {
        let mean = |client: &LoadClient| {
            let expected: f64 = client.stages.iter().map(weir_pace::schedule::LoadStage::expected).sum();
            expected / client.end().max(Nanos(1)).as_secs_f64()
        };
        self.clients.iter().map(mean).sum()
    }
}
