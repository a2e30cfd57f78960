//! Parses `[policies.NAME]`, or a policy within a route.

use super::read::{DocumentNode, DocumentTable};
use super::{PolicyConfig, SuccessRule, file, headers, units};
use weir_base::Nanos;
use weir_base::failure::FailureKind;
use weir_base::fault::Fault;
use weir_base::nearest::nearest;
use weir_call::Success;
use weir_resilience::policy::{HedgeStage, Policy, StageTrigger};
use weir_retry::grpc::{Code, Codes};
use weir_retry::policy::{BudgetRule, RetryPolicy, Retryable, RetryableMethodClass};

/// Maximum attempts of one call beside the first.
const MAX_EXTRA_ATTEMPTS: u64 = Policy::MAX_ATTEMPTS as u64 - 1;
/// Maximum body that is buffered or checked, in bytes.
const MAX_BUFFER_BYTES: usize = 1 << 30;
/// Name of the policy of routes without one.
pub(super) const DEFAULT_POLICY: &str = "default";

impl PolicyConfig {
    /// A policy of one attempt that keeps callers' deadlines and passes them on.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            policy: Policy::default(),
            success: SuccessRule::default(),
            max_buffer_bytes: 64 << 10,
            deadlines_in: headers::default_deadlines(),
            deadlines_out: headers::default_deadlines(),
        }
    }
}

impl Default for SuccessRule {
    /// The rule of [`Success::default`].
    fn default() -> Self {
        let Success { statuses, headers, json, max_body_bytes, grpc, .. } = Success::default();
        Self { statuses, json, schema: None, headers, max_body_bytes, grpc }
    }
}

pub(super) fn policy(node: &DocumentNode<'_>, name: &str) -> Option<PolicyConfig> {
    let table = node.table()?;
    let mut read = PolicyConfig::new(name);
    let policy = &mut read.policy;
    let time = |key| table.get(key).and_then(|node| node.time()).unwrap_or(Nanos::NEVER);
    policy.deadline = time("deadline");
    policy.attempt_timeout = time("attempt_timeout");
    if let Some(node) = table.get("hedge") {
        policy.stages = hedge_stages(&node, policy.deadline);
    }
    if let Some(node) = table.get("retries") {
        policy.retry = retry(&node);
    }
    if let Some(node) = table.get("budget") {
        policy.budget = budget(&node);
    }
    if let Some(node) = table.get("retry_methods") {
        let words = [
            ("safe", RetryableMethodClass::Safe),
            ("idempotent", RetryableMethodClass::Idempotent),
            ("all", RetryableMethodClass::All),
        ];
        policy.retryable_methods = node.choice(&words).unwrap_or_default();
    }
    if let Some(Fault { what, remedy }) = policy.validation_error() {
        table.error(what, remedy);
    }
    if let Some(table) = table.get("success").and_then(|node| node.table()) {
        read.success = success(&table);
    }
    if let Some(size) = table.get("buffer").and_then(|node| node.size(0..=MAX_BUFFER_BYTES)) {
        read.max_buffer_bytes = size;
    }
    if let Some(table) = table.get("deadline_headers").and_then(|node| node.table()) {
        if let Some(node) = table.get("in") {
            read.deadlines_in = headers::deadlines(&node);
        }
        if let Some(node) = table.get("out") {
            read.deadlines_out = headers::deadlines(&node);
        }
        table.check_unknown_keys();
    }
    table.check_unknown_keys();
    Some(read)
}

fn hedge_stages(node: &DocumentNode<'_>, deadline: Nanos) -> Vec<HedgeStage> {
    let mut stages = Vec::new();
    let mut sum = Nanos::ZERO;
    for node in node.list().unwrap_or_default() {
        let Some(table) = node.table() else { continue };
        let mut stage = HedgeStage { after: StageTrigger::Failure, on_failure: true, attempts: 1 };
        let after = table.get("after");
        if let Some(node) = &after {
            match node.value().as_str().and_then(parse_after) {
                Some(after) => stage.after = after,
                None => node.expected("time", r#"write it as "300ms", or as a quantile such as "p95""#),
            }
        }
        if let Some(node) = table.get("on_failure") {
            stage.on_failure = node.boolean().unwrap_or(true);
            if after.is_none() && !stage.on_failure {
                node.error("a stage without a time or a failure never starts", "give after, or leave on_failure out");
            }
        }
        if let Some(attempts) = table.get("attempts").and_then(|node| node.integer(1..=MAX_EXTRA_ATTEMPTS)) {
            stage.attempts = u32::try_from(attempts).unwrap_or(1);
        }
        table.check_unknown_keys();
        if let (StageTrigger::Time(time), Some(node)) = (stage.after, after) {
            sum += time;
            if sum >= deadline {
                let what = format!("the deadline ({deadline}) comes first: the stage is {sum} after the call's start");
                node.warn(what, "shorten it, or leave it out to wait for a failure alone");
            }
        }
        stages.push(stage);
    }
    stages
}

fn parse_after(text: &str) -> Option<StageTrigger> {
    units::time(text).map(StageTrigger::Time).or_else(|| units::quantile(text).map(StageTrigger::Quantile))
}

fn retry(node: &DocumentNode<'_>) -> RetryPolicy {
    let times =
        |node: &DocumentNode<'_>| node.integer(0..=MAX_EXTRA_ATTEMPTS).and_then(|n| u32::try_from(n).ok()).unwrap_or(0);
    if !node.is_table() {
        if node.is_integer() {
            return RetryPolicy { max_retries: times(node), ..RetryPolicy::default() };
        }
        node.expected("rule for retries", r#"write it as 2, or as { times = 2, on = ["connect", 503] }"#);
        return RetryPolicy::default();
    }
    let Some(table) = node.table() else { return RetryPolicy::default() };
    let mut retry = RetryPolicy::default();
    match table.get("times") {
        Some(node) => retry.max_retries = times(&node),
        None => table.error("times missing", "write times = 2"),
    }
    if let Some(node) = table.get("on") {
        retry.on = retryable(&node);
    }
    if let Some(node) = table.get("backoff") {
        match node.value().as_str().and_then(units::backoff) {
            Some(backoff) => retry.backoff = backoff,
            None => node.expected("range of times", r#"write it as "25ms..1s", the shorter first"#),
        }
    }
    if let Some(honor) = table.get("retry_after").and_then(|node| node.boolean()) {
        retry.honor_retry_after = honor;
    }
    table.check_unknown_keys();
    retry
}

fn retryable(node: &DocumentNode<'_>) -> Retryable {
    let mut on = Retryable { kinds: Vec::new(), statuses: Vec::new(), grpc: Codes::NONE };
    for node in node.list().unwrap_or_default() {
        let text = node.value().as_str();
        let kind = text.and_then(|text| FailureKind::retryable().find(|kind| kind.name() == text));
        let code = text.and_then(|text| Code::all().find(|code| code.name() == text));
        match (kind, node.status_words()) {
            _ if code.is_some() => on.grpc = code.map_or(on.grpc, |code| on.grpc.with(code)),
            (Some(kind), _) => on.kinds.push(kind),
            (None, Some(statuses)) => on.statuses.extend(statuses),
            (None, None) => {
                let kinds: Vec<&str> = FailureKind::retryable().map(FailureKind::name).collect();
                let remedy = match nearest(text.unwrap_or_default(), kinds.iter().copied()) {
                    Some(kind) => format!("did you mean \"{kind}\"?"),
                    None => {
                        format!(
                            "write {}, a status such as 503, \"502-504\" or \"5xx\", or \"grpc-14\"",
                            kinds.join(", ")
                        )
                    }
                };
                node.error(format!("unknown failure {}", node.display()), remedy);
            }
        }
    }
    on
}

pub(super) fn budget(node: &DocumentNode<'_>) -> Option<BudgetRule> {
    if !node.is_table() {
        let text = node.value().as_str();
        if text == Some("none") {
            return None;
        }
        let read = text.and_then(units::budget);
        if read.is_none() {
            node.expected(
                "budget",
                r#"write it as "5% + 250/10s" (a percentage of the calls, and a minimum per window), or "none""#,
            );
        }
        return read;
    }
    let table = node.table()?;
    let mut read = BudgetRule::default();
    if let Some(fraction) = table.get("fraction").and_then(|node| node.number(0.0..=units::MAX_BUDGET_FRACTION)) {
        read.fraction = fraction;
    }
    if let Some(node) = table.get("window") {
        read.window = node.time().unwrap_or(read.window);
        if read.window > units::MAX_BUDGET_WINDOW {
            node.expected("window", r#"write "1h" at most"#);
        }
    }
    let node = table.get("min_per_s");
    let default = f64::from(BudgetRule::DEFAULT_MIN_PER_S);
    let per_s = node.as_ref().map_or(Some(default), |node| node.number(0.0..=units::MAX_BUDGET_MIN_ATTEMPTS as f64));
    if let Some(per_s) = per_s {
        match units::min_per_window(per_s, read.window) {
            Some(min) => read.min_per_window = min,
            None => {
                let what = "invalid min_per_s: min_per_s x window is not whole";
                let remedy = format!("write e.g. {}", units::whole_per_s(read.window));
                match &node {
                    Some(node) => node.error(what, remedy),
                    None => table.error(what, format!("{remedy} as min_per_s")),
                }
            }
        }
    }
    table.check_unknown_keys();
    Some(read)
}

fn success(table: &DocumentTable<'_>) -> SuccessRule {
    let mut read = SuccessRule::default();
    if let Some(statuses) = table.get("status").and_then(|node| node.statuses()) {
        read.statuses = statuses;
    }
    let json = table.get("json").and_then(|node| Some((node.boolean()?, node)));
    read.json = json.as_ref().is_some_and(|(yes, _)| *yes);
    if let Some(node) = table.get("schema") {
        if let Some((false, json)) = &json {
            json.error("schema implies json", "leave json out");
        }
        read.json = true;
        read.schema = schema(&node);
    }
    if let Some(node) = table.get("headers") {
        read.headers = headers::pairs(&node);
    }
    if let Some(node) = table.get("grpc_failures") {
        read.grpc = codes(&node);
    }
    if let Some(size) = table.get("max_body").and_then(|node| node.size(1..=MAX_BUFFER_BYTES)) {
        read.max_body_bytes = size;
    }
    table.check_unknown_keys();
    read
}

/// Parses `[4, 8, 13, 14]`.
fn codes(node: &DocumentNode<'_>) -> Codes {
    let code = |node: &DocumentNode<'_>| node.integer(1..=16).and_then(Code::new);
    node.list().unwrap_or_default().iter().filter_map(code).collect()
}

fn schema(node: &DocumentNode<'_>) -> Option<serde_json::Value> {
    let path = node.folder().join(node.string()?);
    let report = |what: String| node.error(what, "give a file with a JSON Schema");
    let bytes = file::read(&path).map_err(|why| report(format!("cannot read {}: {why}", path.display()))).ok()?;
    let value = serde_json::from_slice(&bytes);
    let value = value.map_err(|error| report(format!("{} is not JSON: {error}", path.display()))).ok()?;
    Success::default().with_schema(&value).map_err(|error| report(format!("{} is {error}", path.display()))).ok()?;
    Some(value)
}

/// Whether a request of this method may be sent twice (RFC 9110, 9.2).
pub(super) fn is_retryable(repeat: RetryableMethodClass, method: &http::Method) -> bool {
    match repeat {
        RetryableMethodClass::Safe => method.is_safe(),
        RetryableMethodClass::Idempotent => method.is_idempotent(),
        RetryableMethodClass::All => true,
    }
}
