//! The source of the configuration: a file, the shipped demo, or flags.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::Args;

use super::ConfigErrors;
use weir_gate::config::{self, Config, Diagnostic, FlagConfig};
use weir_machine::input_file;
use weir_resilience::policy::Policy;

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(super) struct ConfigSource {
    /// read the configuration from FILE (TOML); SIGHUP reloads it
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// serve the demo GET /api/smart/{timeout} in front of this URL
    #[arg(long, value_name = "URL")]
    smart: Option<String>,
    /// forward calls to this URL; repeatable, load-balanced in turn
    #[arg(long, value_name = "URL")]
    upstream: Vec<String>,
}

impl ConfigSource {
    /// A file.
    pub(super) fn of_file(path: PathBuf) -> Self {
        Self { config: Some(path), smart: None, upstream: Vec::new() }
    }

    /// The source's name in messages.
    pub(super) fn name(&self) -> Cow<'_, str> {
        match (&self.config, &self.smart) {
            (Some(path), _) => path.to_string_lossy(),
            (None, Some(_)) => "--smart".into(),
            (None, None) => "--upstream".into(),
        }
    }

    /// Whether the source is a file, which can be reloaded.
    pub(super) fn is_file(&self) -> bool {
        self.config.is_some()
    }

    /// The configuration; `policy` is that of upstreams that flags name.
    ///
    /// # Errors
    /// All errors in it, one line each.
    pub(super) fn load(&self, policy: Policy) -> Result<Config, ConfigErrors> {
        if let Some(path) = &self.config {
            return self.read_file(path);
        }
        let made = match &self.smart {
            Some(url) => config::smart(url),
            None => config::from_flags(&FlagConfig { upstreams: self.upstream.clone(), policy }),
        };
        made.map_err(|why| vec![format!("{}: {why}", self.name())])
    }

    fn read_file(&self, path: &Path) -> Result<Config, ConfigErrors> {
        let text =
            input_file::read_to_string(path).map_err(|error| vec![format!("cannot read {}: {error}", self.name())])?;
        let named = |problem: &Diagnostic| problem.with_file(&self.name());
        config::parse_file(text, path).map_err(|problems| problems.iter().map(named).collect())
    }
}

/// The numbers of routes, upstreams and policies, as text.
pub(super) fn summary(config: &Config) -> String {
    let policies: BTreeSet<&str> = config.routes.iter().map(|route| route.policy.name.as_str()).collect();
    let some = |count, one, more| format!("{count} {}", if count == 1 { one } else { more });
    [
        some(config.routes.len(), "route", "routes"),
        some(config.upstreams.len(), "upstream", "upstreams"),
        some(policies.len(), "policy", "policies"),
    ]
    .join(", ")
}
