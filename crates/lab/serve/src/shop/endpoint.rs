//! Paths of the shop.

use http::Method;

/// Path and method of the shop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ShopEndpoint {
    Visit,
    Home,
    Login,
    Items,
    Item,
    Add,
    Cart,
    Buy,
    Logout,
}

/// Path, and the methods that it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ShopRoute {
    Endpoint(ShopEndpoint),
    WrongMethod(&'static str),
    Unknown,
}

impl ShopEndpoint {
    /// Name in counts.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Visit => "visit",
            Self::Home => "home",
            Self::Login => "login",
            Self::Items => "items",
            Self::Item => "item",
            Self::Add => "add",
            Self::Cart => "cart",
            Self::Buy => "buy",
            Self::Logout => "logout",
        }
    }
}

impl ShopRoute {
    pub(super) fn new(method: &Method, path: &str) -> Self {
        let reads = matches!(*method, Method::GET | Method::HEAD);
        let posts = *method == Method::POST;
        let read = |endpoint| if reads { Self::Endpoint(endpoint) } else { Self::WrongMethod("GET, HEAD") };
        let post = |endpoint| if posts { Self::Endpoint(endpoint) } else { Self::WrongMethod("POST") };
        match path {
            "/" => read(ShopEndpoint::Visit),
            "/home" => read(ShopEndpoint::Home),
            "/login" => post(ShopEndpoint::Login),
            "/items" => read(ShopEndpoint::Items),
            "/cart" if posts => Self::Endpoint(ShopEndpoint::Add),
            "/cart" if reads => Self::Endpoint(ShopEndpoint::Cart),
            "/cart" => Self::WrongMethod("GET, HEAD, POST"),
            "/buy" => post(ShopEndpoint::Buy),
            "/logout" => post(ShopEndpoint::Logout),
            _ if item_id(path).is_some() => read(ShopEndpoint::Item),
            _ => Self::Unknown,
        }
    }
}

/// Text after `/items/`, if it is one segment.
pub(super) fn item_id(path: &str) -> Option<&str> {
    path.strip_prefix("/items/").filter(|id| !id.is_empty() && !id.contains('/'))
}
