//! The recorder's own certificate authority: made on first use, kept in a folder of the user.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chrono::{DateTime, Datelike, Days, NaiveDate};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PublicKeyData, date_time_ymd,
};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::error::RecordError;

/// Name of the file with the certificate, which clients trust.
const CERTIFICATE_FILE: &str = "ca.pem";
/// Name of the file with the private key.
const KEY_FILE: &str = "ca-key.pem";
/// Validity of the authority, in days.
const CA_DAYS: u64 = 3650;
/// Validity of a host's certificate, in days: browsers reject those of more than 398.
const LEAF_DAYS: u64 = 300;
/// Days before today from which certificates are valid, for clients whose clocks are late.
const LEEWAY_DAYS: u64 = 2;

/// Local certificate authority that signs certificates of the recorded hosts.
pub(crate) struct CertificateAuthority {
    issuer: Issuer<'static, KeyPair>,
    certificate: CertificateDer<'static>,
    pem: String,
    path: PathBuf,
}

impl std::fmt::Debug for CertificateAuthority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CertificateAuthority").field("path", &self.path).finish_non_exhaustive()
    }
}

impl CertificateAuthority {
    /// Reads the authority of a folder, or makes it.
    ///
    /// # Errors
    /// [`RecordError::Authority`] with the file and the reason.
    pub(crate) fn open(folder: &Path, today: NaiveDate) -> Result<Self, RecordError> {
        let failed = |path: &Path, error: io::Error| RecordError::Authority(path.to_owned(), error.to_string());
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(|error| failed(folder, error))?;
        let (key_path, path) = (folder.join(KEY_FILE), folder.join(CERTIFICATE_FILE));
        let invalid = |path: &Path, why: &str| RecordError::Authority(path.to_owned(), why.to_owned());
        let key = match fs::read_to_string(&key_path) {
            Ok(pem) => {
                let mode = fs::metadata(&key_path).map_err(|error| failed(&key_path, error))?.permissions().mode();
                if mode & 0o077 != 0 {
                    let path = key_path.display();
                    let why = format!("others can read this private key; chmod 600 {path}, or remove it for a new one");
                    return Err(invalid(&key_path, &why));
                }
                KeyPair::from_pem(&pem).map_err(|_| invalid(&key_path, "not a private key; remove it for a new one"))?
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let key = KeyPair::generate().map_err(|error| invalid(&key_path, &error.to_string()))?;
                write_new(&key_path, &key.serialize_pem(), 0o600).map_err(|error| failed(&key_path, error))?;
                // Of two recorders that start together, the first one's key is taken.
                let pem = fs::read_to_string(&key_path).map_err(|error| failed(&key_path, error))?;
                KeyPair::from_pem(&pem).map_err(|_| invalid(&key_path, "not a private key; remove it for a new one"))?
            }
            Err(error) => return Err(failed(&key_path, error)),
        };
        let params = authority_params(&key, today);
        let pem = match fs::read_to_string(&path) {
            Ok(pem) => pem,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let made = params.self_signed(&key).map_err(|error| invalid(&path, &error.to_string()))?;
                write_new(&path, &made.pem(), 0o644).map_err(|error| failed(&path, error))?;
                fs::read_to_string(&path).map_err(|error| failed(&path, error))?
            }
            Err(error) => return Err(failed(&path, error)),
        };
        let certificate = CertificateDer::from_pem_slice(pem.as_bytes())
            .map_err(|_| invalid(&path, "not a certificate; remove it for a new one"))?;
        let public_key = key.der_bytes();
        if !certificate.windows(public_key.len()).any(|window| window == public_key) {
            return Err(invalid(&path, "not the certificate of ca-key.pem beside it; remove both for new ones"));
        }
        Ok(Self { issuer: Issuer::new(params, key), certificate, pem, path })
    }

    /// Certificate, which clients have to trust.
    pub(crate) fn pem(&self) -> &str {
        &self.pem
    }

    /// Path of the certificate.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// TLS for clients of a host, by a certificate that is made now.
    ///
    /// # Errors
    /// Reason why the name cannot have a certificate.
    pub(crate) fn server_config(&self, host: &str, today: NaiveDate) -> Result<Arc<ServerConfig>, String> {
        let mut params = CertificateParams::new(vec![host.to_owned()]).map_err(|error| error.to_string())?;
        params.distinguished_name = DistinguishedName::new();
        // Longer ones are not allowed; clients look at the alternative name.
        params.distinguished_name.push(DnType::CommonName, host.chars().take(64).collect::<String>());
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        set_validity(&mut params, today, LEAF_DAYS);
        // A key of its own: the serial number comes from it, and browsers reject one that they have seen elsewhere.
        let key = KeyPair::generate().map_err(|error| error.to_string())?;
        let made = params.signed_by(&key, &self.issuer).map_err(|error| error.to_string())?;
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?;
        let chain = vec![made.der().clone(), self.certificate.clone()];
        let mut config =
            builder.with_no_client_auth().with_single_cert(chain, key).map_err(|error| error.to_string())?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}

/// Parameters of the authority: those of its key but for the dates, so that the certificate is not parsed.
fn authority_params(key: &KeyPair, today: NaiveDate) -> CertificateParams {
    let mut params = CertificateParams::default();
    let id: String = params.key_identifier(key).iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    params.distinguished_name = DistinguishedName::new();
    // With a part of the key, so that two machines' authorities are not taken for one another.
    params.distinguished_name.push(DnType::CommonName, format!("weir record {id}"));
    params.distinguished_name.push(DnType::OrganizationName, "weir");
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    set_validity(&mut params, today, CA_DAYS);
    params
}

/// Date of a time since 1970.
pub(crate) fn date(unix_s: i64) -> NaiveDate {
    DateTime::from_timestamp(unix_s, 0).unwrap_or_default().date_naive()
}

fn before(date: NaiveDate, days: u64) -> NaiveDate {
    date.checked_sub_days(Days::new(days)).unwrap_or(date)
}

fn after(date: NaiveDate, days: u64) -> NaiveDate {
    date.checked_add_days(Days::new(days)).unwrap_or(date)
}

/// Makes a certificate valid from some days before today.
fn set_validity(params: &mut CertificateParams, today: NaiveDate, days: u64) {
    let month_and_day =
        |date: NaiveDate| (u8::try_from(date.month()).unwrap_or(1), u8::try_from(date.day()).unwrap_or(1));
    let (from, until) = (before(today, LEEWAY_DAYS), after(today, days));
    let (month, day) = month_and_day(from);
    params.not_before = date_time_ymd(from.year(), month, day);
    let (month, day) = month_and_day(until);
    params.not_after = date_time_ymd(until.year(), month, day);
}

/// Writes a file, unless there is one: whole or not at all.
fn write_new(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    let partial = path.with_extension(format!("{}.partial", std::process::id()));
    let mut file = File::options().write(true).create(true).truncate(true).mode(mode).open(&partial)?;
    let written = file.write_all(text.as_bytes()).and_then(|()| fs::hard_link(&partial, path));
    let removed = fs::remove_file(&partial);
    match written {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => removed,
        written => written.and(removed),
    }
}
