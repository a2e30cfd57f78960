//! `weir serve body`: its arguments.

use clap::Args;

use super::{Place, Workers};
use crate::serve::body;
use crate::server::{self, Running, Tell};

#[derive(Debug, Args)]
pub(super) struct BodyArgs {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    workers: Workers,
}

impl BodyArgs {
    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    pub(super) fn start(self, tell: Tell) -> Result<Running, String> {
        let service = body::Service::new().map_err(|error| error.to_string())?;
        let options = self.place.options(Some(&self.workers), tell);
        server::start(service, &options).map_err(|error| error.to_string())
    }
}
