//! What all loads have in common, whatever their requests are.

use super::requests::keeps_alive;
use super::run_length::{RunLength, check_warmup};
use super::{AgentPosition, DEFAULT_TIMEOUT, LoadPlan, Pacing, PlanError, pacing, positive_time, threads};
use crate::options::Options;
use crate::steps::ResolvedOrigin;
use weir_base::Nanos;
use weir_net::target::Target;
use weir_pace::shard::Shard;
use weir_pace::source::RequestSource;

/// Length, pacing and warm-up of a load.
pub(super) struct LoadFrame {
    pub(super) length: RunLength,
    pub(super) pacing: Pacing,
    /// Number of users or connections of all agents together.
    pub(super) users: u64,
    warmup: Nanos,
    seed: u64,
}

impl LoadFrame {
    /// Validates the options of the frame.
    pub(super) fn of(options: &Options) -> Result<Self, PlanError> {
        let seed = options.seed.unwrap_or(0);
        let length = RunLength::of(options)?;
        let (pacing, users) = pacing(options, seed)?;
        let warmup = Nanos::from(options.warmup.unwrap_or_default());
        check_warmup(warmup, length.of_arrivals(&pacing))?;
        Ok(Self { length, pacing, users, warmup, seed })
    }

    /// Plan of one agent's part of the load to a service, which has no requests yet.
    pub(super) fn plan(
        self,
        options: &Options,
        target: Target,
        ResolvedOrigin { addresses, tls, .. }: ResolvedOrigin,
        position: AgentPosition,
    ) -> Result<LoadPlan, PlanError> {
        let shard = Shard::WHOLE.split(position.index, position.count);
        let users = shard.count(self.users);
        Ok(LoadPlan {
            target,
            addresses,
            tls,
            method: String::new(),
            requests: Vec::new(),
            source: RequestSource::new(&[], self.seed),
            shard,
            connections: users,
            users,
            threads: threads(options, &self.pacing, users, position)?,
            until: self.length.of_arrivals(&self.pacing),
            pacing: self.pacing,
            limit: self.length.requests,
            data_end: None,
            warmup: self.warmup,
            timeout: positive_time("timeout", options.timeout.unwrap_or(DEFAULT_TIMEOUT))?,
            keep_alive: keeps_alive(options),
            pipeline: 1,
            http2: None,
            grpc: None,
            streams: options.streams,
            preconnect: 0,
            spin: options.spin,
            seed: self.seed,
            interval: Nanos::SECOND,
            messages: None,
            scenarios: None,
            program: None,
            user_stages: options.user_stages.clone(),
            ends_with_requests: self.length.ends_with_requests,
            control: None,
            trace: None,
            mask: options.secret_mask(),
            tracing: None,
        })
    }
}
