//! The shop: sessions, and the outcome of each request.

use std::collections::{BTreeMap, HashSet};

use super::catalog::{Catalog, CatalogItem};
use super::credential::{Credential, CredentialKind};
use super::session::{CartLine, ShopSession};
use super::violation::ProtocolViolation;
use weir_base::rng::SeededRng;

/// Limits and protocol of a shop: sessions, cookie rotation, CSRF tokens, seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShopRules {
    /// Most sessions at a time, from 1; a further login ends the oldest one.
    pub max_sessions: usize,
    /// Whether each request of a session replaces its cookie.
    pub rotates_cookie: bool,
    /// Whether changes need the token against cross-site requests.
    pub needs_csrf: bool,
    /// Seed of prices and credentials.
    pub seed: u64,
}

/// Action of a client, parsed from its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShopRequest<'a> {
    /// First visit, without a session.
    Visit,
    /// Page of a visitor, or of a session.
    Home,
    /// Login of a user.
    Login {
        /// Name of the user, not empty.
        user: &'a str,
        /// Password; [`Shop::password`] is the right one.
        password: &'a str,
    },
    /// Page of the list of items, from 1.
    Items {
        /// Number of the page.
        page: u32,
    },
    /// One item.
    Item {
        /// Number of the item.
        id: u32,
    },
    /// Addition to the cart.
    Add {
        /// Number of the item.
        id: u32,
        /// Pieces, from 1.
        quantity: u32,
    },
    /// Content of the cart.
    Cart,
    /// Purchase of all that is in the cart.
    Buy,
    /// End of the session.
    Logout,
}

/// Credentials of a request, as they came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShopCredentials<'a> {
    /// Bearer token.
    pub token: Option<&'a str>,
    /// Cookie of the session.
    pub cookie: Option<&'a str>,
    /// Token against cross-site requests.
    pub csrf: Option<&'a str>,
    /// Cookie of the visitor.
    pub visitor: Option<&'a str>,
}

/// Outcome of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShopOutcome {
    /// Result, or the rule that was broken.
    pub result: Result<ShopResult, ProtocolViolation>,
    /// New value of the session's cookie.
    pub new_cookie: Option<String>,
}

/// Result of a request that broke no rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShopResult {
    /// Cookie of a new visitor.
    Welcome {
        /// Value of the cookie.
        visitor: String,
    },
    /// Page of a visitor without a session.
    VisitorHome,
    /// Session, new or as it is.
    Session {
        /// Name of the user.
        user: String,
        /// Bearer token.
        token: String,
        /// Token against cross-site requests.
        csrf: String,
    },
    /// Page of items.
    Items {
        /// Number of the page.
        page: u32,
        /// Items of the page.
        items: Vec<CatalogItem>,
    },
    /// One item.
    Item(CatalogItem),
    /// Content of the cart.
    Cart {
        /// Items.
        lines: Vec<CartLine>,
        /// Price of all, in cents.
        total_cents: u64,
    },
    /// Purchase.
    Paid {
        /// Number of the order, from 1.
        order: u64,
        /// Price, in cents.
        total_cents: u64,
    },
    /// The session has ended.
    LoggedOut,
}

/// Counts of a shop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShopTotals {
    /// Logins.
    pub logins: u64,
    /// Sessions that ended with a logout.
    pub logouts: u64,
    /// Sessions that ended because there were too many.
    pub evicted: u64,
    /// Sessions with login, purchase and logout.
    pub iterations: u64,
    /// Purchases.
    pub orders: u64,
    /// Price of all purchases, in cents.
    pub revenue_cents: u64,
    /// Visitors that got a cookie.
    pub visitors: u64,
}

/// State machine of a shop: catalog, sessions with their carts, and totals. Memory is bounded.
#[derive(Debug)]
pub struct Shop {
    rules: ShopRules,
    catalog: Catalog,
    /// Sessions by number; the lowest is the oldest.
    sessions: BTreeMap<u64, ShopSession>,
    /// Hashes of the users' names.
    users: HashSet<u64>,
    totals: ShopTotals,
    violations: [u64; ProtocolViolation::ALL.len()],
}

impl Shop {
    /// Maximum number of distinct users.
    pub const MAX_USERS: usize = 1_000_000;

    /// A shop without sessions.
    pub fn new(rules: ShopRules, catalog: Catalog) -> Self {
        Self {
            rules,
            catalog,
            sessions: BTreeMap::new(),
            users: HashSet::new(),
            totals: ShopTotals::default(),
            violations: [0; ProtocolViolation::ALL.len()],
        }
    }

    /// Password of a user: `pw-` and the name, so that a client that mixes up its users is found.
    pub fn password(user: &str) -> String {
        format!("pw-{user}")
    }

    /// Items.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// Counts so far.
    pub fn totals(&self) -> ShopTotals {
        self.totals
    }

    /// Sessions at the moment.
    pub fn sessions(&self) -> usize {
        self.sessions.len()
    }

    /// Users that logged in, [`Shop::MAX_USERS`] at most.
    pub fn users(&self) -> usize {
        self.users.len()
    }

    /// Number of requests that broke this rule.
    pub fn violations(&self, kind: ProtocolViolation) -> u64 {
        self.violations[kind as usize]
    }

    /// Counts a request that is not one of the protocol.
    pub fn reject(&mut self, kind: ProtocolViolation) -> ShopOutcome {
        self.violations[kind as usize] += 1;
        ShopOutcome { result: Err(kind), new_cookie: None }
    }

    /// Outcome of a request; one that breaks a rule changes nothing else.
    pub fn handle(&mut self, request: ShopRequest<'_>, credentials: ShopCredentials<'_>) -> ShopOutcome {
        let outcome = match request {
            ShopRequest::Visit => Ok(self.welcome()),
            ShopRequest::Login { user, password } => self.login(user, password),
            ShopRequest::Home => self.home(credentials),
            _ => self.in_session(request, credentials),
        };
        match outcome {
            Ok((result, new_cookie)) => ShopOutcome { result: Ok(result), new_cookie },
            Err(kind) => self.reject(kind),
        }
    }

    fn welcome(&mut self) -> (ShopResult, Option<String>) {
        self.totals.visitors += 1;
        let visitor = self.text(CredentialKind::Visitor, self.totals.visitors, 0);
        (ShopResult::Welcome { visitor }, None)
    }

    fn login(&mut self, user: &str, password: &str) -> Result<(ShopResult, Option<String>), ProtocolViolation> {
        if user.is_empty() || password != Self::password(user) {
            return Err(ProtocolViolation::WrongPassword);
        }
        self.totals.logins += 1;
        let number = self.totals.logins;
        if self.users.len() < Self::MAX_USERS {
            self.users.insert(hash(user, self.rules.seed));
        }
        if self.sessions.len() >= self.rules.max_sessions.max(1) && self.sessions.pop_first().is_some() {
            self.totals.evicted += 1;
        }
        self.sessions.insert(number, ShopSession { user: user.to_owned(), ..ShopSession::default() });
        Ok((self.session_result(number, user), Some(self.text(CredentialKind::Cookie, number, 0))))
    }

    /// The session of the cookie alone: a browser that was redirected has no token.
    fn home(&self, credentials: ShopCredentials<'_>) -> Result<(ShopResult, Option<String>), ProtocolViolation> {
        let seed = self.rules.seed;
        if let Some(cookie) = credentials.cookie {
            let cookie = Credential::read(CredentialKind::Cookie, cookie, seed).ok_or(ProtocolViolation::LostCookie)?;
            let session = self.sessions.get(&cookie.number).ok_or(ProtocolViolation::AfterLogout)?;
            if session.cookie_generation != cookie.generation {
                return Err(ProtocolViolation::LostCookie);
            }
            return Ok((self.session_result(cookie.number, &session.user), None));
        }
        let visitor = credentials.visitor.and_then(|text| Credential::read(CredentialKind::Visitor, text, seed));
        visitor.map(|_| (ShopResult::VisitorHome, None)).ok_or(ProtocolViolation::LostCookie)
    }

    fn in_session(
        &mut self,
        request: ShopRequest<'_>,
        credentials: ShopCredentials<'_>,
    ) -> Result<(ShopResult, Option<String>), ProtocolViolation> {
        let number = self.authenticate(request, credentials)?;
        let session = self.sessions.get_mut(&number).ok_or(ProtocolViolation::AfterLogout)?;
        let result = match request {
            ShopRequest::Items { page } => {
                let items = self.catalog.page(page).ok_or(ProtocolViolation::UnknownItem)?;
                session.has_listed = true;
                ShopResult::Items { page, items }
            }
            ShopRequest::Item { id } => {
                if !session.has_listed {
                    return Err(ProtocolViolation::SkippedStep);
                }
                let item = self.catalog.item(id).ok_or(ProtocolViolation::UnknownItem)?;
                session.viewed = Some(id);
                ShopResult::Item(item)
            }
            ShopRequest::Add { id, quantity } => {
                let item = self.catalog.item(id).ok_or(ProtocolViolation::UnknownItem)?;
                if session.viewed != Some(id) {
                    return Err(ProtocolViolation::SkippedStep);
                }
                if session.cart.len() >= ShopSession::MAX_CART_LINES {
                    return Err(ProtocolViolation::FullCart);
                }
                session.cart.push(CartLine { item, quantity });
                cart_result(session)
            }
            ShopRequest::Buy => {
                if session.cart.is_empty() {
                    return Err(ProtocolViolation::EmptyCart);
                }
                let total_cents = session.total_cents();
                session.cart.clear();
                session.has_bought = true;
                self.totals.orders += 1;
                self.totals.revenue_cents = self.totals.revenue_cents.saturating_add(total_cents);
                ShopResult::Paid { order: self.totals.orders, total_cents }
            }
            ShopRequest::Logout => {
                self.totals.logouts += 1;
                self.totals.iterations += u64::from(session.has_bought);
                self.sessions.remove(&number);
                return Ok((ShopResult::LoggedOut, None));
            }
            ShopRequest::Cart | ShopRequest::Visit | ShopRequest::Home | ShopRequest::Login { .. } => {
                cart_result(session)
            }
        };
        if !self.rules.rotates_cookie {
            return Ok((result, None));
        }
        session.cookie_generation = session.cookie_generation.wrapping_add(1);
        let generation = session.cookie_generation;
        Ok((result, Some(self.text(CredentialKind::Cookie, number, generation))))
    }

    /// Number of the session that the credentials belong to, if they are all there.
    fn authenticate(
        &self,
        request: ShopRequest<'_>,
        credentials: ShopCredentials<'_>,
    ) -> Result<u64, ProtocolViolation> {
        let read = |kind, text: Option<&str>| text.and_then(|text| Credential::read(kind, text, self.rules.seed));
        let token = credentials.token.ok_or(ProtocolViolation::MissingToken)?;
        let token = read(CredentialKind::Token, Some(token)).ok_or(ProtocolViolation::WrongToken)?;
        let session = self.sessions.get(&token.number).ok_or(ProtocolViolation::AfterLogout)?;
        let current = (token.number, session.cookie_generation);
        let cookie = read(CredentialKind::Cookie, credentials.cookie);
        if cookie.map(|cookie| (cookie.number, cookie.generation)) != Some(current) {
            return Err(ProtocolViolation::LostCookie);
        }
        let changes = matches!(request, ShopRequest::Add { .. } | ShopRequest::Buy | ShopRequest::Logout);
        if self.rules.needs_csrf && changes {
            let csrf = read(CredentialKind::Csrf, credentials.csrf).map(|csrf| csrf.number);
            if csrf != Some(token.number) {
                return Err(ProtocolViolation::WrongCsrf);
            }
        }
        Ok(token.number)
    }

    fn session_result(&self, number: u64, user: &str) -> ShopResult {
        ShopResult::Session {
            user: user.to_owned(),
            token: self.text(CredentialKind::Token, number, 0),
            csrf: self.text(CredentialKind::Csrf, number, 0),
        }
    }

    fn text(&self, kind: CredentialKind, number: u64, generation: u32) -> String {
        Credential { kind, number, generation }.text(self.rules.seed)
    }
}

fn cart_result(session: &ShopSession) -> ShopResult {
    ShopResult::Cart { lines: session.cart.clone(), total_cents: session.total_cents() }
}

/// 64 bits of a name, the same in every run.
fn hash(text: &str, seed: u64) -> u64 {
    text.bytes().fold(seed, |hash, byte| SeededRng::new(hash, byte.into()).bits())
}
