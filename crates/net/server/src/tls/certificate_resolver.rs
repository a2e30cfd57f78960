//! The certificate for the server that a client names.

use std::collections::HashMap;
use std::sync::Arc;

use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use webpki::EndEntityCert;

/// Certificates by the names that they are valid for: the exact name first, then a wildcard for its first label, then
/// the default. Of several for one name, with keys of different kinds, the first one that the client can verify.
#[derive(Debug)]
pub(super) struct CertificateResolver(NameTable<Arc<CertifiedKey>>);

/// Values by server name.
#[derive(Debug)]
struct NameTable<T> {
    /// By names in lower case; a wildcard begins with `*.`.
    named: HashMap<String, Vec<T>>,
    /// All, in order; the first one is the default.
    all: Vec<T>,
}

impl<T: Clone> NameTable<T> {
    fn new(values: impl IntoIterator<Item = (T, Vec<String>)>) -> Self {
        let mut table = Self { named: HashMap::new(), all: Vec::new() };
        for (value, names) in values {
            for name in names {
                table.named.entry(name.to_ascii_lowercase()).or_default().push(value.clone());
            }
            table.all.push(value);
        }
        table
    }

    /// Values for a name, in order of preference.
    fn find(&self, name: Option<&str>) -> &[T] {
        let Some(name) = name else { return &self.all };
        let name = name.to_ascii_lowercase();
        let wildcard = || name.split_once('.').and_then(|(_, parent)| self.named.get(&format!("*.{parent}")));
        self.named.get(&name).or_else(wildcard).unwrap_or(&self.all)
    }
}

impl CertificateResolver {
    pub(super) fn new(keys: &[Arc<CertifiedKey>]) -> Self {
        Self(NameTable::new(keys.iter().map(|key| (Arc::clone(key), names(key)))))
    }
}

/// DNS names that a certificate is valid for.
fn names(key: &CertifiedKey) -> Vec<String> {
    let certificate = key.end_entity_cert().ok().and_then(|der| EndEntityCert::try_from(der).ok());
    certificate.map(|certificate| certificate.valid_dns_names().map(str::to_owned).collect()).unwrap_or_default()
}

impl ResolvesServerCert for CertificateResolver {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let found = self.0.find(hello.server_name());
        let can_verify = |key: &&Arc<CertifiedKey>| key.key.choose_scheme(hello.signature_schemes()).is_some();
        found.iter().find(can_verify).or(found.first()).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_specific_name_wins() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let table = NameTable::new([
            (0, names(&["example.org"])),
            (1, names(&["*.example.org"])),
            (2, names(&["API.example.org"])),
            (3, names(&["*.example.org"])),
        ]);
        for (name, expected) in [
            (Some("example.org"), &[0][..]),
            (Some("EXAMPLE.org"), &[0]),
            (Some("www.example.org"), &[1, 3]),
            (Some("api.example.org"), &[2]),
            (Some("a.b.example.org"), &[0, 1, 2, 3]),
            (Some("other.net"), &[0, 1, 2, 3]),
            (Some("org"), &[0, 1, 2, 3]),
            (None, &[0, 1, 2, 3]),
        ] {
            assert_eq!(table.find(name), expected, "{name:?}");
        }
    }
}
