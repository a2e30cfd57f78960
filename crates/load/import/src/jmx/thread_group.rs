//! Thread groups: how many users play a scenario.

use super::element::PlanElement;
use super::function::number;
use crate::collection::{ImportedData, ImportedLoad, ScenarioRole};
use crate::omission::OmissionKind;
use crate::session::ImportSession;

/// Role of a thread group in the load; `None` if an element is none.
pub(super) fn role(class: &str) -> Option<ScenarioRole> {
    match class {
        "SetupThreadGroup" => Some(ScenarioRole::Setup),
        "PostThreadGroup" => Some(ScenarioRole::Teardown),
        class if class.ends_with("ThreadGroup") => Some(ScenarioRole::Users),
        _ => None,
    }
}

/// Load of a thread group.
pub(super) fn load(group: PlanElement<'_>, session: &mut ImportSession) -> ImportedLoad {
    let mut load = ImportedLoad::default();
    if group.class() != "ThreadGroup" {
        if role(group.class()) == Some(ScenarioRole::Users) {
            let what = format!("the load of the {} {}", group.class(), group.name());
            session.omit(group.line(), OmissionKind::Element, what);
        }
        return load;
    }
    let mut read = |name: &str| {
        let text = group.text(name).trim();
        let value = number(text);
        if value.is_none() && !text.is_empty() && !text.starts_with('-') {
            session.omit(group.line(), OmissionKind::Setting, format!("{name} {text}"));
        }
        value
    };
    load.users = Some(read("ThreadGroup.num_threads").unwrap_or(1).clamp(1, 1_000_000));
    load.ramp_up_s = read("ThreadGroup.ramp_time").filter(|seconds| *seconds > 0);
    if group.flag("ThreadGroup.scheduler") {
        load.duration_s = read("ThreadGroup.duration").filter(|seconds| *seconds > 0);
    }
    let controller = group.part("ThreadGroup.main_controller");
    load.loops =
        controller.and_then(|controller| number(controller.text("LoopController.loops"))).filter(|loops| *loops > 0);
    match group.text("ThreadGroup.on_sample_error") {
        "" | "continue" => load.continue_on_error = true,
        "startnextloop" => {}
        other => {
            let what = format!("{other} after a failed sampler; the next iteration instead");
            session.omit(group.line(), OmissionKind::Setting, what);
        }
    }
    load
}

/// Rows of data of a CSV Data Set.
pub(super) fn data(element: PlanElement<'_>, session: &mut ImportSession) -> ImportedData {
    let names = element.text("variableNames").trim();
    let columns = names.split(',').map(str::trim).filter(|name| !name.is_empty());
    let columns: Vec<String> = columns.map(|name| session.names.name(name)).collect();
    let recycles = element.flag("recycle");
    if element.text("shareMode") == "shareMode.thread" {
        session.omit(element.line(), OmissionKind::Setting, "a file of data for each thread; all share it");
    }
    ImportedData {
        file: element.text("filename").replace('\\', "/"),
        order: if recycles { "circular" } else { "unique" },
        lacks_header: !names.is_empty() && !element.flag("ignoreFirstLine"),
        columns,
        delimiter: element.text("delimiter").to_owned(),
    }
}
