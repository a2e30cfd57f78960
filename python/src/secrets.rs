//! The rules of URLs and secrets, for the modules of the package: names, texts without secrets, URLs and the credentials
//! in them, and origins of credentials.

use pyo3::prelude::*;
use weir::net::target::Target;
use weir::request::basic_auth::basic_authorization;
use weir::request::url::HttpUrl;
use weir::request::{secret_mask, secret_names};

use crate::errors;

/// Whether a header, field, parameter or variable of this name is a secret.
#[pyfunction]
pub(crate) fn is_secret_name(name: &str) -> bool {
    secret_names::is_secret_name(name)
}

/// Text without what has a secret name, and without user and password of URLs.
#[pyfunction]
pub(crate) fn without_secrets(text: &str) -> String {
    secret_mask::without_secrets(text)
}

/// Whether credentials that were given for one URL may be sent to another one; an invalid URL gets none.
#[pyfunction]
pub(crate) fn shares_credentials(from: &str, to: &str) -> bool {
    let (Ok(from), Ok(to)) = (Target::parse(from), Target::parse(to)) else { return false };
    from.credential_origin().shares_credentials_with(&to.credential_origin())
}

/// URL as it is sent, without user and password, and the header value of these.
#[pyfunction]
pub(crate) fn split_url(url: &str) -> PyResult<(String, Option<String>)> {
    let parsed = HttpUrl::parse(url.as_bytes()).map_err(|error| errors::url(&error))?;
    Ok((parsed.to_string(), parsed.userinfo().map(basic_authorization)))
}
