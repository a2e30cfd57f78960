//! Certificates of clients of gRPC, once for all users.

use std::sync::{Arc, Mutex};

use weir_machine::lock::lock;
use weir_net::tls::{PemTexts, Tls, TlsOptions};

/// Checks that texts have certificates, and a key that fits.
///
/// # Errors
/// One line: the text, and what is wrong with it.
pub(crate) fn check(texts: &PemTexts) -> Result<(), String> {
    // Those of the system are looked for when a connection needs them.
    let options = TlsOptions { insecure: texts.cacerts.is_empty(), ..TlsOptions::default() };
    Tls::with_texts("localhost", &options, texts).map(drop).map_err(|error| error.to_string())
}

/// Certificates of clients of gRPC by their numbers, from 1; those of the load are 0.
#[derive(Debug, Default)]
pub(crate) struct SharedChannels(Mutex<Vec<Arc<PemTexts>>>);

impl SharedChannels {
    /// Number of certificates.
    ///
    /// # Errors
    /// One line: a text that has none, or a key that does not fit.
    pub(crate) fn add(&self, texts: PemTexts) -> Result<u32, String> {
        let mut all = lock(&self.0);
        let at = match all.iter().position(|known| **known == texts) {
            Some(at) => at,
            None => {
                check(&texts)?;
                all.push(Arc::new(texts));
                all.len() - 1
            }
        };
        u32::try_from(at + 1).map_err(|_| "too many certificates".to_owned())
    }

    /// Certificates of a number; `None` for those of the load.
    pub(crate) fn get(&self, number: u32) -> Option<Arc<PemTexts>> {
        lock(&self.0).get((number as usize).checked_sub(1)?).map(Arc::clone)
    }
}
