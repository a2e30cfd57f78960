//! Requests of an access log, by how often it has them, as scenarios of a load or a search.

use crate::log::{LogReader, LogRequest, check_files, log_format};
use crate::log_load::LogLoad;
use crate::{MixedRoute, RecordSelection, RouteMix};
use weir_load::steps::{DataSource, RowOrder, ScenarioSource};

/// Number of routes in a mix.
const MAX_MIXED_ROUTES: usize = 30;

impl LogLoad {
    /// Checks that the format is of a log.
    ///
    /// # Errors
    /// One line, if there is no log.
    pub fn check_pattern(&self) -> Result<(), String> {
        if self.log_pattern.is_some() && self.mix_from.is_empty() && self.rate_from.is_empty() {
            return Err("--log-pattern is of a log; name one with --mix-from, or --rate-from of weir load".to_owned());
        }
        Ok(())
    }

    /// Scenarios of one step, with the settings of `settings`: one for each route, weighted by its requests.
    ///
    /// # Errors
    /// One line, if the log cannot be read or has no request.
    pub fn scenarios(&self, settings: &ScenarioSource) -> Result<Vec<ScenarioSource>, String> {
        check_files(&self.mix_from)?;
        if settings.data.is_some() {
            return Err("--data and --mix-from cannot be combined; the log has the targets".to_owned());
        }
        let request = LogRequest {
            files: self.mix_from.clone(),
            format: log_format(self.log_pattern.as_deref())?,
            selection: RecordSelection::default(),
            from: None,
            to: None,
            seed: 0,
        };
        let mut reader = LogReader::open(request)?;
        reader.peek()?;
        let mut mix = RouteMix::new(0);
        while let Some(timed) = reader.next()? {
            // What failed by the log would count as failed again, and hide what the service takes.
            if timed.record.status.is_none_or(|status| status < 400) {
                mix.add(&timed.record);
            }
        }
        if mix.requests() == 0 {
            return Err("--mix-from: no request of the log has succeeded".to_owned());
        }
        let routes = mix.into_routes(MAX_MIXED_ROUTES);
        let name = self.mix_from.first().map(|file| file.display().to_string()).unwrap_or_default();
        Ok(routes.iter().map(|route| scenario(route, &name, settings)).collect())
    }
}

/// Scenario of a route, whose iterations take its targets at random.
fn scenario(route: &MixedRoute, log: &str, settings: &ScenarioSource) -> ScenarioSource {
    let rows = route.targets.iter().map(|target| {
        // What is a template in a scenario is text in a log.
        let target = target.trim_start_matches('/').replace('{', "%7B").replace('}', "%7D");
        serde_json::json!({ "target": target })
    });
    let rows = serde_json::Value::Array(rows.collect()).to_string();
    ScenarioSource {
        name: log.to_owned(),
        title: route.name.clone(),
        text: format!("# @name {}\n{} /{{{{target}}}}\n", route.method, route.method),
        weight: route.requests as f64,
        data: Some(DataSource {
            name: format!("{log} {}.json", route.name),
            content: rows.into_bytes(),
            order: RowOrder::Random,
        }),
        ..settings.clone()
    }
}
