//! Events of a streamed response that have arrived and are to be passed on.

use weir_events::StreamEvent;

/// Events of a streamed response that have arrived together, copied for a program.
#[derive(Clone, Debug, Default)]
pub struct ArrivedEvents {
    bytes: Vec<u8>,
    /// Ends of name, ID and data of each.
    ends: Vec<[usize; 3]>,
}

/// Event of a streamed response, as a program gets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArrivedEvent<'a> {
    /// Type of a server-sent event; empty without one.
    pub name: &'a [u8],
    /// Last ID of server-sent events so far; empty without one.
    pub id: &'a [u8],
    /// Content, without framing.
    pub data: &'a [u8],
}

impl ArrivedEvents {
    /// Appends an event.
    pub fn push(&mut self, event: &StreamEvent<'_>) {
        let ends = [event.name, event.id, event.data].map(|part| {
            self.bytes.extend_from_slice(part);
            self.bytes.len()
        });
        self.ends.push(ends);
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The events, in order.
    pub fn iter(&self) -> impl Iterator<Item = ArrivedEvent<'_>> {
        let starts = std::iter::once(0).chain(self.ends.iter().map(|[.., end]| *end));
        let part = |start, end| self.bytes.get(start..end).unwrap_or_default();
        self.ends.iter().zip(starts).map(move |([name, id, data], start)| ArrivedEvent {
            name: part(start, *name),
            id: part(*name, *id),
            data: part(*id, *data),
        })
    }

    /// Forgets the events, which were passed on; keeps buffers of at most this many bytes.
    pub(crate) fn clear(&mut self, max_bytes: usize) {
        self.bytes.clear();
        self.ends.clear();
        self.bytes.shrink_to(max_bytes);
        self.ends.shrink_to(max_bytes / size_of::<[usize; 3]>());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_back_as_they_were_pushed() {
        let event = |name: &'static str, id: &'static str, data: &'static str| StreamEvent {
            name: name.as_bytes(),
            data: data.as_bytes(),
            id: id.as_bytes(),
            retry_ms: None,
            start: 0,
            end: 0,
            is_truncated: false,
        };
        let given = [("", "", ""), ("delta", "7", "{}"), ("", "7", "text"), ("end", "", "")];
        let mut arrived = ArrivedEvents::default();
        given.into_iter().for_each(|(name, id, data)| arrived.push(&event(name, id, data)));
        let found: Vec<_> = arrived.iter().map(|it| [it.name, it.id, it.data].map(<[u8]>::to_vec)).collect();
        assert_eq!(found, given.map(|(name, id, data)| [name, id, data].map(|part| part.as_bytes().to_vec())));
        arrived.clear(0);
        assert!(arrived.is_empty() && arrived.iter().next().is_none());
    }
}
