//! HTTP samplers as steps.

use weir_hurl::{ExpressionSource, OptionName, Template, TemplatePart};

use super::argument::{self, ArgumentPair};
use super::element::PlanElement;
use super::function::{number, template};
use super::scope::PlanScope;
use crate::builder;
use crate::multipart::{self, ImportedPart};
use crate::omission::OmissionKind;
use crate::placeholder::parsed;
use crate::request::{ImportedBody, ImportedStep};
use crate::session::ImportSession;
use crate::text;

pub(super) fn is_http(class: &str) -> bool {
    matches!(class, "HTTPSamplerProxy" | "HTTPSampler" | "HTTPSampler2")
}

/// Value without a slash at its beginning.
const STRIPPED: &str = "{{path replaceRegex \"^/\" \"\"}}";

/// Step of a sampler.
pub(super) fn step<'a>(
    sampler: PlanElement<'a>,
    scope: &PlanScope<'a>,
    tags: &[String],
    session: &mut ImportSession,
) -> ImportedStep {
    let line = sampler.line();
    let mut step =
        ImportedStep { name: sampler.name().to_owned(), line, tags: tags.to_vec(), ..ImportedStep::default() };
    let url = url(sampler, scope, session);
    let method = match scope.property(sampler, "HTTPSampler.method") {
        "" => "GET",
        method => method,
    };
    builder::set_line(&mut step, method, &url, session);
    if sampler.flag("HTTPSampler.follow_redirects") || sampler.flag("HTTPSampler.auto_redirects") {
        step.request.set_flag(OptionName::Location);
    }
    if let Some(timeout) =
        number(scope.property(sampler, "HTTPSampler.response_timeout")).filter(|timeout| *timeout > 0)
    {
        step.request.set_duration(OptionName::MaxTime, timeout);
    }
    if sampler.flag("HTTPSampler.image_parser") {
        builder::omit(&mut step, OmissionKind::Setting, "embedded resources of the page", session);
    }
    scope.apply(&mut step, session);
    body(sampler, scope, method, &mut step, session);
    step.is_disabled |= !sampler.is_enabled();
    step
}

fn url<'a>(sampler: PlanElement<'a>, scope: &PlanScope<'a>, session: &mut ImportSession) -> Template {
    let line = sampler.line();
    let path = scope.property(sampler, "HTTPSampler.path").trim();
    if path.starts_with("http://") || path.starts_with("https://") {
        return template(path, line, session);
    }
    let domain = scope.property(sampler, "HTTPSampler.domain").trim();
    let port = scope.property(sampler, "HTTPSampler.port").trim();
    let scheme = scope.property(sampler, "HTTPSampler.protocol").trim();
    let scheme = match scheme {
        "" if port == "443" => "https",
        "" => "http",
        scheme => scheme,
    };
    let is_default = (port == "443" && scheme == "https") || (port == "80" && scheme == "http");
    let port = if port.is_empty() || is_default { String::new() } else { format!(":{port}") };
    // A URL of one variable only is the whole URL.
    if path.is_empty() && domain.is_empty() {
        return template("/", line, session);
    }
    let is_whole = domain.is_empty() && path.starts_with("${") && !path.starts_with("${__");
    // Spaces of a query are not those of a form.
    let path = text::map_fixed(&template(path, line, session), |fixed| Template::text(fixed.replace(' ', "%20")));
    if is_whole || known_start(&path, session).is_some_and(|start| start.starts_with("http")) {
        return path;
    }
    let path = with_slash(path, session);
    if domain.is_empty() {
        return path;
    }
    let start = if domain.contains("://") { String::new() } else { format!("{scheme}://") };
    text::concat([&template(&format!("{start}{domain}{port}"), line, session), &path])
}

/// Text at the beginning of a path: its own, or that of the value of a variable; `None` if it is not known.
fn known_start(path: &Template, session: &ImportSession) -> Option<String> {
    let mut start = String::new();
    for part in &path.parts {
        match part {
            TemplatePart::Text(text) => start.push_str(text),
            TemplatePart::Expression(expression) => {
                let ExpressionSource::Variable(name) = &expression.source else { return None };
                start.push_str(session.known_value(name)?);
            }
        }
        if !start.is_empty() {
            return Some(start);
        }
    }
    Some(start)
}

/// Path that begins with a slash once it has its values, as JMeter sends it.
fn with_slash(path: Template, session: &ImportSession) -> Template {
    match known_start(&path, session) {
        Some(start) if start.starts_with('/') || text::is_empty(&path) => path,
        Some(_) => text::concat([&Template::text("/"), &path]),
        // Of a value that is not known a slash at its beginning is taken away.
        None => {
            let mut parts = path.parts;
            if let Some(TemplatePart::Expression(first)) = parts.first_mut()
                && let Some(TemplatePart::Expression(stripped)) = parsed(STRIPPED).parts.first()
            {
                first.filters.extend(stripped.filters.iter().cloned());
            }
            text::concat([&Template::text("/"), &text::from_parts(parts)])
        }
    }
}

fn body<'a>(
    sampler: PlanElement<'a>,
    scope: &PlanScope<'a>,
    method: &str,
    step: &mut ImportedStep,
    session: &mut ImportSession,
) {
    let own = sampler.part("HTTPsampler.Arguments").map(|part| part.arguments()).unwrap_or_default();
    let inherited = scope.defaults.iter().filter_map(|defaults| defaults.part("HTTPsampler.Arguments"));
    let inherited: Vec<PlanElement<'a>> = inherited.flat_map(|part| part.arguments()).collect();
    let value = |argument: &PlanElement<'a>| match argument.text("Argument.value") {
        "" => argument.own_text().trim(),
        value => value,
    };
    let files = sampler.part("HTTPsampler.Files").map(|part| part.list("HTTPFileArgs.files")).unwrap_or_default();
    let has_own_name = own.iter().any(|argument| !argument.text("Argument.name").is_empty());
    let is_raw = sampler.flag("HTTPSampler.postBodyRaw") || (!own.is_empty() && !has_own_name);
    if is_raw {
        let joined: String = own.iter().map(|argument| value(argument).replace("\r\n", "\n")).collect();
        let text = template(&joined, sampler.line(), session);
        builder::text_body(step, text);
        return;
    }
    let arguments: Vec<&PlanElement<'a>> =
        inherited.iter().chain(&own).filter(|argument| !argument.text("Argument.name").is_empty()).collect();
    let is_multipart = sampler.flag("HTTPSampler.DO_MULTIPART_POST");
    let named: Vec<&PlanElement<'a>> = files.iter().filter(|file| !file.text("File.path").is_empty()).collect();
    let has_body = !matches!(method, "GET" | "HEAD" | "DELETE" | "OPTIONS" | "TRACE");
    if !has_body || (named.is_empty() && !is_multipart) {
        let pairs: Vec<ArgumentPair> =
            arguments.iter().map(|argument| ArgumentPair::read(**argument, session)).collect();
        argument::set(&pairs, !has_body, step);
        // With DELETE JMeter sends them twice.
        if method == "DELETE" {
            argument::set(&pairs, false, step);
        }
        return;
    }
    if let [file] = named.as_slice()
        && file.text("File.paramname").is_empty()
        && arguments.is_empty()
    {
        step.request.body = ImportedBody::File(file.text("File.path").to_owned());
        return;
    }
    let mut parts: Vec<ImportedPart> = Vec::new();
    for argument in arguments {
        let name = template(argument.text("Argument.name"), argument.line(), session);
        parts.push(ImportedPart::text(name, template(value(argument), argument.line(), session)));
    }
    for file in named {
        let path = template(file.text("File.path"), file.line(), session);
        let Some(path) = path.as_text() else {
            let what = format!("the file {}", text::source(&path));
            builder::omit_at(step, file.line(), OmissionKind::File, &what, session);
            continue;
        };
        let content_type = Some(file.text("File.mimetype")).filter(|kind| !kind.is_empty()).map(Template::text);
        parts.push(ImportedPart::file(Template::text(file.text("File.paramname")), path, content_type));
    }
    multipart::set_body(step, &parts, session);
}
