//! Arguments of `weir serve shop`.

use clap::Args;

use super::{ServiceArgs, WorkerArgs};
use weir_base::units;
use weir_serve::shop::Options;
use weir_serve::shop::rules::store::ShopRules;
use weir_serve::{TestService, read_delay};
use weir_workload::delay::Delay;
use weir_workload::mix::Mix;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  weir serve shop --delay 5ms..20ms --port 8080
  weir serve shop --mix error=5%,reset=1% --wrong-price 2% --seed 7")]
pub(super) struct ShopArgs {
    /// offer N items, 10 per page
    #[arg(long, value_name = "N", default_value_t = Options::DEFAULT_ITEMS, help_heading = SHOP)]
    items: u32,
    /// keep at most N sessions; a further login ends the oldest
    #[arg(long, value_name = "N", default_value_t = Options::DEFAULT_MAX_SESSIONS, help_heading = SHOP)]
    max_sessions: usize,
    /// set a new session cookie with each response
    #[arg(long, help_heading = SHOP)]
    rotate_cookie: bool,
    /// require an X-CSRF-Token header on cart, purchase and logout
    #[arg(long, help_heading = SHOP)]
    csrf: bool,
    /// redirect logins (302) to /home, which has the token
    #[arg(long, help_heading = SHOP)]
    redirect_login: bool,
    /// compress response bodies with gzip
    #[arg(long, help_heading = SHOP)]
    gzip: bool,
    /// delay responses, e.g. 20ms, 100ms..600ms, lognormal:200ms,p99=900ms, @FILE
    #[arg(long, value_name = "DELAY", default_value = "0ms", value_parser = read_delay, help_heading = FAULTS)]
    delay: Delay,
    /// delay slow responses this long
    #[arg(long, value_name = "DELAY", default_value = "10s", value_parser = read_delay, help_heading = FAULTS)]
    slow_delay: Delay,
    /// set weights or percentages of good, garbage, error, limited, slow, reset, hang
    #[arg(long, value_name = "WEIGHTS", default_value = "good=1", value_parser = Mix::read, help_heading = FAULTS)]
    mix: Mix,
    /// give this percentage of item responses a wrong price
    #[arg(long, value_name = "PERCENT", default_value = "0%", value_parser = units::fraction, help_heading = FAULTS)]
    wrong_price: f64,
    /// close the connection after this percentage of responses
    #[arg(long, value_name = "PERCENT", default_value = "0%", value_parser = units::fraction, help_heading = FAULTS)]
    close: f64,
    #[command(flatten)]
    service_args: ServiceArgs,
    #[command(flatten)]
    workers: WorkerArgs,
}

const SHOP: &str = "Shop";
const FAULTS: &str = "Faults";

impl ShopArgs {
    pub(super) fn into_options(self) -> (TestService, ServiceArgs, usize) {
        let rules = ShopRules {
            max_sessions: self.max_sessions,
            rotates_cookie: self.rotate_cookie,
            needs_csrf: self.csrf,
            seed: self.service_args.seed,
        };
        let options = Options {
            rules,
            items: self.items,
            mix: self.mix,
            delay: self.delay,
            slow_delay: self.slow_delay,
            wrong_price: self.wrong_price,
            close: self.close,
            redirects_login: self.redirect_login,
            uses_gzip: self.gzip,
        };
        (TestService::Shop(options), self.service_args, self.workers.workers)
    }
}
