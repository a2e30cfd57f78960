//! Properties of all scenarios.

use proptest::prelude::*;

use super::*;

/// Steps with options at random. Unlimited ones are left out, since a load ends them and not the flow.
fn scenario() -> impl Strategy<Value = String> {
    let step = (0_u8..4, 0_u8..3, 0_u8..3, 0_u8..3, any::<bool>(), any::<bool>()).prop_map(
        |(path, retry, repeat, redirects, follow, skip)| {
            format!(
                "POST http://h/{path}/{{{{randomInt 1 1000}}}}?v={{{{v}}}}\nX-U: {{{{newUuid}}}}\n[Options]\n\
                 retry: {retry}\nrepeat: {repeat}\nmax-redirs: {redirects}\nlocation: {follow}\nskip: {skip}\n\
                 variable: v={{{{randomString 4}}}}\n{{\"v\": \"{{{{v}}}}\"}}\nHTTP 200\n[Captures]\nv: jsonpath \"$.v\"\n\
                 [Asserts]\njsonpath \"$.n\" < 3\n"
            )
        },
    );
    prop::collection::vec(step, 1..5).prop_map(|steps| steps.join("\n"))
}

fn replies() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 1..64)
}

/// Service whose responses are chosen by the bytes, again and again.
fn service(choices: &[u8]) -> impl FnMut(&str) -> ScriptedReply + '_ {
    let mut calls = 0;
    move |_| {
        let choice = choices[calls % choices.len()];
        calls += 1;
        match choice % 8 {
            0 => ScriptedReply::Failure(FailureKind::Timeout),
            1 => reply(302, &[("Location", "/else"), ("Set-Cookie", "a=b")], ""),
            2 => reply(307, &[("Location", "http://other/x")], ""),
            3 => reply(500, &[], ""),
            4 => ok("{}"),
            5 => ok("{\"v\": \"a\\r\\nb\", \"n\": 1}"),
            _ => ok("{\"v\": 1, \"n\": 2}"),
        }
    }
}

proptest! {
    #[test]
    fn an_iteration_ends_and_each_request_has_one_verdict(text in scenario(), choices in replies(), goes_on: bool) {
        let settings = ScenarioSettings { continue_on_error: goes_on, ..ScenarioSettings::default() };
        let plan = plan_with(&text, &settings);
        let trace = run(&plan, service(&choices));
        let unsent = |found: &&StepFindings| matches!(found.failures.as_slice(), [FlowFailure::Request(_)]);
        prop_assert_eq!(trace.findings.len() - trace.findings.iter().filter(unsent).count(), trace.requests.len());
        prop_assert_eq!(trace.ok, !trace.findings.iter().any(|found| found.verdict == Some(StepVerdict::Failed)));
        let times: Vec<_> = trace.requests.iter().map(|request| request.intended_ms).collect();
        prop_assert!(times.is_sorted());
        for request in &trace.requests {
            prop_assert_eq!(request.text.matches("\r\nContent-Length: ").count() <= 1, true);
        }
    }

    #[test]
    fn redirects_in_a_row_are_limited(text in scenario(), choices in replies()) {
        let plan = plan(&text);
        let trace = run(&plan, service(&choices));
        let mut in_a_row = 0;
        for found in &trace.findings {
            in_a_row = if found.verdict == Some(StepVerdict::Redirected) { in_a_row + 1 } else { 0 };
            prop_assert!(in_a_row <= 2);
        }
    }

    #[test]
    fn the_same_seed_has_the_same_bytes(text in scenario(), choices in replies(), seed: u64) {
        let plan = plan(&text);
        let iterate = || {
            let mut world = World::new(&plan, seed);
            [world.iterate(service(&choices)), world.iterate(service(&choices))]
        };
        prop_assert_eq!(iterate(), iterate());
    }

    #[test]
    fn no_value_leaves_its_place(value in "[ -~\r\n\t]{0,12}") {
        let text = "POST http://h/p{{v}}\nX-V: {{v}}\n[Query]\nq: {{v}}\n[Cookies]\nc: {{v}}\n[Form]\nf: {{v}}\n";
        let settings = ScenarioSettings { columns: vec!["v".into()], ..ScenarioSettings::default() };
        let plan = plan_with(text, &settings);
        let slot = plan.columns[0];
        let mut world = World::new(&plan, 1);
        let given = value.clone();
        let trace = world.iterate_with(|_| ok(""), move |table| table.set(slot, crate::value::Value::text(given)));
        match trace.requests.first() {
            None => prop_assert!(value.contains(['\r', '\n', '\t']), "{trace:?}"),
            Some(request) => {
                prop_assert!(!value.contains(['\r', '\n']));
                let (head, body) = request.text.split_once("\r\n\r\n").unwrap();
                let names: Vec<_> = head.lines().skip(1).filter_map(|line| line.split(": ").next()).collect();
                let expected =
                    ["Host", "User-Agent", "Accept", "X-V", "Cookie", "Content-Type", "Content-Length"];
                prop_assert_eq!(names, expected);
                let length = body.len().to_string();
                prop_assert_eq!(header(&request.text, "content-length"), Some(length.as_str()));
                prop_assert_eq!(head.lines().next().unwrap().split(' ').count(), 3);
            }
        }
    }
}
