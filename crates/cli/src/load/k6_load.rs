//! Load of a script of k6.

use std::path::Path;

use super::LoadArgs;
use weir_report::ReportFormat;
use weir_scripts::K6Script;

/// Script of k6 of a load, if there is one, with the load that its options describe.
///
/// # Errors
/// One line with its mistake.
pub(super) fn k6_script(asked: &mut LoadArgs) -> Result<Option<K6Script>, String> {
    let Some(path) = asked.request_args.take_javascript()? else { return Ok(None) };
    let has_pace = asked.connections.is_some()
        || asked.users.is_some()
        || asked.rate.is_some()
        || asked.stages.is_some()
        || asked.loops.is_some();
    let has_own_load = has_pace || asked.requests.is_some() || asked.duration.is_some();
    if asked.ramp_up.is_some() && !has_own_load {
        return Err("--ramp-up needs --users; a script's own options set its stages".to_owned());
    }
    let mut options = asked.k6_flags.script(path, asked.request_args.url());
    options.collection = asked.request_args.collection_input(Path::new(""))?;
    let script = K6Script::open(&options, has_own_load, asked.agent_args.has_agents())?;
    if has_own_load && !has_pace {
        // As in k6, the users stay those of the script.
        asked.users = Some(script.users().unwrap_or(1));
    }
    let export = asked.k6_result_flags.summary_export.clone();
    let is_json = asked.format == ReportFormat::Json;
    Ok(Some(script.with_summary(export, asked.format == ReportFormat::K6, !is_json)))
}
