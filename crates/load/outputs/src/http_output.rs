//! A receiver that is reached by HTTP, as the user names it.

use weir_net::target::Target;
use weir_request::secret_mask::SecretMask;

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

    /// Path and query of its requests. A URL without a path has the usual one; in InfluxDB's case a path of one part is
    /// the name of a database.
    pub(crate) fn path(&self, target: &Target) -> String {
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
    /// Whether a request with this status may be sent again: by OTLP exactly four are.
    pub(crate) fn is_retryable(self, status: u16) -> bool {
        match self {
            Self::Otlp => matches!(status, 429 | 502..=504),
            Self::RemoteWrite | Self::Influx => status == 429 || status >= 500,
        }
    }
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
    fn by_otlp_exactly_four_statuses_may_be_sent_again() {
        let again: Vec<u16> = (100..600).filter(|status| HttpFormat::Otlp.is_retryable(*status)).collect();
        assert_eq!(again, [429, 502, 503, 504]);
        assert!(HttpFormat::Influx.is_retryable(500) && !HttpFormat::RemoteWrite.is_retryable(400));
    }
}
