//! Parameters of operations with their values, in the styles that they have.

use weir_hurl::Template;

use super::example::ExampleMaker;
use super::operation::Operation;
use super::style::{ParameterForm, ParameterValue};
use crate::builder;
use crate::omission::OmissionKind;
use crate::request::{ImportedStep, field};
use crate::session::ImportSession;
use crate::text;
use crate::tree::SourceNode;

impl Operation<'_> {
    /// Example that the description gives for a parameter.
    pub(super) fn example<'n>(&'n self, parameter: &'n SourceNode<'n>) -> Option<&'n SourceNode<'n>> {
        let first = || {
            let (_, first) = parameter.get("examples")?.members().next()?;
            self.description.resolve(first).get("value")
        };
        parameter.get("example").or_else(first).or_else(|| parameter.get("x-example"))
    }

    /// Value of a parameter: its example, or one of its schema.
    pub(super) fn value(
        &self,
        parameter: &SourceNode<'_>,
        name: &str,
        step: &mut ImportedStep,
        session: &mut ImportSession,
    ) -> ParameterValue {
        let mut maker = ExampleMaker::new(self.description);
        // In Swagger 2 the parameter is its own schema; in OpenAPI 3 it may have a media type.
        let content = parameter.get("content").and_then(|content| content.members().next());
        let value = match (content, self.example(parameter)) {
            (Some((media_type, content)), given) => {
                let given = given.or_else(|| self.example(content));
                let is_json = media_type.contains("json");
                ParameterValue::Scalar(match (given, content.get("schema")) {
                    (Some(given), _) if is_json => given.to_json(),
                    (Some(given), _) => given.scalar().unwrap_or_else(|| given.to_json()),
                    (None, Some(schema)) if is_json => maker.json(schema),
                    (None, schema) => maker.text(schema.unwrap_or(parameter), name),
                })
            }
            (None, Some(given)) => ParameterValue::of_node(given),
            (None, None) => maker.parameter(parameter.get("schema").unwrap_or(parameter), name),
        };
        maker.omit_problems(parameter.line, step, session);
        value
    }

    /// Style of a parameter; a style that its place does not have is listed, and the default one instead.
    pub(super) fn form(
        &self,
        parameter: &SourceNode<'_>,
        place: &str,
        step: &mut ImportedStep,
        session: &mut ImportSession,
    ) -> ParameterForm {
        if self.description.is_swagger() && parameter.get("collectionFormat").is_none() {
            return ParameterForm::commas(place);
        }
        ParameterForm::read(parameter, place).unwrap_or_else(|what| {
            let name = parameter.text_of("name").unwrap_or_default();
            let what = format!("{what} of the parameter {name} in {place}");
            builder::omit_at(step, parameter.line, OmissionKind::Setting, &what, session);
            ParameterForm::commas(place)
        })
    }

    /// Adds a parameter of the query, a header or a cookie.
    pub(super) fn add_value(
        &self,
        parameter: &SourceNode<'_>,
        name: &str,
        place: &str,
        step: &mut ImportedStep,
        session: &mut ImportSession,
    ) {
        let value = self.value(parameter, name, step, session);
        let form = self.form(parameter, place, step, session);
        match (place, &value) {
            ("header", _) => builder::add_header(step, name, &Template::text(form.text(name, &value)), session),
            ("cookie", ParameterValue::Scalar(text)) => {
                step.request.cookies.push(field(Template::text(name), Template::text(text)));
            }
            ("cookie", _) => {
                let mut pairs = form.pairs(name, &value).into_iter();
                let Some((first, value)) = pairs.next() else { return };
                let value = pairs.fold(value, |value, (name, more)| format!("{value}&{name}={more}"));
                step.request.cookies.push(field(Template::text(first), Template::text(value)));
            }
            (_, ParameterValue::Scalar(text)) if !form.allows_reserved => {
                let name = builder::encoded_name(&Template::text(name));
                step.request.query.push(field(name, Template::text(text)));
            }
            _ => add_to_query(&form.pairs(name, &value), step),
        }
    }
}

/// Adds encoded pairs to the query: as parameters where weir encodes them the same way, else to the URL itself.
fn add_to_query(pairs: &[(String, String)], step: &mut ImportedStep) {
    let decoded: Option<Vec<String>> = pairs
        .iter()
        .map(|(_, value)| builder::percent_decoded(value).filter(|text| builder::percent_encoded(text) == *value))
        .collect();
    if let Some(decoded) = decoded {
        let fields = pairs.iter().zip(decoded);
        step.request.query.extend(fields.map(|((name, _), value)| field(Template::text(name), Template::text(value))));
        return;
    }
    let joined: Vec<String> = pairs.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let separator = if text::source(&step.request.url).contains('?') { "&" } else { "?" };
    step.request.url = text::concat([&step.request.url, &Template::text(separator), &Template::text(joined.join("&"))]);
}
