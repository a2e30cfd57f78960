//! Check of responses by the form of their results: what has another form counts as a failed attempt, and is asked again.

use std::borrow::Cow;
use std::sync::Arc;

use http::HeaderMap;
use serde::Deserialize;

use super::ResultsForm;
use weir_send::ResponseCheck;

/// Check by the form, and then by the user's.
#[derive(Debug)]
pub(crate) struct BatchCheck {
    pub(crate) form: ResultsForm,
    pub(crate) own: Option<Arc<dyn ResponseCheck>>,
}

#[derive(Debug, Deserialize)]
struct TypedBody<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Cow<'a, str>>,
}

impl ResponseCheck for BatchCheck {
    fn check(&self, status: u16, headers: &HeaderMap, body: &[u8]) -> Result<(), String> {
        let is_object = body.trim_ascii_start().starts_with(b"{");
        let parsed: Option<TypedBody<'_>> = serde_json::from_slice(body).ok().filter(|_| is_object);
        match (self.form, parsed) {
            (ResultsForm::Weir, _) => {}
            (_, None) => return Err("the response is not a JSON object".to_owned()),
            (ResultsForm::AnthropicBatch, Some(TypedBody { kind })) if kind.as_deref() != Some("message") => {
                return Err("the response is not a message of Anthropic's API".to_owned());
            }
            (ResultsForm::OpenAiBatch | ResultsForm::AnthropicBatch, Some(_)) => {}
        }
        self.own.as_ref().map_or(Ok(()), |own| own.check(status, headers, body))
    }
}
