//! Settings of the scenarios of a load, from its options.

use std::borrow::Cow;

use weir_base::Nanos;
use weir_hurl::Assertion;
use weir_net::wire::parse_header;
use weir_request::url::HttpUrl;
use weir_request::url_text::UrlText;
use weir_scenario::data::ThinkTime;
use weir_scenario::plan::{ScenarioSettings, StepRules};
use weir_scenario::value::Value;

use super::ScenarioSource;
use super::single_request::mistake;
use crate::options::Options;
use crate::plan::{PlanError, typed_auth};

/// Wait of a client before its first retry, on average.
const CLIENT_RETRY_INTERVAL: Nanos = Nanos::from_millis(100);

/// Settings of a scenario.
pub(super) fn scenario_settings(
    source: &ScenarioSource,
    options: &Options,
    keep_alive: bool,
) -> Result<ScenarioSettings, PlanError> {
    let header = |text: &String| {
        // Templates are checked where they are compiled.
        let (name, value) = match text.split_once(':').filter(|_| text.contains("{{")) {
            Some((name, value)) => (name.trim(), value.trim()),
            None => parse_header(text)?,
        };
        Ok((name.to_owned(), value.to_owned()))
    };
    let think = match &source.think {
        Some(text) => ThinkTime::parse(text).map_err(|why| PlanError::Value("think", why.to_string()))?,
        None => ThinkTime::default(),
    };
    let given = source.variables.iter().map(|(name, value)| (name.clone(), Value::of_text(value)));
    let captured = source.captured.iter().map(|(name, json)| (name.clone(), Value::of_json(json.as_bytes())));
    let success = options.success.as_ref().map(|text| {
        let named = |error| PlanError::Scenario(mistake(&format!("--success '{text}'"), &error, ""));
        Assertion::parse(text).map_err(named)
    });
    Ok(ScenarioSettings {
        variables: given.chain(captured).collect(),
        secret_variables: options.redact.clone(),
        base_url: base_url(&options.url)?,
        headers: options.headers.iter().map(header).collect::<Result<_, PlanError>>()?,
        user: typed_auth(options)?.map(Cow::into_owned),
        keep_alive,
        accept_encoding: "gzip, deflate, br".to_owned(),
        think,
        rules: rules(source),
        continue_on_error: source.continue_on_error,
        keep_cookies: source.keep_cookies,
        success: success.transpose()?,
        ..ScenarioSettings::default()
    })
}

/// URL before paths, with its scheme; checked here, since it is the one of the command line.
fn base_url(typed: &str) -> Result<Option<String>, PlanError> {
    if typed.is_empty() {
        return Ok(None);
    }
    HttpUrl::parse_typed(typed)?;
    let scheme = if UrlText::of(typed).scheme.is_some() { "" } else { "http://" };
    Ok(Some(format!("{scheme}{typed}")))
}

/// Rules of steps without options: with a maximum of redirects they follow them, and with one of retries they are retried
/// as by clients.
fn rules(source: &ScenarioSource) -> StepRules {
    let mut rules = StepRules::default();
    if let Some(max) = source.max_redirects.filter(|max| *max > 0) {
        (rules.follow_redirects, rules.max_redirects) = (true, max);
    }
    if let Some(max) = source.client_retries.filter(|max| *max > 0) {
        (rules.max_retries, rules.retry_interval, rules.retries_as_client) = (max, CLIENT_RETRY_INTERVAL, true);
    }
    rules
}
