//! Omission: a part of an imported file that the scenario does not have.

use std::collections::BTreeMap;
use std::fmt;

/// Part of a file that is left out, or taken otherwise than it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Omission {
    /// Name of the file.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Kind, by which omissions are counted.
    pub kind: OmissionKind,
    /// Description on one line.
    pub what: String,
}

/// Subject of an [`Omission`], by which messages are grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OmissionKind {
    /// Script, or a part of one.
    Script,
    /// Request that weir does not send, such as one of WebSocket.
    Request,
    /// Request for an image, a style sheet, a font or a script of a page.
    StaticFile,
    /// Operation that changes data.
    UnsafeOperation,
    /// Sampler of JMeter that is not HTTP.
    Sampler,
    /// Controller, timer or other element of JMeter.
    Element,
    /// Authentication.
    Authentication,
    /// Header.
    Header,
    /// Body, or a part of one.
    Body,
    /// File that is not there.
    File,
    /// Variable or function in a text.
    Variable,
    /// Option of a request or flag of a command.
    Setting,
    /// Check of a response.
    Check,
    /// Capture of a value.
    Capture,
}

impl OmissionKind {
    fn nouns(self) -> (&'static str, &'static str) {
        match self {
            Self::Script => ("script", "scripts"),
            Self::Request => ("request", "requests"),
            Self::StaticFile => ("static file", "static files"),
            Self::UnsafeOperation => ("operation that changes data", "operations that change data"),
            Self::Sampler => ("sampler", "samplers"),
            Self::Element => ("element", "elements"),
            Self::Authentication => ("authentication", "authentications"),
            Self::Header => ("header", "headers"),
            Self::Body => ("body", "bodies"),
            Self::File => ("missing file", "missing files"),
            Self::Variable => ("function", "functions"),
            Self::Setting => ("setting", "settings"),
            Self::Check => ("check", "checks"),
            Self::Capture => ("capture", "captures"),
        }
    }
}

/// `shop.json:12: script: pm.sendRequest(...)`.
impl fmt::Display for Omission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}: {}", self.file, self.line, self.kind.nouns().0, self.what)
    }
}

/// Numbers of omissions by kind: `3 scripts, 1 sampler`; empty without any.
pub fn count_omissions(omissions: &[Omission]) -> String {
    let mut counts: BTreeMap<OmissionKind, usize> = BTreeMap::new();
    for omission in omissions {
        *counts.entry(omission.kind).or_default() += 1;
    }
    let counted = counts.iter().map(|(kind, count)| {
        let (one, many) = kind.nouns();
        format!("{count} {}", if *count == 1 { one } else { many })
    });
    counted.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn omissions_are_counted_by_kind() {
        let omission = |kind| Omission { file: "a".into(), line: 1, kind, what: "x".into() };
        let all = [OmissionKind::Script, OmissionKind::Sampler, OmissionKind::Script].map(omission);
        assert_eq!(count_omissions(&all), "2 scripts, 1 sampler");
        assert_eq!(count_omissions(&[]), "");
        assert_eq!(all[1].to_string(), "a:1: sampler: x");
    }
}
