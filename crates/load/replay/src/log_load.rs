//! Access logs that give a load its rate, or its requests.

use std::path::PathBuf;
use std::time::Duration;

use crate::log::log_factor;
use weir_load::Options;

/// Access logs that give a load its rate, or its requests.
#[derive(Clone, Debug, Default)]
pub struct LogLoad {
    /// Logs whose rate over time the load has, in order.
    pub rate_from: Vec<PathBuf>,
    /// Factor of the rate, from 0.001; 1 without one.
    pub scale: Option<f64>,
    /// Factor of the speed, from 0.001; 1 without one.
    pub speed: Option<f64>,
    /// Logs whose requests are sent, in their mix.
    pub mix_from: Vec<PathBuf>,
    /// Format of their lines; None to detect it.
    pub log_pattern: Option<String>,
}

impl LogLoad {
    /// Reads the logs into the options of a load, whose duration cuts the rate off.
    ///
    /// # Errors
    /// One line with the flag of `weir load`: a log cannot be read, has no request, or does not go with the options.
    pub fn apply(&self, options: &mut Options) -> Result<(), String> {
        for (flag, factor) in [("scale", self.scale), ("speed", self.speed)] {
            let Some(factor) = factor else { continue };
            if self.rate_from.is_empty() {
                return Err(format!("--{flag} needs --rate-from"));
            }
            log_factor(&factor.to_string()).map_err(|why| format!("--{flag}: {why}"))?;
        }
        let has_load = options.rate.is_some() || options.users.is_some();
        if !self.rate_from.is_empty() && (has_load || !options.stages.is_empty() || !options.user_stages.is_empty()) {
            return Err("--rate-from cannot be used with --rate, --stages or --users; the log has the rate".to_owned());
        }
        let length: Option<Duration> = options.duration;
        if let Some(rate) = self.rate(length)? {
            (options.stages, options.duration) = (rate.stages, None);
        }
        if !self.mix_from.is_empty() {
            if !options.scenarios.is_empty() || options.program.is_some() {
                return Err("--mix-from and --scenario cannot be combined; the log has the requests".to_owned());
            }
            options.scenarios = self.scenarios(&std::mem::take(&mut options.request_scenario))?;
        }
        Ok(())
    }
}
