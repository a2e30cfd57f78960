//! First iteration of a scenario, rendered before the load: what is wrong with it is wrong with all, most often.

use weir_base::Nanos;
use weir_scenario::plan::{
    FlowAction, FlowContext, FlowFailure, RenderScratch, RequestBytes, ScenarioPlan, ScenarioUser, StepFindings,
};

use super::scenario_data::ScenarioData;
use super::source::ScenarioSource;
use crate::plan::PlanError;

/// Checks that the first request of a call of gRPC has a message of its type, with the first row of data. What a setup
/// captures has no value yet.
pub(super) fn check_first_call(
    source: &ScenarioSource,
    plan: &ScenarioPlan,
    data: Option<&ScenarioData>,
    seed: u64,
) -> Result<(), PlanError> {
    if source.setup.is_some() {
        return Ok(());
    }
    let mut user = ScenarioUser::new(plan, seed, 0);
    let variables = user.prepare(plan, seed, 0);
    data.into_iter().for_each(|data| data.assign(0, 0, seed, &plan.columns, variables));
    let (mut request, mut findings) = (RequestBytes::default(), StepFindings::default());
    let (mut scratch, mut origins) = (RenderScratch::default(), plan.origins.clone());
    let mut flow = FlowContext {
        plan,
        origins: &mut origins,
        request: &mut request,
        findings: &mut findings,
        scratch: &mut scratch,
        unix_s: 0,
    };
    // A step may begin with a wait.
    if let FlowAction::WaitUntil(at) = user.begin(&mut flow, Nanos::ZERO, Nanos::ZERO) {
        user.woken(&mut flow, at);
    }
    let Some(FlowFailure::Request(error)) = findings.failures.first() else { return Ok(()) };
    let error = error.to_string();
    // The text was made from options: its lines mean nothing to a user.
    let at_line = |(place, _): &(&str, &str)| place.bytes().all(|byte| byte.is_ascii_digit() || byte == b':');
    let why = error.split_once(": ").filter(at_line).map_or(error.as_str(), |(_, why)| why);
    let row = data.map(|data| format!(", with the first row of {}", data.name)).unwrap_or_default();
    Err(PlanError::Value("body", format!("{why}{row}")))
}
