//! What a mix file says of its load, where the command line says nothing.

use super::super::mix_file::MixFile;
use super::{LoadArgs, parse_flags};

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
        if self.users.is_some() {
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
