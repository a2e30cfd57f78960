//! HTTP samplers as steps.

use weir_hurl::{MultipartField, MultipartValue, OptionName, Template};

use super::element::PlanElement;
use super::function::{number, template};
use super::scope::PlanScope;
use crate::builder;
use crate::omission::OmissionKind;
use crate::request::{ImportedBody, ImportedStep, field};
use crate::session::ImportSession;
use crate::text;

pub(super) fn is_http(class: &str) -> bool {
    matches!(class, "HTTPSamplerProxy" | "HTTPSampler" | "HTTPSampler2")
}

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
    let gap = if path.starts_with('/') || path.is_empty() { "" } else { "/" };
    // A URL of one variable only is the whole URL.
    if path.is_empty() && domain.is_empty() {
        return template("/", line, session);
    }
    if domain.is_empty() {
        let is_whole = path.starts_with("${") && !path.starts_with("${__");
        return template(&if is_whole { path.to_owned() } else { format!("{gap}{path}") }, line, session);
    }
    let is_scheme_in_domain = domain.contains("://");
    let start = if is_scheme_in_domain { String::new() } else { format!("{scheme}://") };
    template(&format!("{start}{domain}{port}{gap}{path}"), line, session)
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
    let mut fields = Vec::new();
    for argument in inherited.iter().chain(&own) {
        let name = argument.text("Argument.name");
        if name.is_empty() {
            continue;
        }
        let name = template(name, argument.line(), session);
        let value = template(value(argument), argument.line(), session);
        // An argument that is not to be encoded is encoded already.
        let is_encoded = !argument.flag("HTTPArgument.always_encode");
        let decoded = value.as_text().filter(|_| is_encoded).and_then(builder::percent_decoded);
        fields.push(field(builder::encoded_name(&name), decoded.map_or(value, Template::text)));
    }
    let is_multipart = sampler.flag("HTTPSampler.DO_MULTIPART_POST");
    let named: Vec<&PlanElement<'a>> = files.iter().filter(|file| !file.text("File.path").is_empty()).collect();
    let has_body = !matches!(method, "GET" | "HEAD" | "DELETE" | "OPTIONS" | "TRACE");
    if !has_body {
        step.request.query.extend(fields);
        return;
    }
    if let [file] = named.as_slice()
        && file.text("File.paramname").is_empty()
        && fields.is_empty()
    {
        step.request.body = ImportedBody::File(file.text("File.path").to_owned());
        return;
    }
    if named.is_empty() && !is_multipart {
        if !fields.is_empty() {
            step.request.remove_header("Content-Type");
            step.request.body = ImportedBody::Form(fields);
        }
        return;
    }
    let parts =
        fields.into_iter().map(|field| MultipartField { name: field.name, value: MultipartValue::Text(field.value) });
    let mut parts: Vec<MultipartField> = parts.collect();
    for file in named {
        let path = template(file.text("File.path"), file.line(), session);
        let Some(path) = path.as_text() else {
            let what = format!("the file {}", text::source(&path));
            builder::omit_at(step, file.line(), OmissionKind::File, &what, session);
            continue;
        };
        let content_type = Some(file.text("File.mimetype")).filter(|kind| !kind.is_empty()).map(Template::text);
        let value = MultipartValue::File { name: Template::text(path), content_type };
        parts.push(MultipartField { name: Template::text(file.text("File.paramname")), value });
    }
    step.request.remove_header("Content-Type");
    step.request.body = ImportedBody::Multipart(parts);
}
