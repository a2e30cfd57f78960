//! Parses a route's caller, rate limit and priority.

use http::HeaderName;

use super::call_weight::{RateTerms, rate_terms};
use super::headers;
use super::path_capture::path_capture;
use super::read::{DocumentNode, DocumentTable};
use super::units;
use weir_base::fault::Fault;
use weir_resilience::admission::Priority;
use weir_resilience::ratelimit::per_caller::CallerRule;

/// Rule for the priority of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PriorityRule {
    /// Header with the priority.
    pub header: Option<HeaderName>,
    /// Part of the caller's certificate that decides the priority, in place of a header.
    pub certificate: Option<CertificateField>,
    /// Values of the header or the certificate, and the priority of each.
    pub values: Vec<(String, Priority)>,
    /// Priority without such a value.
    pub default: Priority,
}

/// Identification of a call's caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallerFrom {
    /// The address that the call comes from.
    Address,
    /// The value of this header.
    Header(HeaderName),
    /// This capture of the route's path.
    Path(String),
    /// This part of the caller's certificate.
    Certificate(CertificateField),
}

/// Part of a caller's certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CertificateField {
    /// The subject as text: `CN=billing,O=Example`.
    Subject,
    /// The subject's common name.
    CommonName,
    /// The subject alternative names, DNS names and URIs.
    AlternativeName,
}

/// A route's settings about its callers.
#[derive(Debug)]
pub(super) struct CallerConfig {
    pub(super) priority: PriorityRule,
    pub(super) caller: Option<CallerFrom>,
    pub(super) rate: Option<CallerRule>,
    pub(super) rate_terms: RateTerms,
}

pub(super) fn caller_config(table: &DocumentTable<'_>, captures: &[&str], has_culprits: bool) -> CallerConfig {
    let (fixed, from) = (table.get("priority"), table.get("priority_from"));
    let mut priority = PriorityRule::default();
    if let Some(level) = fixed.as_ref().and_then(priority_level) {
        priority.default = level;
    }
    if let Some(of) = from.as_ref().and_then(DocumentNode::table) {
        priority = priority_rule(&of);
    }
    if let (Some(node), Some(_)) = (&fixed, &from) {
        node.error("priority and priority_from exclude each other", "leave it out, and write default in priority_from");
    }
    let (caller_node, rate_node) = (table.get("caller"), table.get("rate_limit"));
    let caller = caller_node.as_ref().and_then(|node| caller_from(node, captures));
    let (rate, rate_terms) = rate_node.as_ref().and_then(rate_limit).unzip();
    let rate_terms = rate_terms.unwrap_or_default();
    if let (None, Some(node)) = (&caller_node, &rate_node) {
        node.error(
            "rate_limit without caller",
            r#"give caller, too: "address", { header = "x-api-key" }, { path = "NAME" } or { certificate = "san" }"#,
        );
    }
    if let (Some(node), None, None, false) = (&caller_node, &rate_node, &from, has_culprits) {
        node.warn(
            "caller without rate_limit, priority_from and an upstream's shed_culprits has no effect",
            "give one of them, too",
        );
    }
    CallerConfig { priority, caller, rate, rate_terms }
}

fn priority_level(node: &DocumentNode<'_>) -> Option<Priority> {
    node.choice(&Priority::ALL.map(|priority| (priority.name(), priority)))
}

/// Parses `{ header = "x-priority", values = { gold = "critical" }, default = "normal" }`.
fn priority_rule(table: &DocumentTable<'_>) -> PriorityRule {
    let mut rule = PriorityRule::default();
    let certificate = table.get("certificate");
    rule.certificate = certificate.as_ref().and_then(certificate_field);
    match (table.get("header"), &certificate) {
        (Some(node), None) => rule.header = node.string().and_then(|text| headers::name(&node, text)),
        (None, Some(_)) => {}
        (Some(node), Some(_)) => node.error("header and certificate exclude each other", "leave one out"),
        (None, None) => {
            table.error("header missing", r#"write header = "x-priority", or certificate = "san""#);
        }
    }
    rule.values = match table.get("values").and_then(|node| node.table()) {
        Some(values) => {
            let named = values.members();
            if named.is_empty() {
                values.error("empty table", r#"write it as { gold = "critical" }, or leave it out"#);
            }
            named.iter().filter_map(|it| Some((it.key.to_owned(), priority_level(&it.node)?))).collect()
        }
        None if certificate.is_some() => {
            table.error("values missing", r#"write values = { "billing.example" = "critical" }"#);
            Vec::new()
        }
        // The names of the priorities.
        None => Priority::ALL.iter().map(|priority| (priority.name().to_owned(), *priority)).collect(),
    };
    if let Some(level) = table.get("default").as_ref().and_then(priority_level) {
        rule.default = level;
    }
    table.check_unknown_keys();
    rule
}

/// Parses `"subject"`, `"common_name"` or `"san"`.
fn certificate_field(node: &DocumentNode<'_>) -> Option<CertificateField> {
    node.choice(&[
        ("subject", CertificateField::Subject),
        ("common_name", CertificateField::CommonName),
        ("san", CertificateField::AlternativeName),
    ])
}

/// Parses `"address"`, `{ header = "x-api-key" }`, `{ path = "tenant" }` or `{ certificate = "san" }`.
fn caller_from(node: &DocumentNode<'_>, captures: &[&str]) -> Option<CallerFrom> {
    if !node.is_table() {
        return node.choice(&[("address", ())]).map(|()| CallerFrom::Address);
    }
    let table = node.table()?;
    let (header, path, certificate) = (table.get("header"), table.get("path"), table.get("certificate"));
    table.check_unknown_keys();
    if [&header, &path, &certificate].into_iter().flatten().count() != 1 {
        table.error(
            "a caller is identified by a header, a capture or its certificate",
            r#"write header = "x-api-key", path = "CAPTURE" or certificate = "san""#,
        );
        return None;
    }
    if let Some(node) = certificate {
        return certificate_field(&node).map(CallerFrom::Certificate);
    }
    if let Some(node) = header {
        return headers::name(&node, node.string()?).map(CallerFrom::Header);
    }
    path_capture(&path?, captures).map(CallerFrom::Path)
}

/// Parses `"100/1s"`, or `{ rate = "100/1s", burst = 200, max_callers = 65536, weight = ..., headers = true }`.
fn rate_limit(node: &DocumentNode<'_>) -> Option<(CallerRule, RateTerms)> {
    const RATE_REMEDY: &str = r#"write it as "100/1s""#;
    let read = |node: &DocumentNode<'_>| {
        let read = node.value().as_str().and_then(units::rate).map(|(limit, per)| CallerRule::new(limit, per));
        if read.is_none() {
            node.expected("rate", RATE_REMEDY);
        }
        read
    };
    let mut terms = RateTerms::default();
    let rule = if node.is_table() {
        let table = node.table()?;
        let rate = table.get("rate");
        if rate.is_none() {
            table.error("rate missing", r#"write rate = "100/1s""#);
        }
        let mut rule = rate.as_ref().and_then(read);
        let burst = table.get("burst").and_then(|node| node.integer(1..=1_000_000));
        let max_callers = table.get("max_callers").and_then(|node| node.integer(1..=CallerRule::MAX_ENTRIES as u64));
        terms = rate_terms(&table);
        table.check_unknown_keys();
        if let Some(rule) = &mut rule {
            rule.burst = burst.unwrap_or(rule.burst);
            rule.entries = max_callers.map_or(rule.entries, |number| number as usize);
        }
        rule
    } else {
        read(node)
    }?;
    if let Some(Fault { what, remedy }) = rule.fault() {
        node.error(what, remedy);
    }
    Some((rule, terms))
}
