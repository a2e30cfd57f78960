//! User that plays the steps of a file, with what a thread has for it; for tests and benchmarks.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::hint::black_box;

use weir_base::Nanos;
use weir_scenario::evaluate::ResponseView;
use weir_scenario::plan::{
    FlowAction, FlowContext, OriginTable, RenderScratch, RequestBytes, ScenarioPlan, ScenarioSettings, ScenarioUser,
    StepFindings,
};
use weir_scenario::value::Value;

/// User of a compiled file whose column is `n`.
pub(crate) struct StepPlayer {
    plan: ScenarioPlan,
    user: ScenarioUser,
    origins: OriginTable,
    scratch: RenderScratch,
    request: RequestBytes,
    findings: StepFindings,
}

impl StepPlayer {
    pub(crate) fn new(text: &str) -> Self {
        let file = weir_hurl::parse(text).unwrap();
        let settings = ScenarioSettings { columns: vec!["n".into()], ..ScenarioSettings::default() };
        let mut files = |name: &str| Err(name.to_owned());
        let plan = ScenarioPlan::compile(&file, &settings, &mut files).unwrap();
        Self {
            user: ScenarioUser::new(&plan, 1, 0),
            origins: plan.origins.clone(),
            plan,
            scratch: RenderScratch::default(),
            request: RequestBytes::default(),
            findings: StepFindings::default(),
        }
    }

    /// Plays an iteration, with this response to each step; returns the number of steps.
    pub(crate) fn play(&mut self, sequence: u64, n: i64, view: &ResponseView<'_>) -> u32 {
        let mut flow = FlowContext {
            plan: &self.plan,
            origins: &mut self.origins,
            request: &mut self.request,
            findings: &mut self.findings,
            scratch: &mut self.scratch,
            unix_s: 1_700_000_000,
        };
        self.user.prepare(&self.plan, 1, sequence).set(self.plan.columns[0], Value::Integer(n));
        let mut action = self.user.begin(&mut flow, Nanos::ZERO, Nanos::ZERO);
        let mut steps = 0;
        while let FlowAction::Send { .. } = action {
            black_box(&flow.request);
            steps += 1;
            action = self.user.response(&mut flow, black_box(view), Nanos::ZERO);
        }
        assert_eq!(action, FlowAction::End { ok: true }, "{:?}", flow.findings.failures);
        steps
    }
}
