//! Captures and checks of a step.

use weir_hurl::{
    Assertion, BlockContent, BodyContent, BytesLiteral, ExpectedResponse, ExpectedStatus, ExpectedVersion, HurlBody,
    PredicateKind, PredicateValue,
};

use super::body::push_body;
use super::call_status::call_status_mistake;
use super::encoding::PieceEncoding;
use super::files::StepFiles;
use super::findings::{FlowFailure, StepFindings};
use super::piece::{PieceCompiler, PieceList};
use super::place::TextBodyUse;
use super::request_template::RenderSource;
use crate::evaluate::{CheckFailure, CompiledCapture, CompiledCheck, ResponseNeeds, ResponseView};

/// Most characters of a body in a failure.
const MAX_SHOWN_CHARS: usize = 200;

/// Requirements on a step's response, and captures from it. Its checks have indices: first the version and the status
/// (and before them the user's definition of success), without which nothing is captured, then headers, the body and
/// the asserts.
#[derive(Clone, Debug, Default)]
pub struct StepChecks {
    checks: Vec<StepCheck>,
    /// Number of checks before the captures.
    early: usize,
    captures: Vec<CompiledCapture>,
    needs: ResponseNeeds,
    /// Whether a predicate of the user's, or `HTTP *`, replaces the rule that a status below 400 is a success.
    has_own_success: bool,
}

#[derive(Clone, Debug)]
struct StepCheck {
    text: String,
    kind: CheckKind,
}

#[derive(Clone, Debug)]
enum CheckKind {
    Version(ExpectedVersion),
    Status(u16),
    Header { name: PieceList, value: PieceList },
    Body(PieceList),
    Assert(CompiledCheck),
}

impl StepChecks {
    /// Compiles what a response must be; `success` is a predicate that all of a step's responses must fulfill. `is_call`:
    /// whether it is one to a call of gRPC, whose status alone makes it a failure unless a check is about the status.
    pub(super) fn compile(
        response: Option<&ExpectedResponse>,
        success: Option<&Assertion>,
        is_call: bool,
        compiler: &mut PieceCompiler<'_>,
        files: &mut StepFiles<'_>,
    ) -> Self {
        let mut compiled = Self { has_own_success: success.is_some(), ..Self::default() };
        if is_call {
            let asserts = response.into_iter().flat_map(|response| &response.asserts);
            compiler.errors.extend(asserts.filter_map(call_status_mistake));
        }
        if let Some(success) = success
            && let Some(check) = compiler.compile_check(success)
        {
            compiled.push(format!("success: {success}"), CheckKind::Assert(check));
        }
        // `HTTP *` asks for any status.
        compiled.has_own_success |= !is_call && response.is_some_and(|response| response.status == ExpectedStatus::Any);
        let nothing = ExpectedResponse::default();
        let response = response.unwrap_or(&nothing);
        if response.version != ExpectedVersion::Any {
            compiled.push(response.version.to_string(), CheckKind::Version(response.version));
        }
        if let ExpectedStatus::Code(status) = response.status {
            compiled.push(format!("status == {status}"), CheckKind::Status(status));
        }
        compiled.early = compiled.checks.len();
        for capture in &response.captures {
            compiled.captures.extend(compiler.compile_capture(capture));
        }
        for field in &response.headers {
            let (mut name, mut value) = (PieceList::default(), PieceList::default());
            name.push(&field.name, PieceEncoding::Verbatim, compiler);
            value.push(&field.value, PieceEncoding::Verbatim, compiler);
            let text = format!("header \"{}\" == \"{}\"", field.name, field.value);
            compiled.push(text, CheckKind::Header { name, value });
        }
        if let Some(body) = &response.body {
            let mut list = PieceList::default();
            push_body(body, TextBodyUse::Expected, files, &mut list, compiler);
            compiled.push(body_text(body), CheckKind::Body(list));
        }
        for assertion in &response.asserts {
            let assertion_with_bytes = with_file(assertion, compiler, files);
            if let Some(check) = compiler.compile_check(&assertion_with_bytes) {
                compiled.push(assertion.to_string(), CheckKind::Assert(check));
            }
        }
        compiled.checks.iter().for_each(|check| compiled.needs |= check.kind.needs());
        compiled.captures.iter().for_each(|capture| compiled.needs |= capture.needs());
        compiled
    }

    fn push(&mut self, text: String, kind: CheckKind) {
        self.checks.push(StepCheck { text, kind });
    }

    /// Number of checks.
    pub fn len(&self) -> usize {
        self.checks.len()
    }

    /// Whether there is no check.
    pub fn is_empty(&self) -> bool {
        self.checks.is_empty()
    }

    /// Check of an index, as it is written.
    pub fn text(&self, check: u32) -> Option<&str> {
        self.checks.get(check as usize).map(|check| check.text.as_str())
    }

    /// Captures in order.
    pub fn captures(&self) -> &[CompiledCapture] {
        &self.captures
    }

    /// Whether a status is expected; else any below 400 is a success.
    pub fn expects_status(&self) -> bool {
        self.has_own_success
            || self.checks.iter().any(|check| match &check.kind {
                CheckKind::Status(_) => true,
                CheckKind::Assert(check) => check.is_about_status(),
                _ => false,
            })
    }

    /// Whether a capture or check looks into the body; else it need not be kept.
    pub fn needs_body(&self) -> bool {
        self.needs.body
    }

    /// Whether a capture or check needs the redirects before the response.
    pub(super) fn needs_redirects(&self) -> bool {
        self.needs.redirects
    }

    /// Whether a capture or check needs a header; else only cookies and redirects need them.
    pub fn needs_headers(&self) -> bool {
        self.needs.headers
    }

    /// Whether a capture or check needs the URL.
    pub(super) fn needs_url(&self) -> bool {
        self.needs.url
    }

    /// Evaluates captures and checks, as far as they depend on the ones before.
    pub(super) fn evaluate(
        &self,
        view: &ResponseView<'_>,
        source: &mut RenderSource<'_, '_>,
        scratch: &mut Vec<u8>,
        findings: &mut StepFindings,
    ) {
        let (early, late) = self.checks.split_at(self.early);
        self.evaluate_checks(early, view, source, scratch, findings);
        if !findings.failures.is_empty() {
            return;
        }
        for (capture, index) in self.captures.iter().zip(0_u32..) {
            if let Err(failure) = capture.evaluate(view, source.variables, source.context) {
                findings.failures.push(FlowFailure::Capture(index, failure));
                return;
            }
            if findings.keeps_captures {
                findings.captures.extend(capture.value(source.variables).cloned());
            }
        }
        self.evaluate_checks(late, view, source, scratch, findings);
    }

    fn evaluate_checks(
        &self,
        checks: &[StepCheck],
        view: &ResponseView<'_>,
        source: &mut RenderSource<'_, '_>,
        scratch: &mut Vec<u8>,
        findings: &mut StepFindings,
    ) {
        let first = findings.checks_evaluated;
        for check in checks {
            let index = findings.checks_evaluated;
            findings.checks_evaluated += 1;
            if view.is_failed_call() && check.kind.needs().body {
                findings.skipped.push(index);
            } else if let Err(failure) = check.kind.evaluate(view, source, scratch) {
                findings.failures.push(FlowFailure::Check(index, failure));
            }
        }
        // With a status that is expected the messages are looked at as well.
        if findings.failures.is_empty() && self.expects_status() {
            for index in std::mem::take(&mut findings.skipped) {
                let check = index.checked_sub(first).and_then(|at| checks.get(at as usize));
                if let Some(Err(failure)) = check.map(|check| check.kind.evaluate(view, source, scratch)) {
                    findings.failures.push(FlowFailure::Check(index, failure));
                }
            }
        }
    }
}

impl CheckKind {
    fn needs(&self) -> ResponseNeeds {
        match self {
            Self::Version(_) | Self::Status(_) => ResponseNeeds::default(),
            Self::Header { .. } => ResponseNeeds { headers: true, ..ResponseNeeds::default() },
            Self::Body(_) => ResponseNeeds { body: true, ..ResponseNeeds::default() },
            Self::Assert(check) => check.needs(),
        }
    }

    fn evaluate(
        &self,
        view: &ResponseView<'_>,
        source: &mut RenderSource<'_, '_>,
        scratch: &mut Vec<u8>,
    ) -> Result<(), CheckFailure> {
        match self {
            Self::Version(version) => {
                let is_same = version.as_str().trim_start_matches("HTTP/") == view.version;
                if is_same { Ok(()) } else { Err(failure(view.version, version.as_str())) }
            }
            Self::Status(status) if view.status == *status => Ok(()),
            Self::Status(status) => Err(failure(&view.status.to_string(), &status.to_string())),
            Self::Header { name, value } => {
                let expected = rendered(value, source, scratch)?.to_vec();
                let name = String::from_utf8_lossy(rendered(name, source, scratch)?);
                let mut of_name = view.headers.iter().filter(|(given, _)| given.eq_ignore_ascii_case(&name));
                if of_name.clone().any(|(_, value)| **value == *expected) {
                    return Ok(());
                }
                let actual = of_name.next().map_or_else(|| "none".to_owned(), |(_, value)| shown(value));
                Err(failure(&actual, &shown(&expected)))
            }
            Self::Body(list) => {
                let expected = match list.as_fixed() {
                    Some(fixed) => fixed,
                    None => rendered(list, source, scratch)?,
                };
                if expected == view.body && view.body_error.is_none() {
                    Ok(())
                } else {
                    Err(failure(&shown(view.body), &shown(expected)))
                }
            }
            Self::Assert(check) => check.evaluate(view, source.variables, source.context),
        }
    }
}

/// Assertion with the content of a file in place of its name; an error is added if it cannot be read.
fn with_file(assertion: &Assertion, compiler: &mut PieceCompiler<'_>, files: &mut StepFiles<'_>) -> Assertion {
    let mut assertion = assertion.clone();
    if let PredicateKind::Compare(_, value) = &mut assertion.predicate.kind
        && let PredicateValue::File(name) = value
    {
        let content = files.read(name, compiler).map(|(_, bytes)| bytes).unwrap_or_default();
        *value = PredicateValue::Bytes(BytesLiteral::Hex(content));
    }
    assertion
}

/// Bytes that a check compares with.
fn rendered<'s>(
    list: &PieceList,
    source: &mut RenderSource<'_, '_>,
    scratch: &'s mut Vec<u8>,
) -> Result<&'s [u8], CheckFailure> {
    scratch.clear();
    match list.render(source, scratch) {
        Ok(()) => Ok(scratch),
        Err(error) => Err(failure(&error.to_string(), "a value")),
    }
}

fn failure(actual: &str, expected: &str) -> CheckFailure {
    CheckFailure { actual: actual.to_owned(), expected: expected.to_owned() }
}

/// Bytes for a person.
fn shown(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    if text.len() <= MAX_SHOWN_CHARS {
        return text.into_owned();
    }
    let start: String = text.chars().take(MAX_SHOWN_CHARS).collect();
    format!("{start}...")
}

/// Text of the check of a body, on one line.
fn body_text(body: &HurlBody) -> String {
    let text = match &body.content {
        BodyContent::Block(block) => match &block.content {
            BlockContent::Text(text) | BlockContent::Json(text) | BlockContent::Xml(text) => text.to_string(),
            BlockContent::Raw(text) => text.clone(),
            BlockContent::GraphQl { query, .. } => query.to_string(),
        },
        _ => body.to_string(),
    };
    format!("body == {}", text.trim_end().replace('\n', "\\n"))
}
