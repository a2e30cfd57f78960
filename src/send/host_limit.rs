//! A limit as people write it: for all hosts, `20/1s`, or for one, `host=api.example.com 20/1s`.

use crate::decide::limit::{LimitModel, LimitWindow};
use crate::decide::window::{KeyLimit, LimitUnit, MAX_WINDOWS};

/// A limit for each key at one host, or at all hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostLimit {
    /// Host or host:port, in lower case; None: every host that has no limits of its own.
    pub host: Option<String>,
    /// What holds.
    pub limit: KeyLimit,
}

impl HostLimit {
    /// Reads one.
    ///
    /// # Errors
    /// In one line, what is wrong.
    pub fn read(text: &str, unit: LimitUnit) -> Result<Self, String> {
        let (host, window) = match text.trim().strip_prefix("host=") {
            None => (None, text),
            Some(rest) => {
                let wrong = || format!("'{text}' names a host and no limit; write e.g. 'host=api.example.com 20/1s'");
                let (host, window) = rest.split_once(char::is_whitespace).ok_or_else(wrong)?;
                if host.is_empty() || host.contains('/') {
                    return Err(format!("'{host}' is no host; write it without scheme and path, e.g. api.example.com"));
                }
                (Some(host.to_ascii_lowercase()), window.trim())
            }
        };
        let window = LimitWindow::read(window, LimitModel::SlidingLog)?;
        Ok(Self { host, limit: KeyLimit { window, unit } })
    }

    /// Whether these texts mean that there is no limit: not even one that is learnt.
    pub fn is_unlimited(texts: &[String]) -> bool {
        matches!(texts, [text] if text == "none")
    }

    /// Those for all hosts, and those for one.
    ///
    /// # Errors
    /// There are more than a key can have.
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
            return Err(format!("{most} limits are too many; a key has {MAX_WINDOWS} at most"));
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
        assert!(HostLimit::split_by_host(all).unwrap_err().contains("too many"));
    }
}
