//! Arguments of a sampler: a query or a form, encoded as JMeter encodes them.

use weir_base::percent;
use weir_base::percent::AsciiSet;
use weir_hurl::Template;

use super::element::PlanElement;
use super::function::template;
use crate::builder;
use crate::request::{ImportedBody, ImportedStep, field};
use crate::session::ImportSession;
use crate::text;

/// Content-Type of a form.
const FORM: &str = "application/x-www-form-urlencoded";

/// Argument with a name.
#[derive(Debug)]
pub(super) struct ArgumentPair {
    name: Template,
    value: Template,
    /// Whether JMeter encodes it; otherwise it is encoded already.
    is_encoded_by_tool: bool,
    /// Whether there is a `=` also before an empty value.
    has_equals: bool,
}

impl ArgumentPair {
    pub(super) fn read(argument: PlanElement<'_>, session: &mut ImportSession) -> Self {
        let line = argument.line();
        let value = match argument.text("Argument.value") {
            "" => argument.own_text().trim(),
            value => value,
        };
        Self {
            name: template(argument.text("Argument.name"), line, session),
            value: template(value, line, session),
            is_encoded_by_tool: argument.flag("HTTPArgument.always_encode"),
            has_equals: argument.text("Argument.metadata") == "="
                || !is_false(argument.text("HTTPArgument.use_equals")),
        }
    }

    /// `name=value` as it is sent; `None` if a value that is not known has to be encoded.
    fn sent(&self) -> Option<Template> {
        let equals = if self.has_equals || !text::is_empty(&self.value) { "=" } else { "" };
        if !self.is_encoded_by_tool {
            return Some(text::concat([&self.name, &Template::text(equals), &self.value]));
        }
        let fixed =
            |text: &Template| if text::is_empty(text) { Some(String::new()) } else { text.as_text().map(encoded) };
        Some(Template::text(format!("{}{equals}{}", fixed(&self.name)?, fixed(&self.value)?)))
    }

    /// The argument as a field, whose value weir encodes.
    fn as_field(&self) -> weir_hurl::FieldTemplate {
        let decoded = self.value.as_text().filter(|_| !self.is_encoded_by_tool).and_then(builder::percent_decoded);
        field(builder::encoded_name(&self.name), decoded.map_or_else(|| self.value.clone(), Template::text))
    }
}

fn is_false(text: &str) -> bool {
    text.trim() == "false"
}

/// Sets arguments as the query, or as the form of the body.
pub(super) fn set(arguments: &[ArgumentPair], is_query: bool, step: &mut ImportedStep) {
    if arguments.is_empty() {
        return;
    }
    let sent: Option<Vec<Template>> = arguments.iter().map(ArgumentPair::sent).collect();
    let Some(sent) = sent else {
        let fields = arguments.iter().map(ArgumentPair::as_field);
        if is_query {
            step.request.query.extend(fields);
        } else {
            step.request.remove_header("Content-Type");
            step.request.body = ImportedBody::Form(fields.collect());
        }
        return;
    };
    let ampersand = Template::text("&");
    let joined = sent.iter().enumerate().flat_map(|(index, pair)| match index {
        0 => vec![pair],
        _ => vec![&ampersand, pair],
    });
    let joined = text::concat(joined);
    if is_query {
        let separator = if text::source(&step.request.url).contains('?') { "&" } else { "?" };
        step.request.url = text::concat([&step.request.url, &Template::text(separator), &joined]);
    } else {
        // A variable of a form stands there as it is, where JMeter does not encode it.
        step.request.add_header("Content-Type", Template::text(FORM));
        match joined.as_text() {
            Some(_) => builder::text_body(step, joined),
            None => step.request.body = ImportedBody::Text { text: joined, media_type: FORM.to_owned() },
        }
    }
}

/// Characters that Java's URLEncoder escapes.
const JAVA_RESERVED: &AsciiSet = &percent::NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'*');

/// Text as Java's URLEncoder encodes it.
fn encoded(text: &str) -> String {
    percent::form_encoded(text.as_bytes(), JAVA_RESERVED)
}
