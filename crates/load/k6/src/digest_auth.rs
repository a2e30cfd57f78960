//! PURE. Digest access authentication: the credentials that follow a challenge (RFC 7616).

use md5::{Digest as _, Md5};
use sha2::Sha256;

/// What a service has asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DigestChallenge {
    realm: String,
    nonce: String,
    opaque: Option<String>,
    /// As it was written; that of MD5 without one.
    algorithm: Option<String>,
    has_auth: bool,
    has_qop: bool,
}

/// A request, as its credentials cover it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChallengedRequest<'a> {
    pub(crate) user: &'a str,
    pub(crate) password: &'a str,
    pub(crate) method: &'a str,
    /// Path and query.
    pub(crate) target: &'a str,
    /// Number of the client, which no other request has.
    pub(crate) client_nonce: &'a str,
}

impl DigestChallenge {
    /// Reads a field `WWW-Authenticate`; `None` for another scheme, or one that is incomplete.
    pub(crate) fn parse(field: &str) -> Option<Self> {
        let rest = field.trim_start();
        let (scheme, rest) = rest.split_once(' ')?;
        if !scheme.eq_ignore_ascii_case("digest") {
            return None;
        }
        let mut challenge = Self::default();
        let mut rest = rest.trim_start();
        while !rest.is_empty() {
            let (name, after) = rest.split_once('=')?;
            let (value, after) = value_of(after.trim_start())?;
            match name.trim().to_ascii_lowercase().as_str() {
                "realm" => challenge.realm = value,
                "nonce" => challenge.nonce = value,
                "opaque" => challenge.opaque = Some(value),
                "algorithm" => challenge.algorithm = Some(value),
                "qop" => {
                    challenge.has_qop = true;
                    challenge.has_auth = value.split(',').any(|qop| qop.trim().eq_ignore_ascii_case("auth"));
                }
                _ => {}
            }
            rest = after.trim_start_matches([',', ' ', '\t']);
        }
        (!challenge.nonce.is_empty()).then_some(challenge)
    }

    /// Value of `Authorization`; `None` if the challenge has no algorithm, or no protection, that is there.
    pub(crate) fn credentials(&self, request: ChallengedRequest<'_>) -> Option<String> {
        let algorithm = self.algorithm.as_deref().unwrap_or("MD5").to_ascii_uppercase();
        let (name, is_session) = match algorithm.strip_suffix("-SESS") {
            Some(name) => (name, true),
            None => (algorithm.as_str(), false),
        };
        let hash = match name {
            "MD5" => |text: &str| hex(&Md5::digest(text)),
            "SHA-256" => |text: &str| hex(&Sha256::digest(text)),
            _ => return None,
        };
        if self.has_qop && !self.has_auth {
            return None;
        }
        let ChallengedRequest { user, password, method, target, client_nonce } = request;
        let (realm, nonce) = (&self.realm, &self.nonce);
        let mut secret = hash(&format!("{user}:{realm}:{password}"));
        if is_session {
            secret = hash(&format!("{secret}:{nonce}:{client_nonce}"));
        }
        let covered = hash(&format!("{method}:{target}"));
        let response = match self.has_auth {
            true => hash(&format!("{secret}:{nonce}:00000001:{client_nonce}:auth:{covered}")),
            false => hash(&format!("{secret}:{nonce}:{covered}")),
        };
        let mut field = format!(
            "Digest username=\"{}\", realm=\"{realm}\", nonce=\"{nonce}\", uri=\"{target}\", response=\"{response}\"",
            user.replace('\\', "\\\\").replace('"', "\\\"")
        );
        if let Some(algorithm) = &self.algorithm {
            field.push_str(&format!(", algorithm={algorithm}"));
        }
        if let Some(opaque) = &self.opaque {
            field.push_str(&format!(", opaque=\"{opaque}\""));
        }
        if self.has_auth {
            field.push_str(&format!(", qop=auth, nc=00000001, cnonce=\"{client_nonce}\""));
        } else if is_session {
            field.push_str(&format!(", cnonce=\"{client_nonce}\""));
        }
        Some(field)
    }
}

/// Value of a parameter, in quotes or not, and what follows it.
fn value_of(text: &str) -> Option<(String, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([',', ' ', '\t']).unwrap_or(text.len());
        return Some((text[..end].to_owned(), &text[end..]));
    };
    let mut value = String::new();
    let mut signs = quoted.char_indices();
    while let Some((at, sign)) = signs.next() {
        match sign {
            '"' => return Some((value, &quoted[at + 1..])),
            '\\' => value.push(signs.next()?.1),
            sign => value.push(sign),
        }
    }
    None
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn request<'a>(client_nonce: &'a str) -> ChallengedRequest<'a> {
        ChallengedRequest {
            user: "Mufasa",
            password: "Circle of Life",
            method: "GET",
            target: "/dir/index.html",
            client_nonce,
        }
    }

    #[test]
    fn credentials_are_those_of_the_standard() {
        let md5 = "Digest realm=\"http-auth@example.org\", qop=\"auth, auth-int\", algorithm=MD5, \
                   nonce=\"7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v\", opaque=\"FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS\"";
        let nonce = "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ";
        let answer = |field: &str| DigestChallenge::parse(field)?.credentials(request(nonce));
        let response = |field: &str| {
            let answer = answer(field)?;
            answer.split("response=\"").nth(1).and_then(|rest| rest.split('"').next().map(str::to_owned))
        };
        assert_eq!(response(md5).as_deref(), Some("8ca523f5e9506fed4657c9700eebdbec"));
        assert_eq!(
            response(&md5.replace("=MD5", "=SHA-256")).as_deref(),
            Some("753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1")
        );
        assert_eq!(answer(&md5.replace("=MD5", "=SHA-512-256")), None);
        assert_eq!(answer(&md5.replace("auth, auth-int", "auth-int")), None);
        assert!(answer("Digest nonce=x").is_some_and(|field| !field.contains("qop")));
        for other in ["Basic realm=\"x\"", "Digest", "Digest realm=\"x", "Digest realm=\"x\""] {
            assert_eq!(DigestChallenge::parse(other), None, "{other}");
        }
    }

    proptest! {
        #[test]
        fn any_field_is_read_or_left(field in "(Digest )?[a-z=\",\\\\ ]{0,40}") {
            let _ = DigestChallenge::parse(&field);
        }
    }
}
