//! Session of one user of a shop.

use super::catalog::CatalogItem;

/// Session from login to logout.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShopSession {
    /// Name of the user.
    pub user: String,
    /// Replacements of the cookie so far.
    pub cookie_generation: u32,
    /// Whether a list of items was read.
    pub has_listed: bool,
    /// Item that was read last.
    pub viewed: Option<u32>,
    /// Items in the cart, [`ShopSession::MAX_CART_LINES`] at most.
    pub cart: Vec<CartLine>,
    /// Whether something was bought.
    pub has_bought: bool,
}

/// Item in a cart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CartLine {
    /// Item.
    pub item: CatalogItem,
    /// Number of pieces, from 1.
    pub quantity: u32,
}

impl ShopSession {
    /// Most lines of a cart.
    pub const MAX_CART_LINES: usize = 50;

    /// Price of all items in the cart, in cents.
    pub fn total_cents(&self) -> u64 {
        self.cart.iter().map(|line| u64::from(line.item.price_cents) * u64::from(line.quantity)).sum()
    }
}
