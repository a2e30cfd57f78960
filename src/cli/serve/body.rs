//! `weir serve body`: its arguments.

use clap::Args;

use super::{Place, Workers};
use crate::serve::body;
use crate::server::{self, Running, Tell};

#[derive(Debug, Args)]
pub(super) struct BodyArgs {
    /// The longest body that /validate reads; beyond it the answer is 413
    #[arg(long, value_name = "BYTES", default_value_t = 1_048_576, value_parser = clap::value_parser!(u32).range(1..=67_108_864), help_heading = BODY)]
    max_body: u32,
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    workers: Workers,
}

const BODY: &str = "Body";

impl BodyArgs {
    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    pub(super) fn start(self, tell: Tell) -> Result<Running, String> {
        let asked = body::Options { seed: self.place.seed, most_body: self.max_body as usize };
        let service = body::Service::new(asked).map_err(|error| error.to_string())?;
        let options = self.place.options(Some(&self.workers), tell);
        server::start(service, &options).map_err(|error| error.to_string())
    }
}
