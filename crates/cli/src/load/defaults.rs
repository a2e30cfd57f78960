//! Load options from a mix file, for those that the command line leaves out.

use super::super::request_args::RequestArgs;
use super::{LoadArgs, LoadStagesFlag, parse_flags};
use weir_load::mix_file::MixFile;
use weir_pace::schedule::Arrivals;

/// Load options of a mix file that a capacity search uses.
pub(crate) struct SearchDefaults {
    pub(crate) connections: Option<u64>,
    pub(crate) threads: Option<u64>,
    pub(crate) seed: Option<u64>,
    pub(crate) arrivals: Option<Arrivals>,
    pub(crate) request_args: RequestArgs,
}

impl SearchDefaults {
    /// Keys of `[load]` that a search decides itself.
    pub(crate) const UNUSED_KEYS: [&str; 8] =
        ["users", "ramp_up", "loops", "requests", "duration", "rate", "stages", "warmup"];

    /// Reads the flags of a mix file.
    ///
    /// # Errors
    /// One line, if a flag is invalid; the file was checked before.
    pub(crate) fn of_mix(mix: &MixFile) -> Result<Self, String> {
        let LoadArgs { connections, threads, seed, arrivals, request_args, .. } = parse_flags(&mix.flags)?;
        Ok(Self { connections, threads, seed, arrivals, request_args })
    }
}

/// Settings of a mix file that a study does not use, and the file's own warnings; a line each.
pub(super) fn study_warnings(mix: &MixFile) -> Vec<String> {
    let mut warnings = mix.warnings.clone();
    let thresholds = mix.slos.iter().map(|objective| format!("\"{}\"", objective.slo));
    let unused: Vec<String> = thresholds.chain(mix.abort.iter().map(|_| "abort".to_owned())).collect();
    if !unused.is_empty() {
        let unused = unused.join(", ");
        warnings.push(format!("the mix file's thresholds are not used: {unused}; a study only compares"));
    }
    warnings
}

impl LoadArgs {
    /// Adds what a mix file says; the command line wins.
    pub(super) fn add_mix(&mut self, mix: Option<MixFile>) -> Result<(), String> {
        let Some(mix) = mix else { return Ok(()) };
        let mut file = parse_flags(&mix.flags)?;
        (file.users, file.rate) = (file.users.or(mix.users), file.rate.or(mix.rate_per_s));
        let has_connections = self.connections.is_some() && file.rate.is_none() && file.stages.is_none();
        if self.rate.is_some() || self.stages.is_some() || has_connections {
            (file.users, file.ramp_up, file.loops) = (None, None, None);
        }
        if self.users.is_some() || self.stages.as_ref().is_some_and(LoadStagesFlag::are_of_users) {
            (file.rate, file.arrivals, file.connections) = (None, None, None);
        }
        if self.users.is_some() || self.rate.is_some() {
            file.stages = None;
        }
        if self.stages.is_some() {
            (file.rate, file.duration) = (None, None);
        }
        self.connections = self.connections.or(file.connections);
        self.requests = self.requests.or(file.requests);
        self.duration = self.duration.or(file.duration);
        self.threads = self.threads.or(file.threads);
        self.users = self.users.or(file.users);
        self.ramp_up = self.ramp_up.or(file.ramp_up);
        self.loops = self.loops.or(file.loops);
        self.rate = self.rate.or(file.rate);
        self.arrivals = self.arrivals.or(file.arrivals);
        self.stages = self.stages.take().or(file.stages);
        self.warmup = self.warmup.or(file.warmup);
        self.seed = self.seed.or(file.seed);
        self.request_args.add_defaults(file.request_args);
        Ok(())
    }
}
