//! JMX.

use super::{imported, omissions, value};
use crate::{ScenarioRole, to_hurl, to_mix};

const PLAN: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<jmeterTestPlan version="1.2"><hashTree>
<TestPlan testname="Shop" enabled="true"><elementProp name="TestPlan.user_defined_variables" elementType="Arguments">
 <collectionProp name="Arguments.arguments"><elementProp name="host" elementType="Argument">
  <stringProp name="Argument.name">host</stringProp><stringProp name="Argument.value">${__P(host,localhost)}</stringProp>
 </elementProp></collectionProp></elementProp></TestPlan>
<hashTree>
 <ConfigTestElement guiclass="HttpDefaultsGui"><stringProp name="HTTPSampler.domain">${host}</stringProp>
  <stringProp name="HTTPSampler.port">8080</stringProp></ConfigTestElement><hashTree/>
 <ThreadGroup testname="buyers"><stringProp name="ThreadGroup.num_threads">20</stringProp>
  <stringProp name="ThreadGroup.ramp_time">5</stringProp><boolProp name="ThreadGroup.scheduler">true</boolProp>
  <stringProp name="ThreadGroup.duration">60</stringProp><stringProp name="ThreadGroup.on_sample_error">startnextloop</stringProp>
 </ThreadGroup>
 <hashTree>
  <UniformRandomTimer><stringProp name="ConstantTimer.delay">1000</stringProp><stringProp name="RandomTimer.range">2000</stringProp></UniformRandomTimer><hashTree/>
  <CSVDataSet><stringProp name="filename">users.csv</stringProp><stringProp name="variableNames">user,password</stringProp>
   <boolProp name="recycle">true</boolProp><stringProp name="delimiter">,</stringProp></CSVDataSet><hashTree/>
  <HTTPSamplerProxy testname="login"><stringProp name="HTTPSampler.path">/login</stringProp><stringProp name="HTTPSampler.method">POST</stringProp>
   <boolProp name="HTTPSampler.postBodyRaw">true</boolProp><elementProp name="HTTPsampler.Arguments"><collectionProp name="Arguments.arguments">
    <elementProp name=""><stringProp name="Argument.value">{"user": "${user}"}</stringProp></elementProp></collectionProp></elementProp></HTTPSamplerProxy>
  <hashTree>
   <HeaderManager><collectionProp name="HeaderManager.headers"><elementProp name=""><stringProp name="Header.name">Content-Type</stringProp>
    <stringProp name="Header.value">application/json</stringProp></elementProp></collectionProp></HeaderManager><hashTree/>
   <JSONPostProcessor><stringProp name="JSONPostProcessor.referenceNames">token</stringProp><stringProp name="JSONPostProcessor.jsonPathExprs">$.token</stringProp></JSONPostProcessor><hashTree/>
   <ResponseAssertion><collectionProp name="Asserion.test_strings"><stringProp name="49586">200</stringProp></collectionProp>
    <stringProp name="Assertion.test_field">Assertion.response_code</stringProp><intProp name="Assertion.test_type">8</intProp></ResponseAssertion><hashTree/>
   <JSR223PostProcessor testname="magic"/><hashTree/>
  </hashTree>
  <HTTPSamplerProxy testname="items"><stringProp name="HTTPSampler.path">items</stringProp><stringProp name="HTTPSampler.method">GET</stringProp>
   <elementProp name="HTTPsampler.Arguments"><collectionProp name="Arguments.arguments"><elementProp name="q"><boolProp name="HTTPArgument.always_encode">true</boolProp>
    <stringProp name="Argument.name">q</stringProp><stringProp name="Argument.value">a b</stringProp></elementProp></collectionProp></elementProp></HTTPSamplerProxy>
  <hashTree><ConstantTimer><stringProp name="ConstantTimer.delay">300</stringProp></ConstantTimer><hashTree/></hashTree>
  <JDBCSampler testname="database"/><hashTree/>
 </hashTree>
 <SetupThreadGroup testname="prepare"/><hashTree>
  <HTTPSamplerProxy testname="reset"><stringProp name="HTTPSampler.path">/reset</stringProp></HTTPSamplerProxy><hashTree/>
 </hashTree>
</hashTree></hashTree></jmeterTestPlan>"#;

#[test]
fn a_plan_is_a_mix_of_scenarios_with_users_think_time_and_data() {
    let import = imported(PLAN);
    let expected = "# left out: the JDBCSampler database\n";
    let shown = to_hurl(&import.scenarios[0]);
    assert!(shown.ends_with(expected), "{shown}");
    let login = "# @name login\n# left out: the JSR223PostProcessor magic\nPOST http://{{host}}:8080/login\n{\"user\": \"{{user}}\"}\nHTTP 200\n[Captures]\ntoken: jsonpath \"$.token\"\n";
    assert!(shown.contains(login), "{shown}");
    let items = "# @name items\nGET http://{{host}}:8080/items?q=a+b\n[Options]\ndelay: 300ms\n";
    assert!(shown.contains(items), "{shown}");
    assert_eq!(import.scenarios[1].role, ScenarioRole::Setup);
    let mix = to_mix(&import, &["buyers.hurl".into(), "prepare.hurl".into()]);
    let expected = "[load]\nusers = 20\nramp_up = \"5s\"\nduration = \"60s\"\n\n[[scenario]]\nfile = \"buyers.hurl\"\nthink = \"1000ms..3000ms\"\n\
        data = { file = \"users.csv\", order = \"circular\" }\nsetup = \"prepare.hurl\"\n";
    assert_eq!(mix, expected);
    assert_eq!(value(&import, "host"), Some("localhost"));
    assert_eq!(import.variables.len(), 1, "columns of the data are not variables");
    let expected = ["file:27: script: the JSR223PostProcessor magic", "file:33: sampler: the JDBCSampler database"];
    assert_eq!(omissions(&import), expected);
}

#[test]
fn loops_repeat_their_steps_and_elements_that_are_switched_off_are_comments() {
    let text = "<jmeterTestPlan><hashTree><TestPlan/><hashTree><ThreadGroup/><hashTree>\
        <LoopController testname=\"twice\"><stringProp name=\"LoopController.loops\">2</stringProp></LoopController><hashTree>\
        <HTTPSamplerProxy testname=\"a\"><stringProp name=\"HTTPSampler.domain\">h</stringProp></HTTPSamplerProxy><hashTree/></hashTree>\
        <HTTPSamplerProxy testname=\"b\" enabled=\"false\"><stringProp name=\"HTTPSampler.domain\">h</stringProp></HTTPSamplerProxy><hashTree/>\
        </hashTree></hashTree></hashTree></jmeterTestPlan>";
    let import = imported(text);
    assert_eq!(to_hurl(&import.scenarios[0]), "# @name a\nGET http://h\n\n# @name a\nGET http://h\n\n# GET http://h\n");
    assert_eq!(omissions(&import), Vec::<String>::new());
}

#[test]
fn loops_within_loops_are_bounded() {
    let loops = "<LoopController><stringProp name=\"LoopController.loops\">10</stringProp></LoopController><hashTree>";
    let text = format!(
        "<jmeterTestPlan><hashTree><TestPlan/><hashTree><ThreadGroup/><hashTree>{}{}</hashTree></hashTree></hashTree></jmeterTestPlan>",
        loops.repeat(20),
        "</hashTree>".repeat(20)
    );
    assert_eq!(imported(&text).active_steps(), 0);
}

#[test]
fn a_sampler_succeeds_below_400_unless_its_assertion_ignores_the_status() {
    let plan = |flag: &str| {
        format!(
            "<jmeterTestPlan><hashTree><TestPlan/><hashTree><ThreadGroup/><hashTree>\
             <HTTPSamplerProxy testname=\"a\"><stringProp name=\"HTTPSampler.domain\">h</stringProp></HTTPSamplerProxy><hashTree>\
             <ResponseAssertion><collectionProp name=\"Asserion.test_strings\"><stringProp name=\"1\">tea</stringProp></collectionProp>\
             <stringProp name=\"Assertion.test_field\">Assertion.response_data</stringProp>\
             <intProp name=\"Assertion.test_type\">16</intProp>{flag}</ResponseAssertion><hashTree/>\
             </hashTree></hashTree></hashTree></hashTree></jmeterTestPlan>"
        )
    };
    let ignored = "<boolProp name=\"Assertion.assume_success\">true</boolProp>";
    for (flag, success) in [("", "status < 400"), (ignored, "status >= 100")] {
        let expected =
            format!("# @name a\n# @success {success}\nGET http://h\nHTTP *\n[Asserts]\nbody contains \"tea\"\n");
        assert_eq!(to_hurl(&imported(&plan(flag)).scenarios[0]), expected);
    }
}
