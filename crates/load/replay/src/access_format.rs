//! Formats of access logs.

use std::str::FromStr;

use super::access_record::AccessRecord;
use super::access_time::StampMoment;
use super::json_lines::JsonLines;
use super::line_error::LineError;
use super::line_field::{LineField, TookUnit};
use super::line_pattern::{LinePattern, LineTail};
use super::line_piece::LinePiece;

/// Format of an access log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessFormat {
    /// Fields between literals.
    Pattern(LinePattern),
    /// JSON objects.
    Json(JsonLines),
}

/// Name of a format, and its pattern in the notation below; the more special ones first.
const KNOWN_FORMATS: [(&str, &str); 8] = [
    ("alb", "* * * * * * * * S * * * \"R\" \"A\" * * * \"*\" \"*\" \"*\" * B"),
    ("elb", "B * * * * * * S * * * \"R\" \"A\""),
    ("envoy", "[B] \"R\" S * * * D * \"*\" \"A\" \"*\" \"H\""),
    ("istio", "[B] \"R\" S * * * \"*\" * * D * \"*\" \"A\" \"*\" \"H\""),
    ("vhost", "H * * * [E] \"R\" S * \"F\" \"A\""),
    ("combined", "* * * [E] \"R\" S * \"F\" \"A\""),
    ("vhost-common", "H * * * [E] \"R\" S *"),
    ("common", "* * * [E] \"R\" S *"),
];
/// Other names of formats.
const FORMAT_ALIASES: [(&str, &str); 3] = [("nginx", "combined"), ("apache", "combined"), ("caddy", "json")];

impl AccessFormat {
    /// Formats that are detected from the content, with their names; the more special ones first.
    pub(crate) fn known() -> Vec<(&'static str, Self)> {
        let patterns =
            KNOWN_FORMATS.into_iter().filter_map(|(name, text)| Some((name, Self::Pattern(known_pattern(text)?))));
        patterns.chain([("json", Self::Json(JsonLines::default()))]).collect()
    }

    /// Names of formats, for messages.
    pub fn names() -> String {
        KNOWN_FORMATS.iter().map(|(name, _)| *name).chain(["json"]).collect::<Vec<_>>().join(", ")
    }

    /// Record of a line.
    ///
    /// # Errors
    /// Why the line is not of this format, or has no request.
    pub fn record(&self, line: &str) -> Result<AccessRecord, LineError> {
        match self {
            Self::Pattern(pattern) => pattern.record(line),
            Self::Json(lines) => lines.record(line),
        }
    }
}

/// Reads a name (`combined`), the names of JSON members (`json:time=when,path=uri`), or a pattern in the notation of
/// nginx, Apache or Envoy.
impl FromStr for AccessFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(names) = text.strip_prefix("json:") {
            return JsonLines::with_names(names).map(Self::Json);
        }
        let name = FORMAT_ALIASES.iter().find(|(alias, _)| *alias == text).map_or(text, |(_, name)| name);
        if let Some((_, format)) = Self::known().into_iter().find(|(known, _)| *known == name) {
            return Ok(format);
        }
        if !text.contains(['$', '%']) {
            return Err(format!("unknown format '{text}'; choose {}, or write a pattern", Self::names()));
        }
        text.parse().map(Self::Pattern).map_err(|error| error.to_string())
    }
}

/// Pattern in one letter per field: `B` begin, `E` end, `R` request line, `S` status, `D` duration in ms, `H` host,
/// `F` referer, `A` user agent, `*` any other.
fn known_pattern(text: &str) -> Option<LinePattern> {
    let mut pieces: Vec<LinePiece> = Vec::new();
    for letter in text.chars() {
        let field = match letter {
            '*' => LineField::Other,
            'B' => LineField::Time(StampMoment::Start),
            'E' => LineField::Time(StampMoment::End),
            'R' => LineField::RequestLine,
            'S' => LineField::Status,
            'D' => LineField::Took(TookUnit::Millis),
            'H' => LineField::Host,
            'F' => LineField::Referer,
            'A' => LineField::UserAgent,
            literal => {
                match pieces.last_mut() {
                    Some(LinePiece::Literal(last)) => last.push(literal),
                    _ => pieces.push(LinePiece::Literal(literal.to_string())),
                }
                continue;
            }
        };
        pieces.push(LinePiece::Field(field));
    }
    LinePattern::of_pieces(pieces, LineTail::Fields).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_base::Nanos;

    fn record(name: &str, line: &str) -> AccessRecord {
        name.parse::<AccessFormat>().expect(name).record(line).expect(line)
    }

    #[test]
    fn all_known_patterns_are_patterns() {
        assert_eq!(AccessFormat::known().len(), KNOWN_FORMATS.len() + 1);
    }

    #[test]
    fn lines_of_each_server_are_read() {
        let alb = record(
            "alb",
            "https 2018-07-02T22:23:00.186641Z app/my-loadbalancer/50dc6c495c0c9188 192.168.131.39:2817 10.0.0.1:80 \
             0.086 0.048 0.037 200 200 0 57 \"GET https://www.example.com:443/a?b HTTP/1.1\" \"curl/7.46.0\" \
             ECDHE-RSA-AES128-GCM-SHA256 TLSv1.2 arn:aws:e:us-east-2:1:targetgroup/t/7 \"Root=1-58\" \
             \"www.example.com\" \"arn:aws:acm:us-east-2:1:certificate/1\" 1 2018-07-02T22:22:48.364000Z \
             \"authenticate,forward\" \"-\" \"-\" \"10.0.0.1:80\" \"200\" \"-\" \"-\"",
        );
        assert_eq!((&*alb.target, alb.host.as_deref(), alb.status), ("/a?b", Some("www.example.com:443"), Some(200)));
        assert_eq!((alb.time.unix_ns % 60_000_000_000, alb.time.is_end()), (48_364_000_000, false));
        let envoy = record(
            "envoy",
            "[2016-04-15T20:17:00.310Z] \"POST /api/v1/locations HTTP/2\" 204 - 154 0 226 100 \"10.0.35.28\" \
             \"nsq2http\" \"cc21d9b0-cf5c-432b-8c7e-98aeb7988cd2\" \"locations\" \"tcp://10.0.2.1:80\"",
        );
        assert_eq!((envoy.took, envoy.host.as_deref()), (Some(Nanos::from_millis(226)), Some("locations")));
        let istio = record(
            "istio",
            "[2020-11-25T21:26:18.409Z] \"GET /status/418 HTTP/1.1\" 418 - via_upstream - \"-\" 0 135 4 4 \"-\" \
             \"curl/7.73.0-DEV\" \"84961386\" \"httpbin:8000\" \"127.0.0.1:80\" inbound|8000|| - - -",
        );
        assert_eq!((istio.status, istio.took), (Some(418), Some(Nanos::from_millis(4))));
        let combined = record(
            "nginx",
            "127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] \"GET /a HTTP/1.0\" 200 2326 \"http://h/\" \"M (X; Y)\" \
             \"-\" rt=0.125",
        );
        assert_eq!((combined.took, combined.referer.as_deref()), (Some(Nanos::from_millis(125)), Some("http://h/")));
        let common = record("common", "::1 - - [10/Oct/2000:13:55:36 -0700] \"GET /a HTTP/1.0\" 200 -");
        assert_eq!(common.status, Some(200));
        let elb = record(
            "elb",
            "2015-05-13T23:39:43.945958Z my-loadbalancer 192.168.131.39:2817 10.0.0.1:80 0.000073 0.001048 0.000057 \
             200 200 0 29 \"GET http://www.example.com:80/ HTTP/1.1\" \"curl/7.38.0\" - -",
        );
        assert_eq!(&*elb.target, "/");
        let vhost = record("vhost", "h:80 ::1 - - [10/Oct/2000:13:55:36 -0700] \"GET /a HTTP/1.0\" 200 5 \"-\" \"a\"");
        assert_eq!(vhost.host.as_deref(), Some("h:80"));
    }

    #[test]
    fn an_unknown_name_is_a_mistake() {
        let error = "squid".parse::<AccessFormat>().expect_err("unknown");
        assert!(error.starts_with("unknown format 'squid'; choose alb, elb, envoy,"), "{error}");
    }
}
