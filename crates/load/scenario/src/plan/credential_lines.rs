//! Credentials of a request.

use super::piece::PieceList;

/// Credentials of a request: lines that it has only where they belong.
#[derive(Clone, Debug, Default)]
pub(super) struct CredentialLines {
    /// Lines of headers with a secret name, or with one that is known only when it is rendered.
    pub(super) headers: PieceList,
    /// Cookies, separated by `; `.
    pub(super) cookies: PieceList,
    /// `user:password` for digest authentication.
    pub(super) digest: Option<PieceList>,
    /// Whether the headers have an Authorization, or digest authentication stands for it.
    pub(super) has_authorization: bool,
}

impl CredentialLines {
    /// Whether there are any.
    pub(super) fn is_used(&self) -> bool {
        self.has_authorization || !self.headers.is_empty() || !self.cookies.is_empty()
    }
}
