//! Mix files: users, think times and data of the scenarios, as TOML.

use crate::collection::{Import, ScenarioRole};
use weir_base::markup::toml_string;

/// Mix file of the scenarios, whose `.hurl` files have these names; variables are given beside it.
pub fn to_mix(import: &Import, files: &[String]) -> String {
    let loads = || import.scenarios.iter().map(|scenario| &scenario.load);
    let mut lines = Vec::new();
    let has_users = loads().any(|load| load.users.is_some());
    let is_single = import.scenarios.iter().filter(|scenario| scenario.role == ScenarioRole::Users).count() == 1;
    lines.push("[load]".to_owned());
    if let (true, Some(users)) = (is_single, loads().find_map(|load| load.users)) {
        lines.push(format!("users = {}", users.max(1)));
    }
    let ramp_up = loads().filter_map(|load| load.ramp_up_s).max().filter(|seconds| has_users && *seconds > 0);
    let duration = loads().filter_map(|load| load.duration_s).max().filter(|seconds| *seconds > 0);
    let loops = loads().filter_map(|load| load.loops).max().filter(|loops| has_users && *loops > 0);
    lines.extend(ramp_up.map(|seconds| format!("ramp_up = \"{seconds}s\"")));
    lines.extend(duration.map(|seconds| format!("duration = \"{seconds}s\"")));
    if duration.is_none() {
        lines.extend(loops.map(|loops| format!("loops = {loops}")));
    }
    if lines.len() == 1 {
        lines.clear();
    }
    let of_role = |role| {
        let mut all = import.scenarios.iter().zip(files);
        all.find(|(scenario, _)| scenario.role == role).map(|(_, file)| file)
    };
    let (setup, teardown) = (of_role(ScenarioRole::Setup), of_role(ScenarioRole::Teardown));
    for (scenario, file) in import.scenarios.iter().zip(files) {
        if scenario.role != ScenarioRole::Users {
            continue;
        }
        let load = &scenario.load;
        lines.push(format!("{}[[scenario]]", if lines.is_empty() { "" } else { "\n" }));
        lines.push(format!("file = {}", toml_string(file)));
        if has_users && !is_single {
            lines.push(format!("users = {}", load.users.unwrap_or(1).max(1)));
        }
        lines.extend(load.think.as_ref().map(|think| format!("think = {}", toml_string(think))));
        if let Some(data) = &load.data {
            lines.push(format!("data = {{ file = {}, order = \"{}\" }}", toml_string(&data.file), data.order));
        }
        lines.extend(setup.map(|file| format!("setup = {}", toml_string(file))));
        lines.extend(teardown.map(|file| format!("teardown = {}", toml_string(file))));
        if load.continue_on_error {
            lines.push("continue_on_error = true".to_owned());
        }
        if load.keep_cookies {
            lines.push("keep_cookies = true".to_owned());
        }
    }
    lines.join("\n") + "\n"
}
