//! Scenarios of a mix.

use std::sync::Arc;

use weir_base::Nanos;
use weir_measure::run_steps::StepFacts;
use weir_scenario::plan::ScenarioPlan;

use super::ResolvedOrigin;
use super::scenario_data::ScenarioData;
use crate::grpc::JsonCodec;

/// Scenario of a mix, compiled.
#[derive(Debug)]
pub(crate) struct CompiledScenario {
    /// Name, unique in the mix.
    pub(crate) name: String,
    pub(crate) plan: ScenarioPlan,
    /// Index of its first step among the steps of the mix.
    pub(crate) first_step: u32,
    /// Addresses of the origins of the plan.
    pub(crate) addresses: Vec<ResolvedOrigin>,
    /// Rows of data, one for each iteration.
    pub(crate) data: Option<ScenarioData>,
    /// Minimum time between the starts of two iterations of a user.
    pub(crate) pacing: Option<Nanos>,
    /// Coding of messages, if the steps are calls of gRPC.
    pub(crate) codec: Option<Arc<JsonCodec>>,
    pub(super) has_setup: bool,
    pub(super) steps: Vec<StepFacts>,
}
