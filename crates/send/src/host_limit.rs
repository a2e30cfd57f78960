//! Rate limits as text: of all hosts, `20/1s`, or of one, `host=api.example.com 20/1s`.

use weir_decide::delivery::key_window::{KeyLimit, MAX_WINDOWS};
use weir_decide::ratelimit::limit_unit::LimitUnit;
use weir_decide::ratelimit::models::{LimitModel, LimitWindow};

/// Rate limit of each key at one host, or at each host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostLimit {
    /// Host or host:port, in lower case; None for every host without limits of its own.
    pub host: Option<String>,
    /// Limit of each key there.
    pub limit: KeyLimit,
}

impl HostLimit {
    /// Parses a limit.
    ///
    /// # Errors
    /// One line of text.
    pub fn read(text: &str, unit: LimitUnit) -> Result<Self, String> {
        let (host, window) = match text.trim().strip_prefix("host=") {
            None => (None, text),
            Some(rest) => {
                let wrong = || {
                    format!("invalid limit '{text}': a host without a limit; write e.g. 'host=api.example.com 20/1s'")
                };
                let (host, window) = rest.split_once(char::is_whitespace).ok_or_else(wrong)?;
                if host.is_empty() || host.contains('/') {
                    return Err(format!("invalid host '{host}': has a scheme or path; write e.g. api.example.com"));
                }
                (Some(host.to_ascii_lowercase()), window.trim())
            }
        };
        let window = LimitWindow::read(window, LimitModel::SlidingLog)?;
        Ok(Self { host, limit: KeyLimit { window, unit } })
    }

    /// Whether the texts are `none`: neither a given nor a learned limit.
    pub fn is_unlimited(texts: &[String]) -> bool {
        matches!(texts, [text] if text == "none")
    }

    /// Limits of all hosts, and limits of single hosts.
    ///
    /// # Errors
    /// More than [`MAX_WINDOWS`] limits of one key at a host.
    #[expect(clippy::type_complexity, reason = "two lists, once")]
    pub fn split_by_host(all: Vec<Self>) -> Result<(Vec<KeyLimit>, Vec<(String, KeyLimit)>), String> {
        let (mut general, mut own) = (Vec::new(), Vec::<(String, KeyLimit)>::new());
        for Self { host, limit } in all {
            match host {
                None => general.push(limit),
                Some(host) => own.push((host, limit)),
            }
        }
        let most = own.iter().map(|(host, _)| own.iter().filter(|(other, _)| other == host).count()).max().unwrap_or(0);
        let most = most.max(general.len());
        if most > MAX_WINDOWS {
            return Err(format!("too many limits: {most}; a key has at most {MAX_WINDOWS}"));
        }
        Ok((general, own))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_for_all_hosts_or_for_one() {
        let read = |text: &str| HostLimit::read(text, LimitUnit::Requests);
        assert_eq!(read("20/1s").map(|limit| limit.host), Ok(None));
        let one = read("host=API.example.com:8080  bucket:20/1s").unwrap();
        assert_eq!(
            (one.host.as_deref(), one.limit.window.to_string().as_str()),
            (Some("api.example.com:8080"), "bucket:20/1s")
        );
        for wrong in ["host=a", "host= 20/1s", "host=http://a 20/1s", "host=a many"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        assert!(HostLimit::is_unlimited(&["none".into()]) && !HostLimit::is_unlimited(&[]));
        let all = vec![read("20/1s").unwrap(); MAX_WINDOWS + 1];
        assert!(HostLimit::split_by_host(all).unwrap_err().contains("too many limits"));
    }
}
