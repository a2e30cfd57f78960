//! Requests of a file to [`RequestTemplate`]s.

use weir_hurl::{FieldTemplate, HurlRequest, Template, TemplatePart, TextPosition};

use super::body::{content_type, push_body, push_parameters};
use super::credential_lines::CredentialLines;
use super::encoding::PieceEncoding;
use super::files::StepFiles;
use super::given_length::GivenLength;
use super::header_line::split_header;
use super::multipart::push_multipart;
use super::options::RequestOptions;
use super::origin::{OriginTable, RequestOrigin};
use super::piece::{PieceCompiler, PieceList};
use super::place::TextBodyUse;
use super::problem;
use super::request_bytes::RequestBytes;
use super::request_template::{BASIC, RequestTarget, RequestTemplate, intern};
use super::secret_variables::SecretVariables;
use super::settings::ScenarioSettings;
use super::source_url::{first_text, fixed_origin, has_scheme, with_query};
use super::url_template::UrlTemplate;
use weir_request::url::{DotSegments, HttpUrl};

/// Content-Type of a form.
const FORM: &str = "application/x-www-form-urlencoded";
/// Name of the program, as `weir load` sends it.
const USER_AGENT: &str = concat!("weir/", env!("CARGO_PKG_VERSION"));

/// Names of headers, in lower case, that have no default values.
#[derive(Debug, Default)]
struct GivenHeaders {
    /// Names of headers with a value of their own.
    names: Vec<String>,
    /// Names of headers that an option removes.
    removed: Vec<String>,
}

/// Source of credentials, whose URL has the origin that they belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CredentialOwner {
    /// Step of the file: they belong to the origin of its URL.
    Step,
    /// Command line: they belong to the origin of its URL.
    Settings,
}

/// Parts of a plan that the compilation of requests adds to.
pub(super) struct RequestCompiler<'a, 'p, 'f> {
    pub(super) settings: &'a ScenarioSettings,
    pub(super) secrets: &'a SecretVariables,
    pub(super) compiler: &'a mut PieceCompiler<'p>,
    pub(super) files: &'a mut StepFiles<'f>,
    pub(super) origins: &'a mut OriginTable,
}

impl RequestCompiler<'_, '_, '_> {
    /// Compiles a request with its options.
    pub(super) fn compile(&mut self, request: &HurlRequest, options: &RequestOptions) -> RequestTemplate {
        let dot_segments = if options.path_as_is { DotSegments::Keep } else { DotSegments::Remove };
        let url = self.url_template(request);
        let mut template = RequestTemplate {
            method: request.method.clone(),
            url_text: url.to_string(),
            target: self.target(request, &url, dot_segments),
            origin: None,
            uses_userinfo: false,
            dot_segments,
            host: PieceList::default(),
            headers: PieceList::default(),
            own: CredentialLines::default(),
            of_settings: CredentialLines::default(),
            content_headers: PieceList::default(),
            body: PieceList::default(),
            codec: self.settings.codec.clone(),
            shared_body: None,
            given_length: None,
            fixed: None,
        };
        template.origin = match &template.target {
            RequestTarget::Fixed { url, .. } => Some(RequestOrigin::of(url)),
            RequestTarget::Dynamic { .. } => fixed_origin(&url),
        };
        let mut given = self.given_headers(request, options, &mut template);
        self.settings_headers(&mut template, &mut given);
        self.authorization(request, options, &mut template, &mut given);
        self.defaults(options, &mut template, &given);
        self.cookies(request, &mut template.own.cookies);
        self.body(request, &mut template, &given);
        self.check_length(request, &template);
        let shared = template.body.as_fixed().filter(|_| template.codec.is_none());
        template.shared_body = shared.and_then(RequestBytes::share);
        if template.shared_body.is_some() {
            template.body = PieceList::default();
        }
        template.fixed = template.prerendered();
        template
    }

    fn error(&mut self, position: TextPosition, expected: &str, found: impl Into<String>) {
        self.compiler.errors.push(problem(position, expected, found.into(), ""));
    }

    /// URL with the values of variables that nothing changes, behind the base URL if it is a path.
    fn url_template(&mut self, request: &HurlRequest) -> Template {
        let mut template = self.compiler.folded(&request.url);
        let is_path = first_text(&template).starts_with('/');
        if let Some(base) = self.settings.base_url.as_ref().filter(|_| is_path) {
            template.parts.insert(0, TemplatePart::Text(base.trim_end_matches('/').to_owned()));
            template = self.compiler.folded(&template);
        }
        template
    }

    fn target(&mut self, request: &HurlRequest, template: &Template, dot_segments: DotSegments) -> RequestTarget {
        let position = request.url.position;
        let start = first_text(template);
        if !start.is_empty() && !has_scheme(start) {
            let hint = match start.starts_with('/') {
                true => "give the URL before paths on the command line: weir load http://host:port -s FILE",
                false => "write a whole URL, such as http://host:port/path",
            };
            let found = format!("'{start}'");
            self.compiler.errors.push(problem(position, "http:// or https://", found, hint));
        }
        let url = UrlTemplate::compile(template, self.compiler);
        let mut query = PieceList::default();
        push_parameters(&request.query, PieceEncoding::Url, &mut query, self.compiler);
        let (Some(fixed_url), Some(fixed_query)) = (url.as_fixed(), query.as_fixed()) else {
            return RequestTarget::Dynamic { url, query, position };
        };
        let text = with_query(&String::from_utf8_lossy(fixed_url), &String::from_utf8_lossy(fixed_query));
        match HttpUrl::parse_with(text.as_bytes(), dot_segments) {
            Ok(parsed) => match intern(&parsed, self.origins) {
                Some(origin) => return RequestTarget::Fixed { url: Box::new(parsed), origin },
                None => self.error(position, "fewer different hosts", text),
            },
            Err(_) if !has_scheme(&text) => {}
            Err(error) => self.error(position, "a valid URL", error.to_string()),
        }
        RequestTarget::Dynamic { url, query, position }
    }

    /// Appends the headers of the file and of the step's options, without those that an option removes.
    fn given_headers(
        &mut self,
        request: &HurlRequest,
        options: &RequestOptions,
        template: &mut RequestTemplate,
    ) -> GivenHeaders {
        let mut given = GivenHeaders::default();
        for name in &options.removed_headers {
            if let Some(name) = self.compiler.fixed_text(name, "the name of a header") {
                given.removed.push(name.trim().to_ascii_lowercase());
            }
        }
        for field in &request.headers {
            self.header(field, CredentialOwner::Step, template, &mut given);
        }
        for line in &options.headers {
            match split_header(line) {
                Some(field) => self.header(&field, CredentialOwner::Step, template, &mut given),
                None => self.error(line.position, "a header, such as 'name: value'", line.to_string()),
            }
        }
        given
    }

    /// Appends a header that the file gives; in place of a default header of the same name.
    fn header(
        &mut self,
        field: &FieldTemplate,
        owner: CredentialOwner,
        template: &mut RequestTemplate,
        given: &mut GivenHeaders,
    ) {
        let name = self.compiler.folded(&field.name);
        let name = name.as_text().map(str::to_ascii_lowercase);
        let is_secret = self.secrets.make_credential(name.as_deref(), &field.value);
        let is_empty = self.compiler.folded(&field.value).as_text() == Some("");
        let name = name.unwrap_or_default();
        if given.removed.contains(&name) {
            return;
        }
        if is_empty && matches!(name.as_str(), "host" | "authorization" | "proxy-authorization" | "cookie") {
            given.names.push(name);
            return;
        }
        let list = match name.as_str() {
            "host" => &mut template.host,
            name if is_secret => {
                let Some(lines) = self.lines(owner, template) else { return };
                if name == "cookie" {
                    if !lines.cookies.is_empty() {
                        lines.cookies.push_fixed(b"; ");
                    }
                    return push_cookies(&field.value, &mut lines.cookies, self.compiler);
                }
                lines.has_authorization |= name == "authorization";
                &mut lines.headers
            }
            "transfer-encoding" => {
                let found = format!("'{field}'");
                return self.error(field.name.position, "a body with a length", found);
            }
            "content-length" => {
                let mut value = PieceList::default();
                value.push(&field.value, PieceEncoding::HeaderValue, self.compiler);
                template.given_length = Some(GivenLength { value, position: field.name.position });
                return given.names.push(name);
            }
            name if name.starts_with("content-") => &mut template.content_headers,
            _ => &mut template.headers,
        };
        given.names.push(name);
        list.push(&field.name, PieceEncoding::HeaderName, self.compiler);
        list.push_fixed(b": ");
        list.push(&field.value, PieceEncoding::HeaderValue, self.compiler);
        list.push_fixed(b"\r\n");
    }

    /// Appends the headers of the settings that the file does not give.
    fn settings_headers(&mut self, template: &mut RequestTemplate, given: &mut GivenHeaders) {
        let of_file = given.names.clone();
        for (name, value) in &self.settings.headers {
            if !of_file.contains(&name.to_ascii_lowercase()) {
                // Without a value it removes a default header, as in `weir load`.
                if value.is_empty() {
                    given.names.push(name.to_ascii_lowercase());
                    continue;
                }
                let field =
                    FieldTemplate { name: Template::text(name.as_str()), value: Template::text(value.as_str()) };
                self.header(&field, CredentialOwner::Settings, template, given);
            }
        }
    }

    /// Lines for credentials of an owner; `None` if they belong to another origin than that of the request.
    fn lines<'t>(&self, owner: CredentialOwner, template: &'t mut RequestTemplate) -> Option<&'t mut CredentialLines> {
        let base = self.settings.base_url.as_ref().and_then(|url| HttpUrl::parse(url.as_bytes()).ok());
        match (owner, &template.origin, base) {
            (CredentialOwner::Step, _, _) => Some(&mut template.own),
            (CredentialOwner::Settings, None, _) => Some(&mut template.of_settings),
            (CredentialOwner::Settings, Some(origin), Some(base)) => {
                let is_home = base.credential_origin().shares_credentials_with(&origin.credential_origin());
                is_home.then_some(&mut template.own)
            }
            // The only origin of the file, or else an error.
            (CredentialOwner::Settings, Some(_), None) => Some(&mut template.own),
        }
    }

    /// Appends the credentials: those of `[BasicAuth]`; else, without such a header, those of an option, the settings
    /// or the URL.
    fn authorization(
        &mut self,
        request: &HurlRequest,
        options: &RequestOptions,
        template: &mut RequestTemplate,
        given: &mut GivenHeaders,
    ) {
        let mut owner = CredentialOwner::Step;
        let credentials = match &request.basic_auth {
            Some(field) => {
                let mut credentials = field.name.clone();
                credentials.parts.push(TemplatePart::Text(":".to_owned()));
                credentials.parts.extend(field.value.parts.iter().cloned());
                credentials
            }
            None if given.has("authorization") => {
                template.uses_userinfo = !template.own.has_authorization && template.of_settings.has_authorization;
                return;
            }
            None => {
                let of_settings = || self.settings.user.as_deref().map(Template::text);
                if options.user.is_none() {
                    owner = CredentialOwner::Settings;
                }
                // With those of the settings only where they do not go.
                template.uses_userinfo = options.user.is_none() && template.origin.is_none();
                match options.user.clone().or_else(of_settings) {
                    Some(credentials) => credentials,
                    None => {
                        template.uses_userinfo = true;
                        return;
                    }
                }
            }
        };
        let Some(lines) = self.lines(owner, template) else {
            template.uses_userinfo = true;
            return;
        };
        lines.has_authorization = true;
        given.names.push("authorization".to_owned());
        if options.digest {
            let mut list = PieceList::default();
            list.push(&credentials, PieceEncoding::Verbatim, self.compiler);
            lines.digest = Some(list);
            return;
        }
        lines.headers.push_fixed(BASIC);
        lines.headers.push(&credentials, PieceEncoding::Base64, self.compiler);
        lines.headers.push_fixed(b"\r\n");
    }

    /// Puts default headers before those of the file, as `weir load` does.
    fn defaults(&mut self, options: &RequestOptions, template: &mut RequestTemplate, given: &GivenHeaders) {
        let accept_encoding = self.settings.accept_encoding.as_str();
        let compressed = if options.compressed || self.settings.compressed { accept_encoding } else { "" };
        let connection = if self.settings.keep_alive { "" } else { "close" };
        let user_agent = self.settings.user_agent.as_deref().unwrap_or(USER_AGENT);
        let defaults = [
            ("User-Agent", user_agent),
            ("Accept", "*/*"),
            ("Accept-Encoding", compressed),
            ("Connection", connection),
        ];
        let mut headers = PieceList::default();
        for (name, value) in defaults {
            if !value.is_empty() && !given.has(&name.to_ascii_lowercase()) {
                headers.push_fixed(format!("{name}: {value}\r\n").as_bytes());
            }
        }
        headers.append(std::mem::take(&mut template.headers));
        template.headers = headers;
    }

    fn cookies(&mut self, request: &HurlRequest, list: &mut PieceList) {
        for (index, cookie) in request.cookies.iter().enumerate() {
            if index > 0 || !list.is_empty() {
                list.push_fixed(b"; ");
            }
            list.push(&cookie.name, PieceEncoding::HeaderValue, self.compiler);
            list.push_fixed(b"=");
            push_cookies(&cookie.value, list, self.compiler);
        }
    }

    /// Checks that a length that the file gives is that of the body, if that is fixed.
    fn check_length(&mut self, request: &HurlRequest, template: &RequestTemplate) {
        let Some(length) = &template.given_length else { return };
        let body = template.body.as_fixed();
        if let Some(found) = length.mistake(&request.method, body) {
            let expected = format!("the length of the body, {} bytes, or none", body.map_or(0, <[u8]>::len));
            self.error(length.position, &expected, found);
        }
    }

    /// Use of a body that is text, by its Content-Type.
    fn body_use(&self, request: &HurlRequest) -> TextBodyUse {
        let of_file = request.headers.iter().map(|field| (&field.name, self.compiler.folded(&field.value)));
        let mut of_file = of_file.filter_map(|(name, value)| Some((name.as_text()?, value.as_text()?.to_owned())));
        let is_type = |name: &str| name.eq_ignore_ascii_case("content-type");
        let is_form = |value: &str| value.to_ascii_lowercase().starts_with(FORM);
        let is_of_form = match of_file.find(|(name, _)| is_type(name)) {
            Some((_, value)) => is_form(&value),
            None => self.settings.headers.iter().any(|(name, value)| is_type(name) && is_form(value)),
        };
        if is_of_form { TextBodyUse::Form } else { TextBodyUse::Request }
    }

    fn body(&mut self, request: &HurlRequest, template: &mut RequestTemplate, given: &GivenHeaders) {
        let sections = [!request.form.is_empty(), !request.multipart.is_empty(), request.body.is_some()];
        if sections.iter().filter(|is_present| **is_present).count() > 1 {
            let expected = "one body: [Form], [Multipart] or a body after the sections";
            self.error(request.position, expected, "more than one");
        }
        let mut content_type = request.body.as_ref().and_then(content_type).map(str::to_owned);
        if !request.form.is_empty() {
            content_type = Some(FORM.to_owned());
            push_parameters(&request.form, PieceEncoding::Verbatim, &mut template.body, self.compiler);
        } else if !request.multipart.is_empty() {
            let boundary = push_multipart(&request.multipart, self.files, &mut template.body, self.compiler);
            content_type = Some(boundary);
        } else if let Some(body) = &request.body {
            push_body(body, self.body_use(request), self.files, &mut template.body, self.compiler);
        }
        if let Some(content_type) = content_type
            && !given.has("content-type")
        {
            template.content_headers.push_fixed(format!("Content-Type: {content_type}\r\n").as_bytes());
        }
    }
}

impl GivenHeaders {
    fn has(&self, name: &str) -> bool {
        self.names.iter().chain(&self.removed).any(|given| given == name)
    }
}

/// Appends the text of cookies; the value of an expression adds none.
fn push_cookies(text: &Template, list: &mut PieceList, compiler: &mut PieceCompiler<'_>) {
    let text = compiler.folded(text);
    let encodings = vec![PieceEncoding::CookieValue; text.expressions().count()];
    list.push_each(text, PieceEncoding::HeaderValue, encodings, compiler);
}
