//! Origins: where requests go.

use std::fmt;

/// Most origins of a thread. A service that redirects to ever new hosts would otherwise fill the memory.
const MAX_ORIGINS: usize = 1024;

/// Scheme, host and port that a request goes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestOrigin {
    /// Whether the scheme is https.
    pub is_tls: bool,
    /// Host in lower case; IPv6 addresses are in brackets.
    pub host: String,
    /// Port.
    pub port: u16,
}

/// Index of an origin in an [`OriginTable`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OriginId(pub u32);

/// Origins by their index. A plan has those that its file names; each thread has a copy, to which those of variables
/// and redirects are added.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OriginTable {
    origins: Vec<RequestOrigin>,
}

impl OriginTable {
    /// Origin of an index of this table.
    pub fn get(&self, id: OriginId) -> Option<&RequestOrigin> {
        self.origins.get(id.0 as usize)
    }

    /// Origins in the order of their indices.
    pub fn iter(&self) -> impl Iterator<Item = &RequestOrigin> {
        self.origins.iter()
    }

    /// Number of origins.
    pub fn len(&self) -> usize {
        self.origins.len()
    }

    /// Whether there is no origin.
    pub fn is_empty(&self) -> bool {
        self.origins.is_empty()
    }

    /// Index of an origin, which is added if it is new; `None` if the table is full.
    pub fn intern(&mut self, is_tls: bool, host: &str, port: u16) -> Option<OriginId> {
        let is_same = |known: &RequestOrigin| known.port == port && known.is_tls == is_tls && known.host == host;
        if let Some(index) = self.origins.iter().position(is_same) {
            return u32::try_from(index).ok().map(OriginId);
        }
        if self.origins.len() >= MAX_ORIGINS {
            return None;
        }
        let id = u32::try_from(self.origins.len()).ok()?;
        self.origins.push(RequestOrigin { is_tls, host: host.to_owned(), port });
        Some(OriginId(id))
    }
}

/// `https://shop.example:8443`; the scheme's default port is left out.
impl fmt::Display for RequestOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, default_port) = if self.is_tls { ("https", 443) } else { ("http", 80) };
        write!(f, "{scheme}://{}", self.host)?;
        if self.port == default_port { Ok(()) } else { write!(f, ":{}", self.port) }
    }
}
