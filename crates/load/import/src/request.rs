//! Requests of an import.

use weir_hurl::{
    ExpectedResponse, FieldTemplate, MultipartField, OptionDuration, OptionName, OptionValue, RequestOption, Template,
    Templated, TextPosition,
};

use crate::recorded::RecordedValue;
use crate::text;

/// Request with what its response must be: one step of a scenario.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ImportedStep {
    /// Name in results; empty for method and path.
    pub name: String,
    /// Name of the file that it is from.
    pub file: String,
    /// Line of the request in the file.
    pub line: u32,
    /// Tags and folders, by which steps are chosen.
    pub tags: Vec<String>,
    /// Comments above the request.
    pub notes: Vec<String>,
    /// Request.
    pub request: ImportedRequest,
    /// Expected response and captures.
    pub response: Option<ExpectedResponse>,
    /// Successful statuses, where neither the status nor a check of the response decides.
    pub success: Option<StatusRule>,
    /// Values of the response that was recorded and that requests of the recording have, too.
    pub recorded: Vec<RecordedValue>,
    /// Whether the step is written as a comment and is not played.
    pub is_disabled: bool,
}

/// Statuses that are a success: a comment `# @success` of the step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusRule {
    /// Statuses below 400, as in the tools themselves.
    BelowError,
    /// All; the source ignores the status, and has checks of its own.
    Any,
}

impl StatusRule {
    /// Predicate of the comment.
    pub(crate) fn predicate(self) -> &'static str {
        match self {
            Self::BelowError => "status < 400",
            Self::Any => "status >= 100",
        }
    }
}

/// Request of an [`ImportedStep`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ImportedRequest {
    /// Method: capital letters.
    pub method: String,
    /// URL.
    pub url: Template,
    /// Parameters of the query string besides those of the URL, not yet encoded.
    pub query: Vec<FieldTemplate>,
    /// Headers in order.
    pub headers: Vec<FieldTemplate>,
    /// Cookies that no response before it sets.
    pub cookies: Vec<FieldTemplate>,
    /// User and password.
    pub basic_auth: Option<FieldTemplate>,
    /// Options in order.
    pub options: Vec<RequestOption>,
    /// Body.
    pub body: ImportedBody,
}

/// Body of an [`ImportedRequest`].
#[derive(Clone, Debug, Default, PartialEq)]
pub enum ImportedBody {
    /// No body.
    #[default]
    None,
    /// Text, by its media type.
    Text {
        /// Text.
        text: Template,
        /// Media type; empty if it is not known.
        media_type: String,
    },
    /// Form, `application/x-www-form-urlencoded`; fields are not yet encoded.
    Form(Vec<FieldTemplate>),
    /// Form, `multipart/form-data`.
    Multipart(Vec<MultipartField>),
    /// Bytes.
    Bytes(Vec<u8>),
    /// Content of a file.
    File(String),
}

impl ImportedRequest {
    /// Value of the first header of a name.
    pub fn header(&self, name: &str) -> Option<&Template> {
        let mut headers = self.headers.iter().filter(|header| is_named(header, name));
        headers.next().map(|header| &header.value)
    }

    /// Adds a header, unless there is one of its name.
    pub(crate) fn add_header(&mut self, name: &str, value: Template) {
        if self.header(name).is_none() {
            self.headers.push(field(Template::text(name), value));
        }
    }

    /// Removes the headers of a name.
    pub(crate) fn remove_header(&mut self, name: &str) {
        self.headers.retain(|header| !is_named(header, name));
    }

    /// Sets an option that is a flag.
    pub(crate) fn set_flag(&mut self, name: OptionName) {
        self.set_option(name, OptionValue::Flag(Templated::Literal(true)));
    }

    /// Sets an option that is a duration.
    pub(crate) fn set_duration(&mut self, name: OptionName, milliseconds: u64) {
        let duration = OptionDuration(std::time::Duration::from_millis(milliseconds));
        self.set_option(name, OptionValue::Duration(Templated::Literal(duration)));
    }

    pub(crate) fn set_option(&mut self, name: OptionName, value: OptionValue) {
        self.options.retain(|option| option.name != name);
        self.options.push(RequestOption { name, value, position: TextPosition::default() });
    }

    /// All texts that may have variables.
    pub(crate) fn texts(&self) -> Vec<&Template> {
        let mut texts = vec![&self.url];
        let fields = self.query.iter().chain(&self.headers).chain(&self.cookies).chain(&self.basic_auth);
        for field in fields {
            texts.extend([&field.name, &field.value]);
        }
        match &self.body {
            ImportedBody::Text { text, .. } => texts.push(text),
            ImportedBody::Form(fields) => {
                fields.iter().for_each(|field| texts.extend([&field.name, &field.value]));
            }
            ImportedBody::Multipart(fields) => fields.iter().for_each(|field| match &field.value {
                weir_hurl::MultipartValue::Text(value) => texts.extend([&field.name, value]),
                weir_hurl::MultipartValue::File { .. } => texts.push(&field.name),
            }),
            ImportedBody::None | ImportedBody::Bytes(_) | ImportedBody::File(_) => {}
        }
        texts
    }

    /// Bytes of the texts, about.
    pub(crate) fn size(&self) -> usize {
        let texts = self.texts().into_iter().flat_map(|text| &text.parts);
        let of_part = |part: &weir_hurl::TemplatePart| match part {
            weir_hurl::TemplatePart::Text(text) => text.len(),
            weir_hurl::TemplatePart::Expression(_) => 64,
        };
        let of_bytes = if let ImportedBody::Bytes(bytes) = &self.body { bytes.len() } else { 0 };
        texts.map(of_part).sum::<usize>() + of_bytes
    }

    /// Method and path, for messages.
    pub(crate) fn line(&self) -> String {
        format!("{} {}", self.method, text::source(&self.url))
    }
}

/// `name: value`.
pub(crate) fn field(name: Template, value: Template) -> FieldTemplate {
    FieldTemplate { name, value }
}

/// Whether a header has a name, in any case.
pub(crate) fn is_named(header: &FieldTemplate, name: &str) -> bool {
    header.name.as_text().is_some_and(|own| own.eq_ignore_ascii_case(name))
}
