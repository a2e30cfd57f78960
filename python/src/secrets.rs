//! The rules of secrets, for the modules of the package: names, texts without secrets, and origins of credentials.

use pyo3::prelude::*;
use weir::decide::base::origin::CredentialOrigin;
use weir::decide::base::{secret_mask, secret_names};
use weir::http::target::Target;

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
    origin_of(&from).shares_credentials_with(&origin_of(&to))
}

fn origin_of(target: &Target) -> CredentialOrigin<'_> {
    CredentialOrigin { is_tls: target.tls, host: &target.host, port: target.port }
}
