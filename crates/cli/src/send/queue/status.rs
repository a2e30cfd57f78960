//! `weir send status`: overview of a store.

use clap::Args;

use weir_command::exit;
use weir_send::queue_view::StoreStatus;
use weir_send::wall_ms;

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    store_args: super::StoreArgs,
}

const EXAMPLES: &str = "Examples:
  weir send status jobs.jsonl.db
  weir send status redis://localhost:6379?queue=jobs --format json";

impl StatusArgs {
    pub(super) fn run(&self) -> Result<u8, String> {
        let store = self.store_args.open()?;
        let seen = StoreStatus::new(&*store, &self.store_args.url()?).map_err(|error| error.to_string())?;
        self.store_args.print(&seen.text(wall_ms()), || seen.json())?;
        Ok(exit::OK)
    }
}
