//! Rules of a shop's protocol that a request can break.

/// Rule that a request broke.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProtocolViolation {
    /// Login with a password that is not the user's.
    WrongPassword,
    /// Request without a token.
    MissingToken,
    /// Token that the shop has not issued.
    WrongToken,
    /// Token of a session that has ended.
    AfterLogout,
    /// Cookie missing, outdated, or of another session.
    LostCookie,
    /// Token against cross-site requests missing or wrong.
    WrongCsrf,
    /// Item that no page lists.
    UnknownItem,
    /// Item added to the cart before this session has read it, or read before a list.
    SkippedStep,
    /// Purchase without an item in the cart.
    EmptyCart,
    /// More items than a cart holds.
    FullCart,
    /// Body or parameter that cannot be read.
    BadRequest,
}

impl ProtocolViolation {
    /// All violations, in the order of `ProtocolViolation as usize`.
    pub const ALL: [Self; 11] = [
        Self::WrongPassword,
        Self::MissingToken,
        Self::WrongToken,
        Self::AfterLogout,
        Self::LostCookie,
        Self::WrongCsrf,
        Self::UnknownItem,
        Self::SkippedStep,
        Self::EmptyCart,
        Self::FullCart,
        Self::BadRequest,
    ];

    /// Name in responses and in counts.
    pub const fn name(self) -> &'static str {
        match self {
            Self::WrongPassword => "wrong_password",
            Self::MissingToken => "missing_token",
            Self::WrongToken => "wrong_token",
            Self::AfterLogout => "after_logout",
            Self::LostCookie => "lost_cookie",
            Self::WrongCsrf => "wrong_csrf",
            Self::UnknownItem => "unknown_item",
            Self::SkippedStep => "skipped_step",
            Self::EmptyCart => "empty_cart",
            Self::FullCart => "full_cart",
            Self::BadRequest => "bad_request",
        }
    }

    /// HTTP status of the response.
    pub const fn status(self) -> u16 {
        match self {
            Self::BadRequest => 400,
            Self::WrongPassword | Self::MissingToken | Self::WrongToken | Self::AfterLogout => 401,
            Self::LostCookie | Self::WrongCsrf => 403,
            Self::UnknownItem => 404,
            Self::SkippedStep | Self::EmptyCart | Self::FullCart => 409,
        }
    }
}
