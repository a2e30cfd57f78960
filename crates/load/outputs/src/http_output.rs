//! A receiver that is reached by HTTP, as the user names it.

use super::remote_write::compressed;
use weir_base::Nanos;
use weir_net::target::Target;
use weir_request::secret_mask::SecretMask;
use weir_telemetry::otlp::{self, ExportRejection};
use weir_telemetry::{HttpAddress, HttpRules};

/// A receiver that is reached by HTTP.
#[derive(Clone, PartialEq, Eq)]
pub struct HttpOutput {
    /// URL; user and password in it are sent as basic authentication.
    pub url: String,
    /// Headers of each request: names and values.
    pub headers: Vec<(String, String)>,
    /// Format that the receiver reads.
    pub format: HttpFormat,
}

/// Format that a receiver reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpFormat {
    /// Prometheus' remote write 1.0.
    RemoteWrite,
    /// OTLP in protobuf.
    Otlp,
    /// InfluxDB's line protocol.
    Influx,
}

/// Longest honoured Retry-After.
const MAX_RETRY_AFTER: Nanos = Nanos::from_secs(30);

/// Without credentials.
impl std::fmt::Debug for HttpOutput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpOutput").field("url", &self.shown_url()).finish_non_exhaustive()
    }
}

impl HttpOutput {
    /// URL without user, password and query, for messages.
    pub fn shown_url(&self) -> String {
        let Ok(target) = Target::parse(&self.url) else { return String::new() };
        target.url.split('?').next().unwrap_or_default().to_owned()
    }

    /// Texts of the URL and the headers that are secret.
    pub fn secrets(&self) -> Vec<String> {
        let mask = SecretMask::new(&["p".to_owned(), "u".to_owned()]);
        let mut values: Vec<String> = mask.values_of(&self.url).map(str::to_owned).collect();
        values.extend(self.headers.iter().map(|(_, value)| value.clone()));
        values.retain(|text| !text.is_empty());
        values
    }

    /// Address of the receiver.
    ///
    /// # Errors
    /// One line: the URL or a header is not valid, or TLS cannot be set up.
    pub(crate) fn address(&self) -> Result<HttpAddress, String> {
        HttpAddress::new(&self.url, |target| self.path(target), self.format.rules(), &self.headers)
            .map_err(|error| error.to_string())
    }

    /// Path and query of its requests. A URL without a path has the usual one; in InfluxDB's case a path of one part is
    /// the name of a database.
    fn path(&self, target: &Target) -> String {
        let path = target.path.as_str();
        match self.format {
            HttpFormat::RemoteWrite if path == "/" => "/api/v1/write".to_owned(),
            HttpFormat::Otlp if path == "/" => "/v1/metrics".to_owned(),
            HttpFormat::Influx if path == "/" => "/write?db=weir".to_owned(),
            HttpFormat::Influx => match path.strip_prefix('/') {
                Some(database) if !database.contains(['/', '?']) && database != "write" => {
                    format!("/write?db={database}")
                }
                _ => path.to_owned(),
            },
            HttpFormat::RemoteWrite | HttpFormat::Otlp => path.to_owned(),
        }
    }
}

impl HttpFormat {
    fn rules(self) -> HttpRules {
        let (content_type, headers, is_retryable): (_, &[_], fn(u16) -> bool) = match self {
            Self::RemoteWrite => (
                "application/x-protobuf",
                &[("content-encoding", "snappy"), ("x-prometheus-remote-write-version", "0.1.0")],
                is_passing,
            ),
            Self::Otlp => ("application/x-protobuf", &[], otlp::is_retryable),
            Self::Influx => ("text/plain; charset=utf-8", &[], is_passing),
        };
        HttpRules { content_type, headers, is_retryable, max_retry_after: MAX_RETRY_AFTER }
    }

    /// Body of a request with parts that follow each other.
    pub(crate) fn body(self, parts: &[u8]) -> Vec<u8> {
        match self {
            Self::RemoteWrite => compressed(parts),
            Self::Otlp | Self::Influx => parts.to_vec(),
        }
    }

    /// Part of an accepted request that the response rejects.
    pub(crate) fn rejection(self, response: &[u8]) -> Option<String> {
        let Self::Otlp = self else { return None };
        let ExportRejection { rejected, message } = ExportRejection::from_protobuf(response)?;
        Some(format!("{rejected} data points were rejected: {message}"))
    }
}

/// Whether a request with this status may be sent again.
fn is_passing(status: u16) -> bool {
    status == 429 || status >= 500
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(url: &str, format: HttpFormat) -> HttpOutput {
        HttpOutput { url: url.to_owned(), headers: vec![("X-Key".to_owned(), "abc".to_owned())], format }
    }

    #[test]
    fn a_url_without_a_path_has_the_usual_one() {
        use HttpFormat::{Influx, Otlp, RemoteWrite};
        for (url, format, path) in [
            ("http://h:9090", RemoteWrite, "/api/v1/write"),
            ("http://h/api/prom/push", RemoteWrite, "/api/prom/push"),
            ("http://h:4318/", Otlp, "/v1/metrics"),
            ("http://h/otlp/v1/metrics", Otlp, "/otlp/v1/metrics"),
            ("http://h:8086", Influx, "/write?db=weir"),
            ("http://h:8086/load", Influx, "/write?db=load"),
            ("http://h:8086/write?db=load", Influx, "/write?db=load"),
            ("http://h:8086/api/v2/write?org=o&bucket=b", Influx, "/api/v2/write?org=o&bucket=b"),
        ] {
            assert_eq!(output(url, format).path(&Target::parse(url).unwrap()), path, "{url}");
        }
    }

    #[test]
    fn secrets_are_known_and_not_shown() {
        let output = output("http://me:pw@h:8086/write?db=load&u=me&p=hidden", HttpFormat::Influx);
        assert_eq!(output.shown_url(), "http://h:8086/write");
        assert_eq!(output.secrets(), ["me:pw", "me", "hidden", "abc"]);
        assert!(!format!("{output:?}").contains("hidden"));
    }

    #[test]
    fn a_status_may_be_sent_again_or_not_by_the_format() {
        let again = |format: HttpFormat, status| (format.rules().is_retryable)(status);
        assert!(again(HttpFormat::Influx, 500) && !again(HttpFormat::RemoteWrite, 400));
        assert!(again(HttpFormat::Otlp, 503) && !again(HttpFormat::Otlp, 500));
    }

    #[test]
    fn what_a_collector_rejects_is_read() {
        // `partial_success` with 3 data points and a message.
        let response = b"\x0a\x0b\x08\x03\x12\x07too old";
        assert_eq!(HttpFormat::Otlp.rejection(response).as_deref(), Some("3 data points were rejected: too old"));
        assert_eq!([HttpFormat::Otlp.rejection(b""), HttpFormat::Influx.rejection(response)], [None, None]);
    }
}
