//! What the gate is to do: from a file, as shipped, or from flags.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;

use super::ConfigErrors;
use crate::decide::policy::Policy;
use crate::gate::config::{self, Config, Diagnostic, FlagConfig};

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(super) struct ConfigSource {
    /// Upstreams, policies and routes, as TOML; SIGHUP reads it again
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// GET /api/smart/{timeout} in front of this service: an answer within so many ms, from three requests at most
    #[arg(long, value_name = "URL")]
    smart: Option<String>,
    /// All requests go to this service; repeatable: its hosts take turns
    #[arg(long, value_name = "URL")]
    upstream: Vec<String>,
}

impl ConfigSource {
    /// What it is called in messages.
    pub(super) fn name(&self) -> Cow<'_, str> {
        match (&self.config, &self.smart) {
            (Some(path), _) => path.to_string_lossy(),
            (None, Some(_)) => "--smart".into(),
            (None, None) => "--upstream".into(),
        }
    }

    /// Whether it can be read again.
    pub(super) fn is_file(&self) -> bool {
        self.config.is_some()
    }

    /// Reads it; `policy` is for upstreams that flags name.
    ///
    /// # Errors
    /// All that is wrong.
    pub(super) fn read(&self, policy: Policy) -> Result<Config, ConfigErrors> {
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
        let text = fs::read_to_string(path).map_err(|error| vec![format!("cannot read {}: {error}", self.name())])?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let named = |problem: &Diagnostic| format!("{}:{problem}", self.name());
        config::parse(&text, folder).map_err(|problems| problems.iter().map(named).collect())
    }
}

/// What there is in a configuration, counted.
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
