//! Plan of a load that a program drives.

use std::path::Path;
use std::sync::Arc;

use super::requests::{authorization, read_body};
use super::run_length::RunLength;
use super::{LoadPlan, Pacing, PlanError};
use crate::grpc::GrpcCalls;
use crate::http2::Http2Plan;
use crate::options::Options;
use crate::program::{ProgramCalls, ProgramThread, RemoteProgram, UserProgram};
use crate::steps::{
    OriginResolver, ProgramFlows, ProgramPlan, ResolvedOrigin, StepFlows, UserFlow, UserTable, distinct,
};
use weir_base::Nanos;
use weir_measure::run_script::RunScript;
use weir_measure::run_steps::StepFacts;
use weir_net::target::Target;
use weir_net::wire::{RequestError, WireRequest, parse_header};
use weir_pace::source::RequestSource;
use weir_request::request_framing::{CallerFraming, closes_connection};
use weir_request::secret_mask::SecretMask;

impl LoadPlan {
    /// Lets a program drive the users of the load; `options` are those of the plan.
    ///
    /// # Errors
    /// If TLS cannot be configured.
    pub fn driven_by(self, program: Arc<dyn UserProgram>, options: &Options) -> Result<Self, PlanError> {
        let per_user = program.connections_per_user().max(1);
        let calls = program.calls();
        let are_calls = calls == ProgramCalls::Always;
        let of_calls = |target: Target| Target { url: target.url.replacen("http", "grpc", 1), ..target };
        let http2 = self.http2.map(|http2| Http2Plan { shares_users: true, ..http2 }.for_calls(are_calls));
        let until = RunLength::of(options)?.of_iterations(&self.pacing);
        Ok(Self {
            users: self.connections,
            connections: self.connections.saturating_mul(per_user),
            until,
            // A user opens its connections itself, when the program first needs them.
            preconnect: 0,
            requests: Vec::new(),
            http2: http2.or_else(|| (calls == ProgramCalls::ByOrigin).then(Http2Plan::of_calls_alone)),
            grpc: if are_calls { Some(GrpcCalls::of(None, None)) } else { self.grpc },
            target: if are_calls { of_calls(self.target) } else { self.target },
            program: Some(ProgramPlan {
                program,
                resolver: OriginResolver::new(options)?,
                mask: options.secret_mask(),
            }),
            ..self
        })
    }

    /// The same load, whose reports and samples do not show these values.
    #[must_use]
    pub fn masking(self, values: &[String]) -> Self {
        let masked = |mask: SecretMask| mask.with_values(values);
        let program = self.program.map(|program| ProgramPlan { mask: masked(program.mask), ..program });
        Self { mask: masked(self.mask), program, ..self }
    }

    /// The same load, which reports show as that of a script: no request is the one of the URL.
    #[must_use]
    pub fn of_script(self, script: &Path) -> Self {
        let name = script.file_name().unwrap_or(script.as_os_str()).to_string_lossy();
        let url = format!("{name} at {}", self.target.url.trim_end_matches('/'));
        Self { target: Target { url, ..self.target }, method: String::new(), ..self }
    }

    /// Gives the load the arrivals of a program, such as those of a log; `options` are those of the plan, whose
    /// duration cuts it off.
    ///
    /// # Errors
    /// If TLS cannot be configured.
    pub fn replaying(self, program: Arc<dyn UserProgram>, options: &Options) -> Result<Self, PlanError> {
        let plan = Self { pacing: Pacing::Recorded, ..self }.driven_by(program, options)?;
        // Each request has its own method.
        let method = String::new();
        Ok(Self { until: options.duration.map_or(Nanos::NEVER, Nanos::from), method, ..plan })
    }

    /// The same load, with users that other processes drive if the options have a program.
    pub(super) fn with_remote_users(self, options: &Options) -> Result<Self, PlanError> {
        match &options.program {
            Some(program) => self.driven_by(Arc::new(RemoteProgram::of(program)), options),
            None => Ok(self),
        }
    }

    /// Whether users play scenarios or a program, and do not repeat one request.
    pub fn has_users(&self) -> bool {
        self.scenarios.is_some() || self.program.is_some()
    }

    /// Whether a program decides when the load is over.
    pub(crate) fn has_own_pace(&self) -> bool {
        self.program.as_ref().is_some_and(|program| program.program.has_own_pace())
    }

    /// Replaces the request of the load.
    pub fn with_request(self, request: WireRequest) -> Self {
        let keep_alive = self.keep_alive && !closes_connection(&request.bytes);
        Self { requests: vec![request], source: RequestSource::new(&[1.0], self.seed), keep_alive, ..self }
    }

    /// Headers of the options for a program that makes its own requests, with those of authentication and connections.
    ///
    /// # Errors
    /// An invalid header.
    pub fn script_headers(&self, options: &Options) -> Result<Vec<(String, String)>, PlanError> {
        let given = options.headers.iter().map(|line| parse_header(line));
        let given = given.map(|line| line.map(|(name, value)| (name.to_owned(), value.to_owned())));
        let mut headers = given.collect::<Result<Vec<_>, _>>()?;
        // Bodies of a program have lengths of their own.
        let pairs = headers.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        CallerFraming::of(pairs, "GET", 0).map_err(RequestError::from)?;
        headers.retain(|(name, value)| !value.is_empty() && !name.eq_ignore_ascii_case("content-length"));
        let has = |name: &str, headers: &[(String, String)]| headers.iter().any(|(n, _)| n.eq_ignore_ascii_case(name));
        if let Some(authorization) = authorization(options, &self.target)?
            && !has("authorization", &headers)
        {
            headers.push(("Authorization".to_owned(), authorization));
        }
        if !self.keep_alive && !has("connection", &headers) {
            headers.push(("Connection".to_owned(), "close".to_owned()));
        }
        Ok(headers)
    }

    /// Body of the options for a program that makes its own requests.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn script_body(&self, options: &Options) -> Result<Option<Vec<u8>>, PlanError> {
        options.bodies.first().map(read_body).transpose()
    }

    /// Copy of a program's load, without its listener, for a thread that may outlast the run.
    pub(crate) fn detached(&self) -> Self {
        Self {
            target: self.target.clone(),
            addresses: self.addresses.clone(),
            tls: self.tls.clone(),
            method: self.method.clone(),
            mask: self.mask.clone(),
            requests: self.requests.clone(),
            source: self.source.clone(),
            pacing: self.pacing.clone(),
            data_end: self.data_end.clone(),
            user_stages: self.user_stages.clone(),
            control: self.control.clone(),
            messages: None,
            scenarios: None,
            program: self.program.clone(),
            trace: None,
            tracing: self.tracing.clone(),
            ..*self
        }
    }

    /// Users of thread `index`.
    ///
    /// # Errors
    /// Why a program has not begun, or that the load [has no users](Self::has_users).
    pub(crate) fn user_table(&self, index: u64) -> Result<UserTable<'_>, String> {
        let flow: Box<dyn UserFlow + '_> = match (&self.scenarios, &self.program) {
            (Some(mix), _) => Box::new(StepFlows::new(mix, self.seed, self.user_numbers(index))),
            (None, Some(plan)) => {
                let thread = ProgramThread {
                    index,
                    count: self.threads,
                    seed: self.seed,
                    users: self.shard.split(index, self.threads),
                };
                let program = plan.program.thread(thread)?;
                let target = ResolvedOrigin::new(self.addresses.clone(), self.tls.clone());
                let name = self.target.url.clone();
                Box::new(ProgramFlows::new(plan, program, target, name))
            }
            (None, None) => return Err("no users".into()),
        };
        let mut users = UserTable::new(flow, self.users_of(index));
        users.findings.keeps_captures = self.trace.is_some();
        Ok(users)
    }

    /// Measurements so far of the program in this process; `None` without such a one.
    pub fn measured(&self, elapsed: Nanos) -> Option<RunScript> {
        self.program.as_ref()?.program.measured(elapsed)
    }

    /// Names of the scenarios, in order; empty for one request.
    pub fn scenario_names(&self) -> Vec<String> {
        match (&self.scenarios, &self.program) {
            (Some(mix), _) => mix.names(),
            (None, Some(plan)) => plan.program.scenarios(),
            (None, None) => Vec::new(),
        }
    }

    /// Steps in the order of their indices; those of a program may become more during the run.
    pub fn step_facts(&self) -> Vec<StepFacts> {
        match (&self.scenarios, &self.program) {
            (Some(mix), _) => mix.step_facts(),
            (None, Some(plan)) => {
                let shown = |step: StepFacts| StepFacts { name: self.mask.shown(&step.name), ..step };
                distinct(plan.program.steps().into_iter().map(shown).collect())
            }
            (None, None) => Vec::new(),
        }
    }
}
