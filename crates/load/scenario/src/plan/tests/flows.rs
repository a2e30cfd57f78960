//! Flows through a shop.

use super::*;

const SHOP: &str = r#"# @name login
POST http://shop/login
{"user": "{{user}}", "password": "x"}
HTTP 200
[Captures]
token: jsonpath "$.token"

# @name list
GET http://shop/items
Authorization: Bearer {{token}}
HTTP 200
[Captures]
id: jsonpath "$.items[0].id"
[Asserts]
jsonpath "$.items" count == 2

# @name buy
POST http://shop/orders
Authorization: Bearer {{token}}
{"item": {{id}}}
HTTP 201
[Asserts]
jsonpath "$.status" == "ok"
"#;

fn shop(request: &str) -> ScriptedReply {
    let line = request.split(" HTTP").next().unwrap();
    let is_authorized = header(request, "authorization") == Some("Bearer t-bob");
    match line {
        "POST /login" if body_of(request).contains("\"bob\"") => {
            reply(200, &[("Set-Cookie", "session=s1; Path=/")], "{\"token\": \"t-bob\"}")
        }
        "GET /items" if is_authorized => ok("{\"items\": [{\"id\": 7}, {\"id\": 8}]}"),
        "POST /orders" if is_authorized && body_of(request) == "{\"item\": 7}" => {
            reply(201, &[], "{\"status\": \"ok\"}")
        }
        _ => reply(403, &[], "{}"),
    }
}

fn shop_plan() -> ScenarioPlan {
    plan_with(SHOP, &ScenarioSettings { columns: vec!["user".into()], ..ScenarioSettings::default() })
}

fn iterate(world: &mut World<'_>, user: &str, service: impl FnMut(&str) -> ScriptedReply) -> Trace {
    let slot = world.plan.columns[0];
    let user = user.to_owned();
    world.iterate_with(service, move |variables| variables.set(slot, crate::value::Value::text(user)))
}

#[test]
fn a_user_logs_in_lists_and_buys() {
    let plan = shop_plan();
    let mut world = World::new(&plan, 1);
    let trace = iterate(&mut world, "bob", shop);
    assert_eq!(lines(&trace), ["POST /login", "GET /items", "POST /orders"]);
    assert!(trace.ok);
    let cookies: Vec<_> = trace.requests.iter().map(|request| header(&request.text, "cookie")).collect();
    assert_eq!(cookies, [None, Some("session=s1"), Some("session=s1")]);
    let checks: Vec<_> =
        trace.findings.iter().map(|found| (found.step, found.verdict, found.checks_evaluated)).collect();
    let passed = Some(StepVerdict::Passed);
    assert_eq!(checks, [(0, passed, 1), (1, passed, 2), (2, passed, 2)]);
    assert_eq!(trace.requests.iter().map(|request| request.intended_ms).collect::<Vec<_>>(), [0, 10, 20]);
}

#[test]
fn an_iteration_begins_as_a_new_user() {
    let plan = shop_plan();
    let mut world = World::new(&plan, 1);
    let first = iterate(&mut world, "bob", shop);
    let second = iterate(&mut world, "bob", shop);
    assert_eq!(first.requests[0].text, second.requests[0].text, "no cookie of the first iteration");
    let third = iterate(&mut world, "eve", shop);
    assert_eq!(lines(&third), ["POST /login"], "the user of the data is another one");
    assert!(!third.ok);
}

#[test]
fn a_failed_check_ends_the_iteration() {
    let plan = shop_plan();
    let mut world = World::new(&plan, 1);
    let service =
        |request: &str| if request.contains("GET /items") { ok("{\"items\": [{\"id\": 7}]}") } else { shop(request) };
    let trace = iterate(&mut world, "bob", service);
    assert_eq!(lines(&trace), ["POST /login", "GET /items"]);
    assert!(!trace.ok);
    let last = trace.findings.last().unwrap();
    assert_eq!((last.step, last.verdict, last.checks_evaluated), (1, Some(StepVerdict::Failed), 2));
    assert!(matches!(last.failures.as_slice(), [FlowFailure::Check(1, _)]), "{last:?}");
    assert_eq!([0, 1, 2].map(|check| last.has_passed(check)), [Some(true), Some(false), None]);
    assert_eq!(plan.steps[1].checks.text(1), Some("jsonpath \"$.items\" count == 2"));
}

#[test]
fn a_wrong_status_is_found_before_captures() {
    let plan = shop_plan();
    let mut world = World::new(&plan, 1);
    let trace = iterate(&mut world, "bob", |_| reply(500, &[], "oops"));
    let last = trace.findings.last().unwrap();
    assert!(matches!(last.failures.as_slice(), [FlowFailure::Check(0, _)]), "{last:?}");
    assert_eq!(last.checks_evaluated, 1);
}

#[test]
fn a_failed_capture_ends_the_iteration() {
    let plan = shop_plan();
    let mut world = World::new(&plan, 1);
    let trace = iterate(&mut world, "bob", |_| ok("{\"no\": 1}"));
    assert!(matches!(trace.findings[0].failures.as_slice(), [FlowFailure::Capture(0, _)]), "{trace:?}");
    assert_eq!(trace.requests.len(), 1);
}

#[test]
fn an_iteration_can_go_on_after_a_failure() {
    let settings =
        ScenarioSettings { columns: vec!["user".into()], continue_on_error: true, ..ScenarioSettings::default() };
    let plan = plan_with(SHOP, &settings);
    let mut world = World::new(&plan, 1);
    let trace = iterate(&mut world, "bob", |request| {
        if request.contains("POST /login") { ScriptedReply::Failure(FailureKind::Timeout) } else { shop(request) }
    });
    assert!(!trace.ok);
    assert!(trace.requests.is_empty() || lines(&trace)[0] == "POST /login");
    let verdicts: Vec<_> = trace.findings.iter().map(|found| (found.step, found.verdict)).collect();
    let failed = Some(StepVerdict::Failed);
    assert_eq!(verdicts, [(0, failed), (1, failed), (2, failed)], "{trace:?}");
}

#[test]
fn implicit_checks_are_the_response_of_the_file() {
    let text = "GET http://shop\nHTTP/1.1 200\nX-A: 1\n{\"a\": 1}\n";
    let plan = plan(text);
    let good = run(&plan, |_| reply(200, &[("x-a", "0"), ("X-A", "1")], "{\"a\": 1}"));
    assert!(good.ok, "{good:?}");
    assert_eq!(good.findings[0].checks_evaluated, 4);
    let bad = run(&plan, |_| reply(200, &[("x-a", "0")], "{\"a\":1}"));
    let failures = &bad.findings[0].failures;
    assert!(matches!(failures.as_slice(), [FlowFailure::Check(2, _), FlowFailure::Check(3, _)]), "{failures:?}");
    let texts: Vec<_> = (0..4).filter_map(|check| plan.steps[0].checks.text(check)).collect();
    assert_eq!(texts, ["HTTP/1.1", "status == 200", "header \"X-A\" == \"1\"", "body == {\"a\": 1}"]);
}

#[test]
fn users_think_between_steps_and_not_before_the_first() {
    let settings = ScenarioSettings { think: think_of(1000), ..ScenarioSettings::default() };
    let plan = plan_with(
        "GET http://h/1\n\nGET http://h/2\n[Options]\ndelay: 500ms\n\nGET http://h/3\n[Options]\nskip: true\n\nGET http://h/4",
        &settings,
    );
    let trace = run(&plan, |_| ok(""));
    let times: Vec<_> = trace.requests.iter().map(|request| request.intended_ms).collect();
    assert_eq!(times, [0, 1510, 2520]);
    assert_eq!(lines(&trace), ["GET /1", "GET /2", "GET /4"]);
}

#[test]
fn variables_of_options_are_seen_by_later_options() {
    let text = "GET http://h/{{a}}\n[Options]\nvariable: n=2\nvariable: a={{n}}{{n}}\nrepeat: {{n}}\n\n\
                GET http://h/never\n[Options]\nvariable: s=true\nskip: {{s}}\n";
    let plan = plan(text);
    assert_eq!(lines(&run(&plan, |_| ok(""))), ["GET /22", "GET /22"]);
    let text = "GET http://h\n[Options]\nvariable: n=many\nrepeat: {{n}}\n";
    let plan = super::plan(text);
    let trace = run(&plan, |_| ok(""));
    let failure = trace.findings[0].failures[0].to_string();
    assert_eq!(failure, "4:11: invalid value 'many' of option repeat");
}
