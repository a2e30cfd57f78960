//! Reads `[policies.NAME]`, or a policy within a route.

use super::read::{DocumentNode, DocumentTable};
use super::{PolicyConfig, SuccessRule, file, headers, words};
use crate::call::Success;
use crate::decide::Nanos;
use crate::decide::grpc::{Code, Codes};
use crate::decide::policy::{
    BudgetRule, FailureKind, HedgeStage, Policy, RetryPolicy, Retryable, RetryableMethodClass, StageTrigger,
};

/// Attempts of one call.
const MAX_ATTEMPTS: u64 = 64;
/// Bytes that are kept or looked at.
const MAX_BUFFER_BYTES: usize = 1 << 30;
/// The name of a policy that nobody wrote.
pub(super) const DEFAULT_POLICY: &str = "default";

impl PolicyConfig {
    /// One attempt; callers' deadlines are kept and passed on.
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
    /// As calls have it.
    fn default() -> Self {
        let Success { statuses, headers, json, max_body_bytes: most, grpc, .. } = Success::default();
        Self { statuses, json, schema: None, headers, max_body_bytes: most, grpc }
    }
}

pub(super) fn policy(node: &DocumentNode<'_>, name: &str) -> Option<PolicyConfig> {
    let table = node.table()?;
    let mut read = PolicyConfig::new(name);
    let policy = &mut read.policy;
    let time = |key| table.get(key).and_then(|node| node.time()).unwrap_or(Nanos::NEVER);
    policy.deadline = time("deadline");
    policy.attempt_timeout = time("attempt_timeout");
    if let Some(node) = table.get("stages") {
        policy.stages = stages(&node, policy.deadline);
    }
    if let Some(node) = table.get("retry") {
        policy.retry = retry(&node);
    }
    if let Some(node) = table.get("budget") {
        policy.budget = budget(&node);
    }
    if let Some(node) = table.get("repeat") {
        let words = [
            ("safe", RetryableMethodClass::Safe),
            ("idempotent", RetryableMethodClass::Idempotent),
            ("every", RetryableMethodClass::All),
        ];
        policy.retryable_methods = node.choice(&words).unwrap_or_default();
    }
    if let Some((what, remedy)) = policy.validation_error() {
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

fn stages(node: &DocumentNode<'_>, deadline: Nanos) -> Vec<HedgeStage> {
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
                node.error("a stage that waits for nothing never comes", "give after, or leave on_failure out");
            }
        }
        if let Some(copies) = table.get("copies").and_then(|node| node.integer(1..=MAX_ATTEMPTS - 1)) {
            stage.attempts = u32::try_from(copies).unwrap_or(1);
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
    words::time(text).map(StageTrigger::Time).or_else(|| words::quantile(text).map(StageTrigger::Quantile))
}

fn retry(node: &DocumentNode<'_>) -> RetryPolicy {
    let times =
        |node: &DocumentNode<'_>| node.integer(0..=MAX_ATTEMPTS - 1).and_then(|n| u32::try_from(n).ok()).unwrap_or(0);
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
        None => table.error("it does not say how often", "write times = 2"),
    }
    if let Some(node) = table.get("on") {
        retry.on = retryable(&node);
    }
    if let Some(node) = table.get("backoff") {
        match node.value().as_str().and_then(words::backoff) {
            Some(backoff) => retry.backoff = backoff,
            None => node.expected("range of times", r#"write it as "25ms..1s", the shorter first"#),
        }
    }
    if let Some(obey) = table.get("retry_after").and_then(|node| node.boolean()) {
        retry.honor_retry_after = obey;
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
                let remedy = match super::problem::nearest(text.unwrap_or_default(), &kinds) {
                    Some(kind) => format!("did you mean \"{kind}\"?"),
                    None => {
                        format!(
                            "write {}, a status such as 503, \"502-504\" or \"5xx\", or \"grpc-14\"",
                            kinds.join(", ")
                        )
                    }
                };
                node.expected("failure", remedy);
            }
        }
    }
    on
}

fn budget(node: &DocumentNode<'_>) -> Option<BudgetRule> {
    if !node.is_table() {
        let text = node.value().as_str();
        if text == Some("none") {
            return None;
        }
        let read = text.and_then(words::budget);
        if read.is_none() {
            node.expected(
                "budget",
                r#"write it as "5% + 1/1s" (a share of the calls, and so many per window), or "none""#,
            );
        }
        return read;
    }
    let table = node.table()?;
    let mut read = BudgetRule::default();
    if let Some(share) = table.get("share").and_then(|node| node.number(0.0..=words::MAX_BUDGET_FRACTION)) {
        read.fraction = share;
    }
    if let Some(floor) = table.get("floor").and_then(|node| node.integer(0..=words::MAX_BUDGET_MIN_ATTEMPTS)) {
        read.min_per_window = u32::try_from(floor).unwrap_or(u32::MAX);
    }
    if let Some(node) = table.get("window") {
        read.window = node.time().unwrap_or(read.window);
        if read.window > words::MAX_BUDGET_WINDOW {
            node.expected("window", r#"write "1h" at most"#);
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
            json.error("a schema is for JSON", "leave json out");
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
    if let Some(size) = table.get("max_answer").and_then(|node| node.size(1..=MAX_BUFFER_BYTES)) {
        read.max_body_bytes = size;
    }
    table.check_unknown_keys();
    read
}

/// Reads `[4, 8, 13, 14]`.
fn codes(node: &DocumentNode<'_>) -> Codes {
    let code = |node: &DocumentNode<'_>| node.integer(1..=16).and_then(Code::new);
    node.list().unwrap_or_default().iter().filter_map(code).collect()
}

fn schema(node: &DocumentNode<'_>) -> Option<serde_json::Value> {
    let path = node.diagnostics().folder.join(node.string()?);
    let told = |why: String| node.error(format!("{} {why}", path.display()), "give a file with a JSON Schema");
    let bytes = file::read(&path).map_err(|why| told(format!("cannot be read: {why}"))).ok()?;
    let value = serde_json::from_slice(&bytes).map_err(|error| told(format!("is no JSON: {error}"))).ok()?;
    Success::default().with_schema(&value).map_err(|error| told(format!("is {error}"))).ok()?;
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
