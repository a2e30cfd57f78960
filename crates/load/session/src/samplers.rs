//! Labels and URLs of a load's requests in a log.

use crate::live::step_names;
use weir_load::LoadPlan;

/// Labels and URLs in a log: of each step, or of the one request.
pub(crate) fn samplers(plan: &LoadPlan) -> Vec<(String, String)> {
    let url = plan.shown_url();
    match &plan.scenarios {
        Some(mix) => step_names(plan).into_iter().zip(mix.step_urls()).collect(),
        None if plan.has_users() => step_names(plan).into_iter().map(|name| (name, url.clone())).collect(),
        None => vec![(plan.target.path.split('?').next().unwrap_or("/").to_owned(), url)],
    }
}
