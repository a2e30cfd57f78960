//! Settings of a scenario besides its file.

use std::sync::Arc;

use weir_hurl::Assertion;
use weir_request::secret_names::is_secret_name;

use super::body_codec::BodyCodec;
use super::rules::StepRules;
use crate::data::ThinkTime;
use crate::value::Value;

/// Settings of a scenario besides its file, as given on a command line.
#[derive(Clone, Debug)]
pub struct ScenarioSettings {
    /// Variables with their values.
    pub variables: Vec<(String, Value)>,
    /// Names of variables whose values are secrets, beside those with a secret name.
    pub secret_variables: Vec<String>,
    /// Names of the columns of data, which are variables of each iteration.
    pub columns: Vec<String>,
    /// URL before paths: `/items` becomes `http://shop/items`. Headers with secret names and the user go to its origin
    /// alone.
    pub base_url: Option<String>,
    /// Headers of all requests; a step's own headers of the same name replace them.
    pub headers: Vec<(String, String)>,
    /// Credentials `user:password` for basic authentication.
    pub user: Option<String>,
    /// Name of the client; weir's without one.
    pub user_agent: Option<String>,
    /// Whether connections are kept.
    pub keep_alive: bool,
    /// Whether responses may be compressed.
    pub compressed: bool,
    /// Compressions that the load can decode, for Accept-Encoding.
    pub accept_encoding: String,
    /// Time between the steps of a user.
    pub think: ThinkTime,
    /// Rules of steps without options.
    pub rules: StepRules,
    /// Predicate that makes a response a success, of steps without one of their own (`# @success`); without any a
    /// status below 400 does.
    pub success: Option<Assertion>,
    /// Coding of the bodies of all steps; they are sent as they are without one.
    pub codec: Option<Arc<dyn BodyCodec>>,
    /// Whether an iteration goes on after a failed step.
    pub continue_on_error: bool,
    /// Whether a user's cookies are kept from one iteration to the next one.
    pub keep_cookies: bool,
}

impl ScenarioSettings {
    /// Name of a header with credentials, if there is one.
    pub fn secret_header(&self) -> Option<&str> {
        let secret = self.headers.iter().find(|(name, value)| is_secret_name(name) && !value.is_empty());
        let of_user = self.user.as_ref().map(|_| "Authorization");
        secret.map(|(name, _)| name.as_str()).or(of_user)
    }
}

impl Default for ScenarioSettings {
    fn default() -> Self {
        Self {
            variables: Vec::new(),
            secret_variables: Vec::new(),
            columns: Vec::new(),
            base_url: None,
            headers: Vec::new(),
            user: None,
            user_agent: None,
            keep_alive: true,
            compressed: false,
            accept_encoding: "gzip, deflate, br".to_owned(),
            think: ThinkTime::default(),
            rules: StepRules::default(),
            success: None,
            codec: None,
            continue_on_error: false,
            keep_cookies: false,
        }
    }
}
