//! Identity of a client, from its certificate.

use rustls::pki_types::CertificateDer;
use webpki::EndEntityCert;

use super::distinguished_name::DistinguishedName;

/// Identity of a client by its certificate, which is verified.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientIdentity {
    /// Subject as text (RFC 4514), the most specific part first: `CN=billing,O=Example`. Empty if it has none.
    pub subject: String,
    /// The subject's common name.
    pub common_name: Option<String>,
    /// Subject alternative names: DNS names, then URIs (`spiffe://...`), each in the certificate's order.
    pub alternative_names: Vec<String>,
}

impl ClientIdentity {
    /// The identity in a certificate; None if the certificate is malformed.
    pub(crate) fn of(certificate: &CertificateDer<'_>) -> Option<Self> {
        let parsed = EndEntityCert::try_from(certificate).ok()?;
        let subject = DistinguishedName::parse(parsed.subject())?;
        let alternative_names = parsed.valid_dns_names().chain(parsed.valid_uri_names()).map(str::to_owned).collect();
        Some(Self {
            subject: subject.to_string(),
            common_name: subject.common_name().map(str::to_owned),
            alternative_names,
        })
    }
}
