//! Result lines of each end of a job, in both forms.

use serde_json::{Value, json};

use super::*;
use weir_base::Nanos;
use weir_base::failure::FailureKind;
use weir_delivery::dispatch::{DispatchFailure, ResponseClass};
use weir_send::state::State;
use weir_send::{AttemptRecord, Job, JobEntry, JobStatus, ResponseCheck, UnixMs};

/// End of a job, with the response or failure of its last attempt.
fn ended(state: State, cause: Option<DispatchFailure>, outcome: Option<Result<u16, &str>>, body: &str) -> FinishedJob {
    let status = JobStatus {
        state: State::Leased,
        changed_at: UnixMs(0),
        reason: String::new(),
        attempts: 1,
        maybe_sent: false,
        retry_at: None,
        last_attempt: None,
    };
    let check = cause == Some(DispatchFailure::Response(ResponseClass::FailedCheck));
    let last_attempt = outcome.map(|outcome| AttemptRecord {
        key: 0,
        sent_at: UnixMs(5),
        lateness: None,
        service_time: Nanos::ZERO,
        outcome: outcome.map_err(str::to_owned),
        failed_check: check.then(|| "it is too short".to_owned()),
        request_id: outcome.is_ok_and(|status| status != 418).then(|| "req-1".to_owned()),
        succeeded: state == State::Done,
        is_retry: false,
        failure_body: bytes::Bytes::new(),
    });
    FinishedJob {
        entry: JobEntry { number: 1, job: Job { id: Some("a\"1".into()), ..Job::default() }, status },
        state,
        reason: "the reason".into(),
        cause,
        ended_at: UnixMs(7),
        last_attempt,
        body: bytes::Bytes::copy_from_slice(body.as_bytes()),
        attempts: 1,
    }
}

/// Line in a form, and whether it is one of the error file.
fn line(form: ResultsForm, ended: &FinishedJob) -> (Value, bool) {
    let mut text = Vec::new();
    let is_error = write_line(form, ended, &mut text);
    assert_eq!(text.iter().filter(|byte| **byte == b'\n').count(), 1, "one line");
    let value: Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(value["custom_id"], "a\"1");
    (value, is_error)
}

const REJECTED: Option<DispatchFailure> = Some(DispatchFailure::Response(ResponseClass::Failed(400)));

const fn no_response(kind: FailureKind) -> Option<DispatchFailure> {
    Some(DispatchFailure::NoResponse(kind))
}

#[test]
fn a_delivered_job_has_its_response_on_one_line() {
    let body = "{\n  \"type\": \"message\",\r\n  \"text\": \"a\\nb\", \"n\": 1.50\n}\n";
    let done = ended(State::Done, None, Some(Ok(200)), body);
    let (openai, is_error) = line(ResultsForm::OpenAiBatch, &done);
    let whole = json!({"type": "message", "text": "a\nb", "n": 1.5});
    assert_eq!(openai["response"], json!({"status_code": 200, "request_id": "req-1", "body": whole}));
    assert_eq!((&openai["error"], is_error), (&Value::Null, false));
    assert!(openai["id"].as_str().unwrap().starts_with("batch_req_000000000007"), "{openai}");
    let (anthropic, is_error) = line(ResultsForm::AnthropicBatch, &done);
    assert_eq!((&anthropic["result"], is_error), (&json!({"type": "succeeded", "message": whole}), false));
    let mut text = Vec::new();
    write_line(ResultsForm::AnthropicBatch, &done, &mut text);
    assert!(String::from_utf8(text).unwrap().contains("1.50"), "numbers stay as they were written");
}

#[test]
fn a_response_of_failure_is_the_providers_own() {
    let body = r#"{"type":"error","error":{"type":"invalid_request_error","message":"bad"},"request_id":"req-2"}"#;
    let failed = ended(State::DeadLettered, REJECTED, Some(Ok(400)), body);
    let (openai, is_error) = line(ResultsForm::OpenAiBatch, &failed);
    assert!(is_error);
    assert_eq!((&openai["response"]["status_code"], &openai["error"]), (&json!(400), &Value::Null));
    assert_eq!(openai["response"]["body"], serde_json::from_str::<Value>(body).unwrap());
    let (anthropic, _) = line(ResultsForm::AnthropicBatch, &failed);
    assert_eq!(anthropic["result"], json!({"type": "errored", "error": serde_json::from_str::<Value>(body).unwrap()}));
}

#[test]
fn a_response_in_another_form_becomes_an_error_of_the_providers() {
    for (status, body, kind, message) in [
        (404, r#"{"error":{"message":"no m","type":"NotFoundError","code":404}}"#, "not_found_error", "no m"),
        (529, r#"{"type":"error","error":{"type":"request_too_large","message":"m"}}"#, "overloaded_error", "m"),
        (502, "<html> gateway", "api_error", "<html> gateway"),
        (413, "", "invalid_request_error", "status 413 without a body"),
        (429, "[1]", "rate_limit_error", "[1]"),
        (418, "{}", "invalid_request_error", "{}"),
    ] {
        let failed = ended(State::DeadLettered, REJECTED, Some(Ok(status)), body);
        let (anthropic, _) = line(ResultsForm::AnthropicBatch, &failed);
        let request_id = if status == 418 { Value::Null } else { "req-1".into() };
        let error = json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": request_id});
        assert_eq!(anthropic["result"], json!({"type": "errored", "error": error}), "{status}");
        let (openai, _) = line(ResultsForm::OpenAiBatch, &failed);
        let request_id = openai["response"]["request_id"].as_str().unwrap();
        assert_eq!(request_id == openai["id"], status == 418, "without a name of the service it has that of the line");
        let given: Option<Value> = serde_json::from_str(body).ok().filter(Value::is_object);
        let own = || json!(if status < 500 { "invalid_request_error" } else { "server_error" });
        match given {
            Some(given) => assert_eq!(openai["response"]["body"], given),
            None => {
                let error = json!({"message": message, "type": own(), "param": null, "code": null});
                assert_eq!(openai["response"]["body"], json!({ "error": error }));
            }
        }
    }
}

#[test]
fn what_had_no_response_lands_where_the_provider_puts_it() {
    let timeout = (no_response(FailureKind::Timeout), Some(Err("timed out")));
    let unreachable = (no_response(FailureKind::Connect), Some(Err("connection refused")));
    for (state, (cause, outcome), code, result) in [
        (State::DeadLettered, timeout, "request_timeout", "timeout_error"),
        (State::DeadLettered, unreachable, "batch_cancelled", "canceled"),
        (State::DeadLettered, (no_response(FailureKind::Reset), Some(Err("reset"))), "connection_error", "api_error"),
        (
            State::DeadLettered,
            (no_response(FailureKind::Request), Some(Err("x"))),
            "invalid_request",
            "invalid_request_error",
        ),
        (State::DeadLettered, (None, None), "invalid_request", "invalid_request_error"),
        (State::DeadLettered, (Some(DispatchFailure::TooHeavy), None), "invalid_request", "invalid_request_error"),
        (State::DeadLettered, (Some(DispatchFailure::MaybeSent), None), "maybe_sent", "api_error"),
        (State::DeadLettered, (Some(DispatchFailure::HostDown), unreachable.1), "batch_cancelled", "canceled"),
        (State::DeadLettered, (Some(DispatchFailure::HostDown), None), "batch_cancelled", "canceled"),
        (State::Expired, timeout, "batch_expired", "expired"),
        (State::Expired, (None, None), "batch_expired", "expired"),
        (State::Expired, (REJECTED, Some(Ok(429))), "batch_expired", "expired"),
    ] {
        let given = ended(state, cause, outcome, "");
        let (openai, is_error) = line(ResultsForm::OpenAiBatch, &given);
        assert_eq!((&openai["error"]["code"], &openai["response"], is_error), (&json!(code), &Value::Null, true));
        assert!(!openai["error"]["message"].as_str().unwrap().is_empty(), "{openai}");
        let (anthropic, _) = line(ResultsForm::AnthropicBatch, &given);
        let found = &anthropic["result"];
        let kind = if found["type"] == "errored" { &found["error"]["error"]["type"] } else { &found["type"] };
        assert_eq!(kind, result, "{anthropic}");
    }
    // A host that was given up, and had responded to this job: its response has more to it.
    let given_up = ended(State::DeadLettered, Some(DispatchFailure::HostDown), Some(Ok(500)), "down");
    assert_eq!(line(ResultsForm::OpenAiBatch, &given_up).0["response"]["status_code"], 500);
}

#[test]
fn a_response_that_failed_its_check_is_not_lost() {
    let cause = Some(DispatchFailure::Response(ResponseClass::FailedCheck));
    let failed = ended(State::DeadLettered, cause, Some(Ok(200)), r#"{"choices":[]}"#);
    let (openai, is_error) = line(ResultsForm::OpenAiBatch, &failed);
    assert_eq!((&openai["response"]["body"], is_error), (&json!({"choices": []}), true));
    assert_eq!(openai["error"], json!({"code": "check_failed", "message": "it is too short"}));
    let (anthropic, _) = line(ResultsForm::AnthropicBatch, &failed);
    assert_eq!(anthropic["result"]["error"]["error"], json!({"type": "api_error", "message": "it is too short"}));
}

#[test]
fn a_response_that_is_no_result_fails_the_check_of_its_form() {
    let check =
        |form, body: &str| BatchCheck { form, own: None }.check(200, &http::HeaderMap::new(), body.as_bytes()).is_ok();
    for (body, is_object, is_message) in [
        (r#" {"type":"message"}"#, true, true),
        (r#"{"type":"error"}"#, true, false),
        ("{}", true, false),
        ("[{}]", false, false),
        ("{\"a\":", false, false),
        ("", false, false),
        ("<html>", false, false),
    ] {
        let found = [ResultsForm::OpenAiBatch, ResultsForm::AnthropicBatch].map(|form| check(form, body));
        assert_eq!(found, [is_object, is_message], "{body}");
        assert!(check(ResultsForm::Weir, body));
    }
}
