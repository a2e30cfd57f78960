//! Parses `client_certificate_headers`: request headers with the caller's identity from its certificate, for upstreams.

use http::HeaderName;

use super::caller::CallerFrom;
use super::condition::ConditionSource;
use super::key_source::KeySource;
use super::problem::Diagnostics;
use super::read::DocumentTable;
use super::route::ParsedRoute;
use super::{CertificateField, RouteConfig, headers};

/// Request headers with the parts of a caller's certificate, each in one header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientCertificateHeaders(pub Vec<(CertificateField, HeaderName)>);

/// Parses the table; each header has one field.
pub(super) fn client_certificate_headers(table: &DocumentTable<'_>) -> ClientCertificateHeaders {
    let fields = [
        (table.get("subject"), CertificateField::Subject),
        (table.get("common_name"), CertificateField::CommonName),
        (table.get("san"), CertificateField::AlternativeName),
    ];
    let mut all: Vec<(CertificateField, HeaderName)> = Vec::new();
    for (node, field) in fields {
        let Some(node) = node else { continue };
        let Some(name) = node.string().and_then(|text| headers::name(&node, text)) else { continue };
        headers::check_reserved(&node, std::iter::once(&name), true);
        if all.iter().any(|(_, known)| *known == name) {
            node.error(format!("\"{name}\" has another field already"), "give each field a header of its own");
        }
        all.push((field, name));
    }
    table.check_unknown_keys();
    if all.is_empty() {
        table.error("no header", r#"write one such as subject = "x-client-subject""#);
    }
    ClientCertificateHeaders(all)
}

impl ClientCertificateHeaders {
    /// Reports routes that read such a header of a caller: it may be forged there, and is replaced only in what is sent
    /// upstream.
    pub(super) fn check_routes(&self, routes: &[ParsedRoute<'_>], notes: &Diagnostics<'_>) {
        for route in routes {
            for (_, name) in self.0.iter().filter(|(_, name)| reads(&route.route, name)) {
                let what = format!("the route depends on \"{name}\" of its callers, who may have forged it");
                let remedy = r#"write { certificate = "subject" }, "common_name" or "san" in place of the header"#;
                notes.error(route.path.start(), &route.path.path, what, remedy);
            }
        }
    }
}

fn reads(route: &RouteConfig, name: &HeaderName) -> bool {
    let of_conditions = route.conditions.iter().any(|condition| match &condition.source {
        ConditionSource::Header(header) => header == name,
        _ => false,
    });
    of_conditions
        || route.priority.header.as_ref() == Some(name)
        || matches!(&route.caller, Some(CallerFrom::Header(header)) if header == name)
        || matches!(&route.sticky, Some(KeySource::Header(header)) if header == name)
}
