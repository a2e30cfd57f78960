//! Requests of both versions.

use weir_hurl::{
    Capture, ExpectedResponse, OptionName, PlainQuery, QueryKind, ResponseQuery, Template, TemplatePart, TextPosition,
    TextQuery,
};

use super::tag::InsomniaTag;
use crate::api_auth::ApiAuth;
use crate::builder;
use crate::collection::ImportedScenario;
use crate::graphql;
use crate::multipart::{self, ImportedPart};
use crate::omission::OmissionKind;
use crate::placeholder::{braces, parsed};
use crate::request::{ImportedBody, ImportedStep, field};
use crate::script;
use crate::session::ImportSession;
use crate::text;
use crate::tree::SourceNode;

/// Reader of requests, with the responses that they refer to.
#[derive(Debug)]
pub(super) struct InsomniaReader<'s> {
    pub(super) session: &'s mut ImportSession,
    /// IDs of requests, and the numbers of their steps.
    ids: Vec<(String, usize)>,
    references: Vec<TagReference>,
}

/// Value of another response.
#[derive(Debug)]
struct TagReference {
    line: u32,
    request: String,
    query: QueryKind,
    variable: String,
}

impl<'s> InsomniaReader<'s> {
    pub(super) fn new(session: &'s mut ImportSession) -> Self {
        Self { session, ids: Vec::new(), references: Vec::new() }
    }

    /// Adds the captures of the responses that tags refer to.
    pub(super) fn finish(&mut self, scenario: &mut ImportedScenario) {
        for reference in std::mem::take(&mut self.references) {
            let index = self.ids.iter().find(|(id, _)| *id == reference.request).map(|(_, index)| *index);
            let Some(step) = index.and_then(|index| scenario.steps.get_mut(index)) else {
                let what = format!("a value of the response to {}, which is not in the file", reference.request);
                self.session.omit(reference.line, OmissionKind::Capture, what);
                continue;
            };
            let query = ResponseQuery { kind: reference.query, position: TextPosition::default() };
            let name = Template::text(reference.variable);
            let capture = Capture { name, query, filters: Vec::new(), is_redacted: false };
            step.response.get_or_insert_with(ExpectedResponse::default).captures.push(capture);
        }
    }

    /// Text with tags and variables.
    fn template(&mut self, source: &str, line: u32) -> Template {
        let mut parts: Vec<TemplatePart> = Vec::new();
        let mut rest = source;
        while let Some((before, inner, after)) = rest
            .split_once("{%")
            .and_then(|(before, rest)| rest.split_once("%}").map(|(inner, after)| (before, inner, after)))
        {
            parts.extend(braces(before, line, self.session).parts);
            parts.extend(self.tag(inner, line).parts);
            rest = after;
        }
        parts.extend(braces(rest, line, self.session).parts);
        text::from_parts(parts)
    }

    fn tag(&mut self, inner: &str, line: u32) -> Template {
        let tag = InsomniaTag::read(inner);
        match (tag.name.as_str(), tag.argument(0)) {
            ("uuid", _) => parsed("{{newUuid}}"),
            ("now", "iso-8601" | "") => parsed("{{newDate}}"),
            ("now", "unix") => parsed("{{newDate dateFormat \"%s\"}}"),
            ("now", "millis") => parsed("{{newDate dateFormat \"%s000\"}}"),
            ("timestamp", _) => parsed("{{newDate dateFormat \"%s\"}}"),
            ("base64", "encode") => self.template(tag.argument(tag.arguments.len().saturating_sub(1)), line),
            ("faker", "randomUUID" | "guid") => parsed("{{newUuid}}"),
            ("faker", "randomEmail") => parsed("{{randomEmail}}"),
            ("faker", "randomFirstName") => parsed("{{randomFirstName}}"),
            ("faker", "randomLastName") => parsed("{{randomLastName}}"),
            ("faker", "randomFullName") => parsed("{{randomFullName}}"),
            ("faker", "randomInt") => parsed("{{randomInt 0 1000}}"),
            ("faker", "timestamp") => parsed("{{newDate dateFormat \"%s\"}}"),
            ("response", attribute) => self.response(attribute, &tag, line),
            (name, _) => {
                let what = format!("the tag {name}, a variable instead");
                self.session.omit(line, OmissionKind::Variable, what);
                text::variable(&self.session.names.name(&format!("{name} {}", tag.argument(0))))
            }
        }
    }

    /// Value of the response to another request.
    fn response(&mut self, attribute: &str, tag: &InsomniaTag, line: u32) -> Template {
        let (request, filter) = (tag.argument(1).to_owned(), tag.argument(2));
        let query = match (attribute, filter) {
            ("body", filter) if filter.starts_with('/') => QueryKind::Text(TextQuery::XPath, Template::text(filter)),
            ("body", filter) => QueryKind::Text(TextQuery::JsonPath, Template::text(filter)),
            ("header", filter) => QueryKind::Text(TextQuery::Header, Template::text(filter)),
            ("raw", _) => QueryKind::Plain(PlainQuery::Body),
            _ => QueryKind::Plain(PlainQuery::Url),
        };
        let known = self.references.iter().find(|known| known.request == request && known.query == query);
        if let Some(known) = known {
            return text::variable(&known.variable);
        }
        let last = filter.rsplit(['.', '/', '$', '[', ']', '@']).find(|part| !part.is_empty()).unwrap_or("value");
        let variable = self.session.names.unique(last);
        self.references.push(TagReference { line, request, query, variable: variable.clone() });
        text::variable(&variable)
    }

    pub(super) fn request(
        &mut self,
        node: &SourceNode<'_>,
        id: &str,
        tags: &[String],
        scenario: &mut ImportedScenario,
    ) {
        let mut step = ImportedStep {
            name: node.text_of("name").unwrap_or_default(),
            line: node.line,
            tags: tags.to_vec(),
            ..ImportedStep::default()
        };
        let method = node.text_of("method").filter(|method| !method.is_empty()).unwrap_or_else(|| "GET".to_owned());
        let mut url = self.template(&node.text_of("url").unwrap_or_default(), node.line);
        for parameter in node.items_of("pathParameters") {
            let key = parameter.text_of("name").unwrap_or_default();
            let value = self.template(&parameter.text_of("value").unwrap_or_default(), parameter.line);
            let value = if text::is_empty(&value) { text::variable(&self.session.names.name(&key)) } else { value };
            url = builder::with_path_variable(&url, &key, &value);
        }
        builder::set_line(&mut step, &method, &url, self.session);
        for (name, value) in self.pairs(node.items_of("parameters")) {
            step.request.query.push(field(builder::encoded_name(&name), value));
        }
        for (name, value) in self.pairs(node.items_of("headers")) {
            let name = text::source(&name);
            builder::add_header(&mut step, &name, &value, self.session);
        }
        self.body(node, &mut step);
        self.authenticate(node, &mut step);
        builder::take_basic_auth(&mut step);
        for (key, is_after) in [("preRequest", false), ("afterResponse", true)] {
            let scripts = node.get("scripts").and_then(|scripts| scripts.get(key));
            let old = if is_after { "afterResponseScript" } else { "preRequestScript" };
            if let Some(script) = scripts.or_else(|| node.get(old)) {
                let code = script.scalar().unwrap_or_default();
                let lines: Vec<(u32, String)> = code.lines().map(|line| (script.line, line.to_owned())).collect();
                script::take(&lines, is_after, &mut step, self.session);
            }
        }
        let settings = node.get("settings").and_then(|settings| settings.text_of("followRedirects"));
        let follows = settings.or_else(|| node.text_of("settingFollowRedirects"));
        if !matches!(follows.as_deref(), Some("off" | "false")) {
            step.request.set_flag(OptionName::Location);
        }
        self.ids.push((id.to_owned(), scenario.steps.len()));
        self.session.push(scenario, step);
    }

    /// Names and values of a list, without those that are switched off.
    fn pairs(&mut self, nodes: &[SourceNode<'_>]) -> Vec<(Template, Template)> {
        let mut made = Vec::new();
        for node in nodes.iter().filter(|node| !node.is_true("disabled")) {
            let name = self.template(&node.text_of("name").unwrap_or_default(), node.line);
            if !text::is_empty(&name) {
                let value = self.template(&node.text_of("value").unwrap_or_default(), node.line);
                made.push((name, value));
            }
        }
        made
    }

    fn body(&mut self, node: &SourceNode<'_>, step: &mut ImportedStep) {
        let Some(body) = node.get("body").filter(|body| body.is_map()) else { return };
        let media_type = body.text_of("mimeType").unwrap_or_default();
        let params = body.items_of("params");
        match media_type.as_str() {
            "application/x-www-form-urlencoded" if !params.is_empty() => {
                let fields = self.pairs(params).into_iter();
                let fields = fields.map(|(name, value)| field(builder::encoded_name(&name), value)).collect();
                step.request.remove_header("Content-Type");
                step.request.body = ImportedBody::Form(fields);
            }
            "multipart/form-data" => {
                let mut parts = Vec::new();
                for param in params.iter().filter(|param| !param.is_true("disabled")) {
                    let name = self.template(&param.text_of("name").unwrap_or_default(), param.line);
                    let kind = param
                        .text_of("contentType")
                        .or_else(|| param.text_of("multiline").filter(|kind| kind.contains('/')));
                    let content_type = kind.filter(|kind| !kind.is_empty()).map(Template::text);
                    if text::is_empty(&name) {
                        builder::omit_at(step, param.line, OmissionKind::Body, "a part without a name", self.session);
                        continue;
                    }
                    parts.push(match param.text_of("type").as_deref() {
                        Some("file") => {
                            ImportedPart::file(name, &param.text_of("fileName").unwrap_or_default(), content_type)
                        }
                        _ => {
                            let value = self.template(&param.text_of("value").unwrap_or_default(), param.line);
                            ImportedPart { content_type, ..ImportedPart::text(name, value) }
                        }
                    });
                }
                multipart::set_body(step, &parts, self.session);
            }
            "application/graphql" => self.graphql(body, step),
            "application/octet-stream" => match body.text_of("fileName").filter(|name| !name.is_empty()) {
                Some(name) => step.request.body = ImportedBody::File(name),
                None => builder::omit_at(
                    step,
                    body.line,
                    OmissionKind::File,
                    "a body of a file without its name",
                    self.session,
                ),
            },
            _ => {
                let text = body.text_of("text").unwrap_or_default();
                if text.is_empty() {
                    return;
                }
                if !media_type.is_empty() {
                    step.request.add_header("Content-Type", Template::text(media_type));
                }
                let text = self.template(&text, body.line);
                builder::text_body(step, text);
            }
        }
    }

    /// `{"query": "...", "variables": {...}}` as text.
    fn graphql(&mut self, body: &SourceNode<'_>, step: &mut ImportedStep) {
        let source = body.text_of("text").unwrap_or_default();
        let parsed = crate::tree::parse_json(&source).ok();
        let query = parsed.as_ref().and_then(|parsed| parsed.text_of("query"));
        step.request.remove_header("Content-Type");
        step.request.add_header("Content-Type", Template::text("application/json"));
        step.request.body = match query {
            Some(query) => {
                let variables = parsed.as_ref().and_then(|parsed| parsed.get("variables"));
                let variables =
                    variables.map(|node| node.scalar().unwrap_or_else(|| node.to_json())).unwrap_or_default();
                graphql::body(&query, &variables, body.line, self.session)
            }
            None => {
                let text = self.template(&source, body.line);
                ImportedBody::Text { text, media_type: "application/json".to_owned() }
            }
        };
    }

    fn authenticate(&mut self, node: &SourceNode<'_>, step: &mut ImportedStep) {
        let Some(own) = node.get("authentication").filter(|own| own.is_map() && !own.is_true("disabled")) else {
            return;
        };
        let mut auth = ApiAuth { kind: own.text_of("type").unwrap_or_default(), line: own.line, ..ApiAuth::default() };
        for (name, value) in own.members() {
            let Some(source) = value.scalar() else { continue };
            // A token may come from another response.
            if source.contains("{%") {
                auth.templates.insert(name.clone().into_owned(), self.template(&source, value.line));
            }
            auth.attributes.insert(name.into_owned(), source);
        }
        auth.apply(step, self.session);
    }
}
