//! A key as text in a shared place.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use weir_base::Nanos;
use weir_delivery::limiter::{HolderId, LimiterKey, LimiterRules};

use crate::trouble::StoreTrouble;

/// Version of the text.
const FORMAT: u32 = 1;

/// A key, and what else its readers need.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct StoredKey {
    pub(super) head: StoredHead,
    pub(super) key: LimiterKey,
}

/// The part that all versions have.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct StoredHead {
    format: u32,
    /// Limits of the writer.
    limits: String,
    /// Time of writing, by the store's clock, and in milliseconds since 1970.
    pub(super) at: Nanos,
    pub(super) wall_ms: i64,
    /// Boot of the machine whose clock it is; empty: the clock outlives boots.
    #[serde(default)]
    pub(super) boot: String,
    /// Time from the writing on for which the key may count.
    memory: Nanos,
    /// Holders and the times at which they were last here.
    #[serde(default)]
    pub(super) seen: BTreeMap<HolderId, Nanos>,
}

/// What is read of any version.
#[derive(Default, Deserialize)]
struct HeadOnly {
    head: StoredHead,
}

/// Writer's time, in all its forms.
#[derive(Clone, Debug)]
pub(super) struct WriteTime<'a> {
    pub(super) now: Nanos,
    pub(super) wall_ms: i64,
    pub(super) boot: &'a str,
}

impl StoredKey {
    pub(super) fn new(
        key: LimiterKey,
        rules: &LimiterRules,
        at: &WriteTime<'_>,
        seen: BTreeMap<HolderId, Nanos>,
    ) -> Self {
        let (limits, boot) = (rules.limits_text(), at.boot.to_owned());
        let memory = key.memory(at.now);
        let head = StoredHead { format: FORMAT, limits, at: at.now, wall_ms: at.wall_ms, boot, memory, seen };
        Self { head, key }
    }

    pub(super) fn write(&self) -> Result<Vec<u8>, StoreTrouble> {
        serde_json::to_vec(self).map_err(|error| StoreTrouble::Failed(format!("a key cannot be written: {error}")))
    }

    /// Reads a key; None: nothing of it counts any more.
    pub(super) fn read(
        text: &[u8],
        rules: &LimiterRules,
        at: &WriteTime<'_>,
        place: &str,
    ) -> Result<Option<Self>, StoreTrouble> {
        let head = serde_json::from_slice::<HeadOnly>(text).unwrap_or_default().head;
        let is_over = head.since(at) > head.memory;
        if head.format == FORMAT && head.limits == rules.limits_text() {
            let read: Option<Self> = serde_json::from_slice(text).ok();
            let key = read.and_then(|read| Some(Self { key: read.key.restored(rules)?, head: read.head }));
            if let Some(mut stored) = key {
                if stored.head.boot != at.boot {
                    stored.key = stored.key.moved(rules, at.now, head.since(at));
                }
                return Ok((!is_over).then_some(stored));
            }
        }
        if is_over && head.format > 0 {
            return Ok(None);
        }
        Err(StoreTrouble::Unusable(match head.format {
            FORMAT if head.limits != rules.limits_text() => format!(
                "{place}: other processes use it with the limits '{}', this one has '{}'; give both the same, or \
                 another shared",
                head.limits,
                rules.limits_text()
            ),
            FORMAT => format!("{place}: a key in it is damaged; remove it, or give another shared"),
            _ => format!("{place}: another version of weir, or another program, uses it; give another shared"),
        }))
    }
}

impl StoredHead {
    /// Time since the writing; less where two clocks differ.
    fn since(&self, at: &WriteTime<'_>) -> Nanos {
        let by_wall = u64::try_from(at.wall_ms.saturating_sub(self.wall_ms)).unwrap_or(0);
        let by_wall = Nanos(by_wall.saturating_mul(Nanos::MILLI.0));
        if self.boot == at.boot { at.now - self.at } else { by_wall }
    }
}
