//! Flags of the test of recovery.

use std::time::Duration;

use clap::Args;

use weir_capacity::{CapacityOptions, RecoveryLoad, RecoveryOptions, RecoveryTrigger};

/// Heading of these flags in the help.
const RECOVERY: &str = "Recovery";
/// Default fraction of the capacity.
const DEFAULT_LOAD: RecoveryLoad = RecoveryLoad::Fraction(0.8);
/// Default disturbance: three times the load for five seconds.
const DEFAULT_TRIGGER: RecoveryTrigger = RecoveryTrigger::Spike(300, Duration::from_secs(5));
/// Default of retries: three attempts, as of the SDKs of clouds.
const DEFAULT_RETRIES: u64 = 2;

/// Test of the recovery from a disturbance.
#[derive(Clone, Debug, Args)]
pub(super) struct RecoveryArgs {
    /// test whether the service recovers from a disturbance under its load
    #[arg(long, help_heading = RECOVERY)]
    recovery: bool,
    /// test recovery at this load: 80% of the capacity, or 400/s [default: 80%]
    #[arg(long, value_name = "LOAD", requires = "recovery", value_parser = str::parse::<RecoveryLoad>, help_heading = RECOVERY)]
    load: Option<RecoveryLoad>,
    /// disturb by spike:FACTOR,TIME, pause:TIME or command:COMMAND [default: spike:3x,5s]
    #[arg(long, value_name = "TRIGGER", requires = "recovery", value_parser = str::parse::<RecoveryTrigger>, help_heading = RECOVERY)]
    trigger: Option<RecoveryTrigger>,
    /// retry each failed request up to N times [default: 2]
    #[arg(long, value_name = "N", requires = "recovery", value_parser = clap::value_parser!(u64).range(0..=20), help_heading = RECOVERY)]
    retries: Option<u64>,
}

impl RecoveryArgs {
    /// Whether the load is given, so that there is no search.
    pub(super) fn has_load(&self) -> bool {
        self.recovery && matches!(self.load, Some(RecoveryLoad::PerSecond(_)))
    }

    /// Rejects what has no recovery to test: users of a closed loop, who wait, or those of a script.
    pub(super) fn check(&self, is_closed: bool, has_script: bool) -> Result<(), String> {
        match () {
            () if !self.recovery => Ok(()),
            () if is_closed => {
                Err("--recovery cannot be used with --closed; users who wait for responses take the load \
                                    away from a service that does not respond"
                    .to_owned())
            }
            () if has_script => Err("--recovery cannot be used with a script; give a URL or a scenario".to_owned()),
            () => Ok(()),
        }
    }

    /// Test for a search with these options; none without `--recovery`.
    ///
    /// # Errors
    /// One line: the load has no requests that are retried.
    pub(super) fn options(&self, search: &CapacityOptions) -> Result<Option<RecoveryOptions>, String> {
        if !self.recovery {
            return Ok(None);
        }
        if ["ws://", "wss://"].iter().any(|scheme| search.options.url.starts_with(scheme)) {
            return Err("--recovery cannot be used with WebSocket; its messages are not retried".to_owned());
        }
        Ok(Some(RecoveryOptions {
            load: self.load.unwrap_or(DEFAULT_LOAD),
            trigger: self.trigger.clone().unwrap_or(DEFAULT_TRIGGER),
            retries: self.retries.unwrap_or(DEFAULT_RETRIES),
            timeout: search.options.timeout.unwrap_or_else(|| RecoveryOptions::default_timeout(&search.slos)),
            observe: Duration::from_secs(search.step_length.max_s),
        }))
    }
}
