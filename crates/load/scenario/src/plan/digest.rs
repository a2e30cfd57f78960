//! Digest authentication (RFC 7616): the answer to a challenge.

use md5::Md5;
use sha2::{Digest, Sha256};

use crate::value::hex;

/// Request that responds to a challenge.
#[derive(Clone, Copy, Debug)]
pub struct DigestRequest<'a> {
    /// `user:password`.
    pub credentials: &'a str,
    /// Method.
    pub method: &'a str,
    /// Path and query string.
    pub target: &'a str,
    /// Random value of the client.
    pub nonce: u64,
}

/// Hash of a challenge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DigestHash {
    Md5,
    Sha256,
}

impl DigestHash {
    fn of(self, text: &str) -> String {
        match self {
            Self::Md5 => hex(&Md5::digest(text.as_bytes())),
            Self::Sha256 => hex(&Sha256::digest(text.as_bytes())),
        }
    }
}

impl DigestRequest<'_> {
    /// Value of `Authorization` that answers a `WWW-Authenticate`; `None` if it is not a known kind of digest.
    pub fn answer(self, challenge: &str) -> Option<String> {
        let (scheme, parameters) = challenge.trim().split_once(' ')?;
        if !scheme.eq_ignore_ascii_case("digest") {
            return None;
        }
        let parameters = parameters_of(parameters);
        let value = |name: &str| parameters.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, v)| v);
        let (realm, nonce) = (value("realm")?, value("nonce")?);
        let algorithm = value("algorithm").map_or("MD5", String::as_str);
        let base = algorithm.strip_suffix("-sess").unwrap_or(algorithm);
        let hash = match base {
            _ if base.eq_ignore_ascii_case("MD5") => DigestHash::Md5,
            _ if base.eq_ignore_ascii_case("SHA-256") => DigestHash::Sha256,
            _ => return None,
        };
        let has_qop = match value("qop") {
            Some(qop) if qop.split(',').any(|kind| kind.trim() == "auth") => true,
            Some(_) => return None,
            None => false,
        };
        let (user, password) = self.credentials.split_once(':').unwrap_or((self.credentials, ""));
        let own_nonce = format!("{:016x}", self.nonce);
        let mut secret = hash.of(&format!("{user}:{realm}:{password}"));
        if algorithm.ends_with("-sess") {
            secret = hash.of(&format!("{secret}:{nonce}:{own_nonce}"));
        }
        let request = hash.of(&format!("{}:{}", self.method, self.target));
        let response = match has_qop {
            true => hash.of(&format!("{secret}:{nonce}:00000001:{own_nonce}:auth:{request}")),
            false => hash.of(&format!("{secret}:{nonce}:{request}")),
        };
        let mut answer = format!(
            "Digest username=\"{}\", realm=\"{}\", nonce=\"{}\", uri=\"{}\", ",
            quoted(user),
            quoted(realm),
            quoted(nonce),
            quoted(self.target)
        );
        if has_qop {
            answer.push_str(&format!("cnonce=\"{own_nonce}\", nc=00000001, qop=auth, "));
        }
        answer.push_str(&format!("response=\"{response}\""));
        for name in ["opaque", "algorithm"] {
            let Some(value) = value(name) else { continue };
            answer.push_str(&match name {
                "opaque" => format!(", opaque=\"{}\"", quoted(value)),
                _ => format!(", algorithm={algorithm}"),
            });
        }
        let is_header = answer.bytes().all(|byte| byte >= 0x20 && byte != 0x7f);
        is_header.then_some(answer)
    }
}

fn quoted(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

/// Names and values of `a=1, b="2, 3"`.
fn parameters_of(text: &str) -> Vec<(String, String)> {
    let mut parameters = Vec::new();
    let mut rest = text;
    while let Some((name, after)) = rest.split_once('=') {
        let (mut value, mut chars) = (String::new(), after.trim_start().char_indices());
        let after = after.trim_start();
        let mut end = after.len();
        if after.starts_with('"') {
            chars.next();
            while let Some((at, c)) = chars.next() {
                match c {
                    '"' => {
                        end = at + 1;
                        break;
                    }
                    '\\' => value.extend(chars.next().map(|(_, c)| c)),
                    c => value.push(c),
                }
            }
        } else {
            end = after.find(',').unwrap_or(after.len());
            value.push_str(after.get(..end).unwrap_or_default().trim());
        }
        parameters.push((name.trim().trim_start_matches(',').trim().to_owned(), value));
        rest = after.get(end..).unwrap_or_default().trim_start().trim_start_matches(',');
    }
    parameters
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Example of RFC 7616, section 3.9.1, with the client's nonce replaced: its responses are computed anew.
    const CHALLENGE: &str = "Digest realm=\"http-auth@example.org\", qop=\"auth, auth-int\", algorithm=SHA-256, \
        nonce=\"7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v\", opaque=\"FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS\"";

    fn request() -> DigestRequest<'static> {
        DigestRequest { credentials: "Mufasa:Circle of Life", method: "GET", target: "/dir/index.html", nonce: 7 }
    }

    #[test]
    fn a_challenge_is_answered_with_its_own_values() {
        let answer = request().answer(CHALLENGE).expect("a known challenge");
        let secret = DigestHash::Sha256.of("Mufasa:http-auth@example.org:Circle of Life");
        let asked = DigestHash::Sha256.of("GET:/dir/index.html");
        let nonce = "7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v";
        let response = DigestHash::Sha256.of(&format!("{secret}:{nonce}:00000001:0000000000000007:auth:{asked}"));
        assert!(answer.contains(&format!("response=\"{response}\"")), "{answer}");
        assert!(answer.contains("opaque=\"FQhe") && answer.ends_with("algorithm=SHA-256"), "{answer}");
    }

    #[test]
    fn without_qop_the_answer_is_that_of_rfc_2069() {
        // Values of the example in RFC 2069, with the response of its erratum.
        let challenge = "Digest realm=\"testrealm@host.com\", nonce=\"dcd98b7102dd2f0e8b11d0f600bfb0c093\"";
        let request = DigestRequest { credentials: "Mufasa:CircleOfLife", ..request() };
        let answer = request.answer(challenge).expect("a known challenge");
        assert!(answer.contains("response=\"1949323746fe6a43ef61f9606e7febea\""), "{answer}");
    }

    #[test]
    fn what_cannot_be_answered_is_not() {
        for challenge in [
            "Basic realm=\"r\"",
            "Digest realm=\"r\"",
            "Digest",
            "Digest realm=r, nonce=n, algorithm=X",
            "Digest realm=r, nonce=n, qop=auth-int",
            "Digest realm=\"\\",
            "",
        ] {
            assert_eq!(request().answer(challenge), None, "{challenge}");
        }
    }
}
