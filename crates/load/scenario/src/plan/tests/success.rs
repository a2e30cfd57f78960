//! Success as the user defines it, and the number of the iteration.

use super::*;

fn failed_checks(plan: &ScenarioPlan, status: u16) -> Vec<String> {
    let trace = run(plan, |_| reply(status, &[], "{}"));
    let finding = trace.findings.first().unwrap();
    let failed = |failure: &FlowFailure| match failure {
        FlowFailure::Check(index, _) => plan.steps[0].checks.text(*index).map(str::to_owned),
        _ => None,
    };
    finding.failures.iter().filter_map(failed).collect()
}

#[test]
fn success_is_the_predicate_of_the_step_or_else_of_the_settings() {
    let none = plan("GET http://shop\n");
    assert!(!none.steps[0].checks.expects_status() && failed_checks(&none, 500).is_empty());
    let own = "# @name first\n# @success status < 500\nGET http://shop\n";
    for settings in [
        ScenarioSettings::default(),
        ScenarioSettings { success: weir_hurl::Assertion::parse("status == 201").ok(), ..ScenarioSettings::default() },
    ] {
        let step = plan_with(own, &settings);
        assert!(step.steps[0].checks.expects_status());
        assert_eq!(failed_checks(&step, 500), ["success: status < 500"]);
        assert!(failed_checks(&step, 404).is_empty());
    }
    let settings =
        ScenarioSettings { success: weir_hurl::Assertion::parse("body contains \"x\"").ok(), ..Default::default() };
    let step = plan_with("GET http://shop\nHTTP 200\n", &settings);
    assert!(step.steps[0].checks.needs_body());
    assert_eq!(
        failed_checks(&step, 500),
        ["success: body contains \"x\"", "status == 500"].map(|text| text.replace("500", "200"))
    );
}

#[test]
fn a_mistake_in_a_definition_of_success_has_its_place() {
    let file = weir_hurl::parse("GET http://shop\n\n# @success  status = 200\nGET http://shop\n").unwrap();
    let errors = ScenarioPlan::compile(&file, &ScenarioSettings::default(), &mut no_files).unwrap_err();
    assert_eq!(errors[0].to_string(), "3:20: expected a filter or a predicate, found '='; did you mean '=='?");
}

#[test]
fn an_iteration_has_a_number_unless_the_scenario_gives_the_name_another_meaning() {
    let numbered = plan("GET http://shop/{{seq}}\n");
    let mut world = World::new(&numbered, 1);
    let urls: Vec<String> = (0..3).map(|_| lines(&world.iterate(|_| ok("")))[0].to_owned()).collect();
    assert_eq!(urls, ["GET /0", "GET /1", "GET /2"]);
    let variables = vec![("seq".to_owned(), crate::value::Value::text("x"))];
    let given = plan_with("GET http://shop/{{seq}}\n", &ScenarioSettings { variables, ..Default::default() });
    assert_eq!(lines(&run(&given, |_| ok(""))), ["GET /x"]);
    let captured = plan("GET http://shop\nHTTP *\n[Captures]\nseq: status\n\nGET http://shop/{{seq}}\n");
    assert_eq!(lines(&run(&captured, |_| ok("")))[1], "GET /200");
}

#[test]
fn an_unknown_name_is_answered_with_what_gives_it_a_value() {
    let file = weir_hurl::parse("GET http://shop/{{abcdefg}}\n").unwrap();
    let errors = ScenarioPlan::compile(&file, &ScenarioSettings::default(), &mut no_files).unwrap_err();
    assert_eq!(errors[0].hint, "capture it in an earlier step, or give --variable abcdefg=... or --data FILE");
}
