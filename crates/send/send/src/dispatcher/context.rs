//! Immutable state shared by all owners.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::watch;

use super::channels::Channels;
use crate::options::Options;
use crate::stop_mode::StopMode;
use crate::store::Store;
use crate::wall_clock::wall_ms;
use weir_base::Nanos;
use weir_machine::timer::Timer;

/// Allowance added to a given delay bound, for wake-up, accept and read on both machines.
const MACHINE_DELAY: Nanos = Nanos::from_millis(2);
/// Context of the sender that all owners share; set at the start.
#[derive(Debug)]
pub(super) struct SenderContext {
    pub(super) store: Arc<dyn Store>,
    pub(super) options: Options,
    /// Keys by the names that jobs may use.
    pub(super) key_numbers: HashMap<String, u32>,
    pub(super) timer: Timer,
    pub(super) stop_mode: watch::Receiver<StopMode>,
    pub(super) channels: Channels,
    /// Whether claimed jobs may have ended by what the listener has.
    pub(super) has_reports: bool,
}

impl SenderContext {
    pub(super) fn new(
        store: Arc<dyn Store>,
        mut options: Options,
        stop_mode: watch::Receiver<StopMode>,
        timer: Timer,
        channels: Channels,
        has_reports: bool,
    ) -> Self {
        let epoch = Nanos(u64::try_from(wall_ms().0).unwrap_or(0).saturating_mul(Nanos::MILLI.0));
        options.rules.epoch = epoch - timer.now();
        options.rules.key.delay_bound = options.rules.key.delay_bound.map(|bound| bound + MACHINE_DELAY);
        let defaults = (0..).zip(&options.keys).map(|(number, key)| (key.default_name().to_owned(), number));
        let names = (0..).zip(&options.keys).map(|(number, key)| (key.name().to_owned(), number));
        let key_numbers = defaults.chain(names).collect();
        Self { store, options, key_numbers, timer, stop_mode, channels, has_reports }
    }

    /// Whether other senders share the keys.
    pub(super) fn shares_keys(&self) -> bool {
        self.store.shared_keys().is_some()
    }

    /// Whether nothing new is to be sent.
    pub(super) fn is_stopping(&self) -> bool {
        *self.stop_mode.borrow() > StopMode::WhenEmpty
    }
}
