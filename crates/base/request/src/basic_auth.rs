//! User and password as a header: basic authentication (RFC 7617).

use std::borrow::Cow;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

/// Value of `Authorization` for `user:password`.
pub fn basic_authorization(credentials: &[u8]) -> String {
    format!("Basic {}", BASE64_STANDARD.encode(credentials))
}

/// `user:password` as people type it: a user without a colon has an empty password.
///
/// # Errors
/// One line without the text: it has neither.
pub fn typed_credentials(text: &str) -> Result<Cow<'_, str>, &'static str> {
    match text {
        "" => Err("no user and no password; write USER:PASSWORD, or leave it out"),
        text if text.contains(':') => Ok(Cow::Borrowed(text)),
        user => Ok(Cow::Owned(format!("{user}:"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_have_a_colon() {
        let sent = |text| typed_credentials(text).map(|credentials| basic_authorization(credentials.as_bytes()));
        assert_eq!(sent("Aladdin:open sesame").as_deref(), Ok("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="));
        assert_eq!((sent("me").as_deref(), sent("me:").as_deref()), (Ok("Basic bWU6"), Ok("Basic bWU6")));
        assert_eq!((sent(":").as_deref(), sent(":p:q").as_deref()), (Ok("Basic Og=="), Ok("Basic OnA6cQ==")));
        assert!(sent("").is_err());
    }
}
