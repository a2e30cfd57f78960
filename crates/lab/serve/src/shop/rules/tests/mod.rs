//! The shop against a naive model, and its rules one by one.

use proptest::prelude::*;

use super::catalog::Catalog;
use super::credential::{Credential, CredentialKind};
use super::store::{Shop, ShopCredentials, ShopOutcome, ShopRequest, ShopResult, ShopRules};
use super::violation::ProtocolViolation;

fn shop(max_sessions: usize, rotates_cookie: bool, needs_csrf: bool) -> Shop {
    Shop::new(ShopRules { max_sessions, rotates_cookie, needs_csrf, seed: 5 }, Catalog::new(25, 5))
}

/// Client that does what a browser does with the shop's answers.
#[derive(Clone, Debug, Default)]
struct Shopper {
    token: Option<String>,
    csrf: Option<String>,
    cookie: Option<String>,
}

impl Shopper {
    fn send(&mut self, shop: &mut Shop, request: ShopRequest<'_>) -> ShopOutcome {
        let Self { token, csrf, cookie } = self.clone();
        let credentials = ShopCredentials {
            token: token.as_deref(),
            cookie: cookie.as_deref(),
            csrf: csrf.as_deref(),
            visitor: None,
        };
        let outcome = shop.handle(request, credentials);
        if let Some(cookie) = &outcome.new_cookie {
            self.cookie = Some(cookie.clone());
        }
        if let Ok(ShopResult::Session { token, csrf, .. }) = &outcome.result {
            (self.token, self.csrf) = (Some(token.clone()), Some(csrf.clone()));
        }
        outcome
    }

    fn login(shop: &mut Shop, user: &str) -> Self {
        let mut shopper = Self::default();
        let password = Shop::password(user);
        assert!(shopper.send(shop, ShopRequest::Login { user, password: &password }).result.is_ok());
        shopper
    }

    fn broken(&mut self, shop: &mut Shop, request: ShopRequest<'_>) -> Option<ProtocolViolation> {
        self.send(shop, request).result.err()
    }
}

#[test]
fn an_iteration_counts_once_and_its_price_adds_up() {
    for (rotates_cookie, needs_csrf) in [(false, false), (true, false), (false, true), (true, true)] {
        let mut shop = shop(10, rotates_cookie, needs_csrf);
        let mut shopper = Shopper::login(&mut shop, "ann");
        let mut price = 0;
        for request in [
            ShopRequest::Items { page: 3 },
            ShopRequest::Item { id: 21 },
            ShopRequest::Add { id: 21, quantity: 3 },
            ShopRequest::Cart,
            ShopRequest::Buy,
            ShopRequest::Logout,
        ] {
            let result = shopper.send(&mut shop, request).result;
            if let Ok(ShopResult::Item(item)) = result {
                price = u64::from(item.price_cents);
            }
            assert!(result.is_ok(), "{request:?}: {result:?}");
        }
        let totals = shop.totals();
        assert_eq!((totals.iterations, totals.orders, totals.revenue_cents), (1, 1, 3 * price));
        assert_eq!((shop.sessions(), shop.users()), (0, 1));
        assert_eq!(shopper.broken(&mut shop, ShopRequest::Cart), Some(ProtocolViolation::AfterLogout));
    }
}

#[test]
fn each_rule_is_named_when_it_is_broken() {
    let mut shop = shop(10, true, true);
    let mut stranger = Shopper::default();
    let login = ShopRequest::Login { user: "ann", password: "pw-bob" };
    assert_eq!(stranger.broken(&mut shop, login), Some(ProtocolViolation::WrongPassword));
    assert_eq!(stranger.broken(&mut shop, ShopRequest::Cart), Some(ProtocolViolation::MissingToken));
    assert_eq!(stranger.broken(&mut shop, ShopRequest::Home), Some(ProtocolViolation::LostCookie));
    stranger.token = Some("t1-0-0000000000000000".to_owned());
    assert_eq!(stranger.broken(&mut shop, ShopRequest::Cart), Some(ProtocolViolation::WrongToken));
    let mut ann = Shopper::login(&mut shop, "ann");
    let first_cookie = ann.cookie.clone();
    assert_eq!(ann.broken(&mut shop, ShopRequest::Item { id: 1 }), Some(ProtocolViolation::SkippedStep));
    assert_eq!(ann.broken(&mut shop, ShopRequest::Items { page: 4 }), Some(ProtocolViolation::UnknownItem));
    assert_eq!(ann.broken(&mut shop, ShopRequest::Items { page: 1 }), None);
    assert_eq!(ann.broken(&mut shop, ShopRequest::Item { id: 26 }), Some(ProtocolViolation::UnknownItem));
    assert_eq!(ann.broken(&mut shop, ShopRequest::Add { id: 1, quantity: 1 }), Some(ProtocolViolation::SkippedStep));
    assert_eq!(ann.broken(&mut shop, ShopRequest::Buy), Some(ProtocolViolation::EmptyCart));
    let mut outdated = Shopper { cookie: first_cookie, ..ann.clone() };
    assert_eq!(outdated.broken(&mut shop, ShopRequest::Cart), Some(ProtocolViolation::LostCookie));
    let mut bob = Shopper::login(&mut shop, "bob");
    bob.cookie.clone_from(&ann.cookie);
    assert_eq!(bob.broken(&mut shop, ShopRequest::Cart), Some(ProtocolViolation::LostCookie));
    ann.csrf = bob.csrf;
    assert_eq!(ann.broken(&mut shop, ShopRequest::Buy), Some(ProtocolViolation::WrongCsrf));
    let all: u64 = ProtocolViolation::ALL.map(|kind| shop.violations(kind)).iter().sum();
    assert_eq!((all, shop.violations(ProtocolViolation::LostCookie)), (12, 3));
    assert_eq!(ProtocolViolation::ALL.map(|kind| kind as usize), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
}

/// Step of a user, by number: what a naive model and the shop are both asked for.
fn request(step: u8) -> ShopRequest<'static> {
    match step {
        0 => ShopRequest::Items { page: 1 },
        1 => ShopRequest::Item { id: 2 },
        2 => ShopRequest::Add { id: 2, quantity: 1 },
        3 => ShopRequest::Buy,
        4 => ShopRequest::Logout,
        _ => ShopRequest::Cart,
    }
}

/// State of one user, as a person would keep it.
#[derive(Clone, Copy, Debug, Default)]
struct NaiveUser {
    is_in: bool,
    has_listed: bool,
    has_viewed: bool,
    lines: usize,
    has_bought: bool,
}

impl NaiveUser {
    fn accepts(&mut self, step: u8) -> bool {
        let accepted = self.is_in
            && match step {
                1 => self.has_listed,
                2 => self.has_viewed && self.lines < 50,
                3 => self.lines > 0,
                _ => true,
            };
        if accepted {
            match step {
                0 => self.has_listed = true,
                1 => self.has_viewed = true,
                2 => self.lines += 1,
                3 => (self.lines, self.has_bought) = (0, true),
                4 => self.is_in = false,
                _ => {}
            }
        }
        accepted
    }
}

proptest! {
    /// Users whose requests interleave, against one naive record each.
    #[test]
    fn the_shop_is_what_a_naive_record_per_user_says(
        steps in prop::collection::vec((0..4_usize, 0..7_u8), 0..300),
        rotates_cookie: bool,
        needs_csrf: bool,
    ) {
        let mut shop = shop(4, rotates_cookie, needs_csrf);
        let mut shoppers = vec![Shopper::default(); 4];
        let mut naive = [NaiveUser::default(); 4];
        let (mut iterations, mut broken) = (0, 0);
        for (user, step) in steps {
            if step == 6 {
                // A second login of a user that is in would leave a session without a user.
                if !naive[user].is_in {
                    shoppers[user] = Shopper::login(&mut shop, &format!("user{user}"));
                    naive[user] = NaiveUser { is_in: true, ..NaiveUser::default() };
                }
                continue;
            }
            let before = naive[user];
            let accepted = naive[user].accepts(step);
            prop_assert_eq!(shoppers[user].send(&mut shop, request(step)).result.is_ok(), accepted);
            iterations += u64::from(accepted && step == 4 && before.has_bought);
            broken += u64::from(!accepted);
        }
        prop_assert_eq!(shop.totals().iterations, iterations);
        prop_assert_eq!(shop.sessions(), naive.iter().filter(|user| user.is_in).count());
        let counted: u64 = ProtocolViolation::ALL.map(|kind| shop.violations(kind)).iter().sum();
        prop_assert_eq!(counted, broken);
    }

    #[test]
    fn sessions_are_bounded_and_the_oldest_ends_first(max_sessions in 1..6_usize, logins in 0..20_usize) {
        let mut shop = shop(max_sessions, false, false);
        let mut shoppers: Vec<_> = (0..logins).map(|n| Shopper::login(&mut shop, &format!("u{n}"))).collect();
        prop_assert_eq!(shop.sessions(), logins.min(max_sessions));
        prop_assert_eq!(shop.totals().evicted as usize, logins.saturating_sub(max_sessions));
        for (n, shopper) in shoppers.iter_mut().enumerate() {
            let is_in = n + max_sessions >= logins;
            prop_assert_eq!(shopper.send(&mut shop, ShopRequest::Cart).result.is_ok(), is_in);
        }
    }

    #[test]
    fn a_credential_is_read_back_and_no_other_text_is_one(
        number: u64, generation: u32, seed: u64, other: u64, text in "[tsxv]?[0-9]{0,3}-?[0-9]{0,2}-?[0-9a-f]{0,16}",
    ) {
        use CredentialKind::{Cookie, Csrf, Token, Visitor};
        for kind in [Token, Cookie, Csrf, Visitor] {
            let credential = Credential { kind, number, generation };
            prop_assert_eq!(Credential::read(kind, &credential.text(seed), seed), Some(credential));
            prop_assert!(seed == other || Credential::read(kind, &credential.text(other), seed).is_none());
            prop_assert!(Credential::read(kind, &text, seed).is_none());
        }
        let cookie = Credential { kind: Cookie, number, generation }.text(seed);
        prop_assert!(Credential::read(Token, &cookie, seed).is_none());
    }

    #[test]
    fn pages_list_each_item_once(size in 1..200_u32, seed: u64) {
        let catalog = Catalog::new(size, seed);
        let listed: Vec<_> = (1..=catalog.pages()).filter_map(|page| catalog.page(page)).flatten().collect();
        prop_assert_eq!(listed.len(), size as usize);
        for (item, id) in listed.iter().zip(1..) {
            prop_assert_eq!(Some(*item), catalog.item(id));
            prop_assert!((100..10_000).contains(&item.price_cents));
        }
        prop_assert!(catalog.page(0).is_none() && catalog.page(catalog.pages() + 1).is_none());
        prop_assert!(catalog.item(0).is_none() && catalog.item(size + 1).is_none());
    }
}
