//! Options of the shop.

use crate::number_range::check_number;
use crate::shop::rules::store::ShopRules;
use weir_base::Nanos;
use weir_workload::delay::Delay;
use weir_workload::mix::Mix;

/// Options of the service.
#[derive(Clone, Debug)]
pub struct Options {
    /// Rules of the shop, and the seed of all random choices.
    pub rules: ShopRules,
    /// Number of items, from 1.
    pub items: u32,
    /// Behaviours towards requests.
    pub mix: Mix,
    /// Response delay.
    pub delay: Delay,
    /// Response delay of slow responses.
    pub slow_delay: Delay,
    /// Fraction of item responses with another price than the list's, in [0, 1].
    pub wrong_price: f64,
    /// Fraction of responses that close their connection, in [0, 1].
    pub close: f64,
    /// Whether a login is redirected to `/home`, which then has the token.
    pub redirects_login: bool,
    /// Whether bodies are compressed with gzip.
    pub uses_gzip: bool,
}

impl Options {
    /// Number of items without a flag.
    pub const DEFAULT_ITEMS: u32 = 30;
    /// Most sessions without a flag.
    pub const DEFAULT_MAX_SESSIONS: usize = 100_000;

    /// Checks the options.
    ///
    /// # Errors
    /// First invalid option, by its flag, in one line.
    pub fn check(&self) -> Result<(), String> {
        check_number("items", self.items, 1..=1_000_000)?;
        check_number("max-sessions", self.rules.max_sessions, 1..=1_000_000)
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            rules: ShopRules {
                max_sessions: Self::DEFAULT_MAX_SESSIONS,
                rotates_cookie: false,
                needs_csrf: false,
                seed: 0,
            },
            items: Self::DEFAULT_ITEMS,
            mix: Mix::good(),
            delay: Delay::Constant(Nanos::ZERO),
            slow_delay: Delay::Constant(Nanos::from_secs(10)),
            wrong_price: 0.0,
            close: 0.0,
            redirects_login: false,
            uses_gzip: false,
        }
    }
}
