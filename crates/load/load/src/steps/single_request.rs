//! A single request with templates or checks: a scenario of one step, given by options instead of a file.
//!
//! The text of the scenario is what the options mean in the format of hurl. Each of its lines is from one option, which
//! messages name: a user who wrote no file has no use for `1:5`.

use std::borrow::Cow;
use std::collections::BTreeSet;

use weir_hurl::{
    Assertion, BodyContent, BytesLiteral, FieldTemplate, HurlBody, HurlRequest, ParseError, Template, TemplatePart,
};

use weir_net::wire::RequestError;
use weir_request::secret_mask::{shown_header, url_label, without_secrets};
use weir_request::url_text::UrlText;

use super::source::ScenarioSource;
use crate::options::{Options, RequestBodySource};
use crate::plan::{PlanError, typed_auth, weights};

/// Remedy for braces that are not meant as a template.
pub(super) const LITERAL_BRACES: &str = "--no-template sends {{ as it is";

/// The options of a single request with templates or checks as those of a scenario; other options as they are.
pub(crate) fn with_single_request(options: &Options) -> Result<Cow<'_, Options>, PlanError> {
    if !options.scenarios.is_empty() {
        let rules = [
            (!options.checks.is_empty(), "--check is for a single request; a scenario has [Asserts]"),
            (options.no_template, "--no-template is for a single request"),
        ];
        let broken = rules.into_iter().find(|(is_broken, _)| *is_broken);
        return broken.map_or(Ok(Cow::Borrowed(options)), |(_, why)| Err(PlanError::Conflict(why)));
    }
    if !needs_scenario(options) {
        return Ok(Cow::Borrowed(options));
    }
    as_single_step(options).map(Cow::Owned)
}

/// The options of a single request as those of a scenario of one step, whether it needs one or not.
pub(crate) fn as_single_step(options: &Options) -> Result<Options, PlanError> {
    TextWriter { is_template: !options.no_template, ..TextWriter::default() }.options(options)
}

fn needs_scenario(options: &Options) -> bool {
    let has_settings = options.request_scenario != ScenarioSource::default();
    let has_braces = |text: &str| text.contains("{{");
    let in_body = |body: &RequestBodySource| match body {
        RequestBodySource::Bytes(bytes) => bytes.windows(2).any(|pair| pair == b"{{"),
        RequestBodySource::File(_) => false,
    };
    let texts = [&options.url].into_iter().chain(&options.headers).chain(&options.auth);
    let has_templates =
        !options.no_template && (texts.into_iter().any(|text| has_braces(text)) || options.bodies.iter().any(in_body));
    options.traces_requests || has_settings || has_templates || !options.checks.is_empty() || options.success.is_some()
}

/// Writer of a scenario's text, line by line.
#[derive(Clone, Debug, Default)]
struct TextWriter {
    is_template: bool,
    text: String,
    /// Option of each line.
    origins: Vec<String>,
    /// Mistakes, each with its option.
    mistakes: Vec<String>,
}

impl TextWriter {
    fn options(mut self, options: &Options) -> Result<Options, PlanError> {
        let method = match (&options.method, options.bodies.is_empty()) {
            (Some(method), _) => method.clone(),
            (None, true) => "GET".to_owned(),
            (None, false) => "POST".to_owned(),
        };
        if !method.bytes().all(|byte| byte.is_ascii_uppercase()) || method.is_empty() {
            let why = format!("'{method}': a request with templates or checks has a method of capital letters");
            return Err(PlanError::Value("method", why));
        }
        let origin = format!("URL '{}'", options.grpc.shown_url(options.url.clone()));
        if let Some(target) = options.grpc.target() {
            self.push(&format!("# @name {}\n", target.name()), &origin);
        }
        let url = self.template(&options.url, &origin);
        self.push(&HurlRequest::new(method, with_scheme(url)).to_string(), &origin);
        let headers = self.headers(options)?;
        let auth = match options.auth.as_deref().filter(|auth| self.is_template && auth.contains("{{")) {
            Some(text) => {
                self.auth(text);
                None
            }
            None => typed_auth(options)?.map(Cow::into_owned),
        };
        let mut sources = options.bodies.iter().map(|body| self.clone().body(body)).collect::<Result<Vec<_>, _>>()?;
        let is_one_of_many = sources.len() > 1;
        let weights = weights(options, sources.len())?;
        if sources.is_empty() {
            sources.push(self);
        }
        let scenarios = sources.into_iter().zip(weights).enumerate().map(|(index, (writer, weight))| {
            let title = if is_one_of_many { format!("body {}", index + 1) } else { String::new() };
            let source = writer.source(options, weight)?;
            Ok::<_, PlanError>(ScenarioSource { title, ..source })
        });
        Ok(Options {
            url: String::new(),
            scenarios: scenarios.collect::<Result<_, _>>()?,
            method: None,
            bodies: Vec::new(),
            weights: Vec::new(),
            checks: Vec::new(),
            headers,
            auth,
            ..options.clone()
        })
    }

    /// Writes the headers that have templates; returns the others, which are the same for all requests.
    fn headers(&mut self, options: &Options) -> Result<Vec<String>, PlanError> {
        let name = |line: &str| line.split(':').next().unwrap_or_default().trim().to_ascii_lowercase();
        let is_dynamic = |line: &&String| self.is_template && line.contains("{{");
        let dynamic: BTreeSet<String> = options.headers.iter().filter(is_dynamic).map(|line| name(line)).collect();
        let mut others = Vec::new();
        for line in &options.headers {
            if !dynamic.contains(&name(line)) {
                others.push(line.clone());
                continue;
            }
            let origin = format!("-H '{line}'");
            let Some((name, value)) = line.split_once(':') else {
                return Err(RequestError::Header(shown_header(line).escape_debug().to_string()).into());
            };
            let field =
                FieldTemplate { name: Template::text(name.trim()), value: self.template(value.trim(), &origin) };
            self.push(&format!("{field}\n"), &origin);
        }
        Ok(others)
    }

    /// Writes basic authentication with templates.
    fn auth(&mut self, text: &str) {
        let (user, password) = text.split_once(':').unwrap_or((text, ""));
        let field = FieldTemplate { name: self.template(user, "--auth"), value: self.template(password, "--auth") };
        self.push(&format!("[BasicAuth]\n{field}\n"), "--auth");
    }

    /// Writes a body: a file and bytes that are not text are sent as they are.
    fn body(mut self, body: &RequestBodySource) -> Result<Self, PlanError> {
        let origin = format!("-b '{}'", shown(body));
        let content = match body {
            RequestBodySource::File(path) => {
                let name = path.to_str().ok_or_else(|| {
                    PlanError::File(path.to_string_lossy().into_owned(), "its name is not UTF-8".to_owned())
                })?;
                BodyContent::File(Template::text(name))
            }
            RequestBodySource::Bytes(bytes) => match std::str::from_utf8(bytes) {
                Ok("") => return Ok(self),
                Ok(text) => BodyContent::OneLine(self.template(text, &origin)),
                Err(_) => BodyContent::Bytes(BytesLiteral::Base64(bytes.clone())),
            },
        };
        self.push(&format!("{}\n", HurlBody::new(content)), &origin);
        Ok(self)
    }

    /// Writes the checks and ends the text.
    fn source(mut self, options: &Options, weight: f64) -> Result<ScenarioSource, PlanError> {
        if !options.checks.is_empty() {
            self.push("HTTP *\n[Asserts]\n", "");
        }
        for check in &options.checks {
            let origin = format!("--check '{check}'");
            match Assertion::parse(check) {
                Ok(assertion) => self.push(&format!("{assertion}\n"), &origin),
                Err(error) => self.mistakes.push(mistake(&origin, &error, "")),
            }
        }
        if !self.mistakes.is_empty() {
            return Err(PlanError::Scenario(self.mistakes.join("\n")));
        }
        let settings = options.request_scenario.clone();
        Ok(ScenarioSource {
            name: url_label(&options.url),
            text: self.text,
            weight,
            line_origins: self.origins,
            ..settings
        })
    }

    fn template(&mut self, text: &str, origin: &str) -> Template {
        if !self.is_template {
            return Template::text(text);
        }
        Template::parse(text).unwrap_or_else(|error| {
            self.mistakes.push(mistake(origin, &error, LITERAL_BRACES));
            Template::text(text)
        })
    }

    /// Appends lines with their ends.
    fn push(&mut self, lines: &str, origin: &str) {
        self.origins.extend(lines.lines().map(|_| origin.to_owned()));
        self.text.push_str(lines);
    }
}

/// `--check 'status = 200': expected a filter or a predicate, found '='; did you mean '=='?`.
pub(super) fn mistake(origin: &str, error: &ParseError, remedy: &str) -> String {
    let ParseError { expected, found, hint, .. } = error;
    let hints = [hint.as_str(), remedy].into_iter().filter(|hint| !hint.is_empty()).map(|hint| format!("; {hint}"));
    without_secrets(&format!("{origin}: expected {expected}, found {found}{}", hints.collect::<String>()))
}

/// A URL without a scheme is one of http.
fn with_scheme(mut url: Template) -> Template {
    if let Some(TemplatePart::Text(text)) = url.parts.first_mut()
        && UrlText::of(text).scheme.is_none()
    {
        text.insert_str(0, "http://");
    }
    url
}

fn shown(body: &RequestBodySource) -> String {
    match body {
        RequestBodySource::File(path) => format!("@{}", path.display()),
        RequestBodySource::Bytes(bytes) => {
            let text = String::from_utf8_lossy(bytes);
            let short: String = text.chars().take(60).collect();
            if short.len() < text.len() { format!("{short}...") } else { short }
        }
    }
}
