//! Retries and repetitions.

use super::*;

#[test]
fn a_step_is_retried_until_its_asserts_hold() {
    let text = "GET http://h/job\n[Options]\nretry: 5\nretry-interval: 2s\nHTTP 200\n[Asserts]\n\
                jsonpath \"$.state\" == \"done\"\n\nGET http://h/next\n";
    let plan = plan(text);
    let mut calls = 0;
    let trace = run(&plan, |_| {
        calls += 1;
        match calls {
            1 => ScriptedReply::Failure(FailureKind::Reset),
            2 => reply(503, &[], ""),
            3 => ok("{\"state\": \"busy\"}"),
            _ => ok("{\"state\": \"done\"}"),
        }
    });
    assert!(trace.ok);
    assert_eq!(lines(&trace), ["GET /job", "GET /job", "GET /job", "GET /job", "GET /next"]);
    let times: Vec<_> = trace.requests.iter().map(|request| request.intended_ms).collect();
    assert_eq!(times, [0, 2010, 4020, 6030, 6040]);
    let verdicts: Vec<_> = trace.findings.iter().filter_map(|found| found.verdict).collect();
    use StepVerdict::{Passed, Retried};
    assert_eq!(verdicts, [Retried, Retried, Retried, Passed, Passed]);
}

#[test]
fn retries_are_limited() {
    let plan = plan("GET http://h\n[Options]\nretry: 2\nretry-interval: 0\nHTTP 200\n");
    let trace = run(&plan, |_| reply(500, &[], ""));
    assert_eq!(trace.requests.len(), 3);
    assert_eq!(trace.findings.last().unwrap().verdict, Some(StepVerdict::Failed));
    assert!(!trace.ok);
}

#[test]
fn a_retried_request_is_rendered_again() {
    let plan = plan("GET http://h/{{newUuid}}\n[Options]\nretry: 1\nHTTP 200\n");
    let trace = run(&plan, |_| reply(500, &[], ""));
    assert_ne!(lines(&trace)[0], lines(&trace)[1]);
}

#[test]
fn a_step_is_repeated_with_its_delay() {
    let plan =
        plan("GET http://h/1\n[Options]\nrepeat: 3\ndelay: 1s\nHTTP 200\n\nGET http://h/2\n[Options]\nrepeat: 0\n");
    let trace = run(&plan, |_| ok(""));
    assert_eq!(trace.requests.iter().map(|request| request.intended_ms).collect::<Vec<_>>(), [1000, 2010, 3020]);
    assert_eq!(trace.findings.len(), 3);
    assert!(trace.ok);
}

#[test]
fn a_client_retries_failures_of_the_service_with_growing_waits_and_no_others() {
    let rules = StepRules {
        max_retries: 3,
        retry_interval: Nanos::from_millis(100),
        retries_as_client: true,
        ..StepRules::default()
    };
    let settings = ScenarioSettings { rules, ..ScenarioSettings::default() };
    let plan = plan_with("GET http://h/job\n", &settings);
    let run = |plan: &ScenarioPlan, replies: &[ScriptedReply]| {
        let mut replies = replies.iter().cloned();
        run(plan, move |_| replies.next().unwrap_or_else(|| reply(503, &[], "")))
    };
    let failing = run(&plan, &[ScriptedReply::Failure(FailureKind::Timeout), reply(429, &[], "")]);
    assert!(!failing.ok);
    let times: Vec<u64> = failing.requests.iter().map(|request| request.intended_ms).collect();
    let waits: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(waits.len(), 3, "{times:?}");
    for (wait, doubled) in waits.iter().zip([100, 200, 400]) {
        assert!((doubled / 2..=doubled * 3 / 2 + 20).contains(wait), "{waits:?}");
    }
    let verdicts: Vec<_> = failing.findings.iter().filter_map(|found| found.verdict).collect();
    use StepVerdict::{Failed, Passed, Retried};
    assert_eq!(verdicts, [Retried, Retried, Retried, Failed]);
    // A request that is wrong is wrong again.
    let wrong = run(&plan, &[reply(404, &[], "")]);
    assert_eq!((wrong.requests.len(), wrong.ok), (1, false));
    let recovered = run(&plan, &[reply(500, &[], ""), ok("")]);
    let verdicts: Vec<_> = recovered.findings.iter().filter_map(|found| found.verdict).collect();
    assert_eq!((recovered.ok, verdicts), (true, vec![Retried, Passed]));
}
