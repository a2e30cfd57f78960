//! Items of a shop. An item is a function of the seed and its number; none is stored.

use weir_base::rng::SeededRng;

/// Items of a shop, numbered from 1.
#[derive(Clone, Copy, Debug)]
pub struct Catalog {
    size: u32,
    rng: SeededRng,
}

/// Item of a shop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CatalogItem {
    /// Number, from 1.
    pub id: u32,
    /// Price in cents, 100 to 9,999.
    pub price_cents: u32,
}

impl Catalog {
    /// Items of a page.
    pub const PAGE_ITEMS: u32 = 10;

    /// A catalog of `size` items, 1 at least.
    pub fn new(size: u32, seed: u64) -> Self {
        Self { size: size.max(1), rng: SeededRng::new(seed, 31) }
    }

    /// Item with this number.
    pub fn item(&self, id: u32) -> Option<CatalogItem> {
        if id == 0 || id > self.size {
            return None;
        }
        let price_cents = 100 + (self.rng.unit_at(id.into()) * 9_899.0) as u32;
        Some(CatalogItem { id, price_cents })
    }

    /// Number of pages, 1 at least.
    pub fn pages(&self) -> u32 {
        self.size.div_ceil(Self::PAGE_ITEMS)
    }

    /// Items of a page, numbered from 1; none of other pages.
    pub fn page(&self, page: u32) -> Option<Vec<CatalogItem>> {
        if page == 0 || page > self.pages() {
            return None;
        }
        let first = (page - 1) * Self::PAGE_ITEMS + 1;
        let last = first.saturating_add(Self::PAGE_ITEMS - 1).min(self.size);
        Some((first..=last).filter_map(|id| self.item(id)).collect())
    }
}
