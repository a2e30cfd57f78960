//! Buffers of a thread's exchanges.

use weir_net::wire::HeadCache;

use super::StepExchange;

/// Maximum number of exchanges whose buffers a thread keeps. Users without think time need one.
const MAX_SPARE_EXCHANGES: usize = 256;

/// Buffers of a thread's exchanges: those that have ended, for the next ones.
#[derive(Debug, Default)]
pub(crate) struct ExchangePool {
    #[allow(clippy::vec_box, reason = "a box goes to a connection and comes back as it is")]
    spare: Vec<Box<StepExchange>>,
    head_caches: Vec<HeadCache>,
}

impl ExchangePool {
    /// An exchange to prepare for a request.
    pub(crate) fn take(&mut self) -> Box<StepExchange> {
        self.spare.pop().unwrap_or_default()
    }

    /// Takes an exchange that has ended.
    pub(crate) fn put(&mut self, mut exchange: Box<StepExchange>) {
        if self.spare.len() < MAX_SPARE_EXCHANGES {
            exchange.shrink();
            self.spare.push(exchange);
        }
    }

    /// Last head of a step, by its index among all steps: responses of a step are like one another.
    pub(crate) fn head_cache(&mut self, step: u32) -> &mut HeadCache {
        let index = step as usize;
        if self.head_caches.len() <= index {
            self.head_caches.resize_with(index + 1, HeadCache::default);
        }
        &mut self.head_caches[index]
    }
}
