//! Place of the keys that processes share, as text.

use std::path::{Path, PathBuf};

use weir_redis::RedisAddress;

use super::trouble::StoreTrouble;

/// Place of shared keys.
#[derive(Clone, Debug)]
pub enum SharedPlace {
    /// Memory: the threads and tasks of one process.
    Memory,
    /// A folder: the processes of one machine.
    Folder(PathBuf),
    /// A Redis server, and the name of the limiter there: machines.
    Redis(RedisAddress, String),
}

/// Name of a limiter on a Redis server.
const DEFAULT_NAME: &str = "default";
/// Maximum length of a name.
const MAX_NAME: usize = 100;

impl SharedPlace {
    /// Parses the path of a folder, or `redis://HOST:PORT/DB?name=NAME`.
    ///
    /// # Errors
    /// One line of text, without a password.
    pub fn read(path: &Path) -> Result<Self, StoreTrouble> {
        let Some(text) = path.to_str().filter(|text| RedisAddress::is_address(text)) else {
            let is_empty = path.as_os_str().is_empty();
            let why = || StoreTrouble::Unusable("invalid shared '': empty; give a path or redis://HOST:PORT".into());
            return if is_empty { Err(why()) } else { Ok(Self::Folder(path.to_owned())) };
        };
        let wrong = |why: String| StoreTrouble::Unusable(format!("{}: {why}", RedisAddress::redact(text)));
        let (server, more) = RedisAddress::parse(text).map_err(wrong)?;
        let mut name = DEFAULT_NAME.to_owned();
        for (parameter, value) in more {
            match parameter.as_str() {
                "name" => name = value,
                _ => return Err(wrong(format!("unknown parameter '{parameter}'; choose name"))),
            }
        }
        let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(is_word) {
            let form = "not a word of letters, digits, '-', '_' and '.'; write e.g. orders";
            return Err(wrong(format!("invalid name '{name}': {form}")));
        }
        Ok(Self::Redis(server, name))
    }

    /// The place without user and password.
    pub fn redacted(&self) -> String {
        match self {
            Self::Memory => "memory".to_owned(),
            Self::Folder(path) => path.display().to_string(),
            Self::Redis(server, _) => server.redacted().to_owned(),
        }
    }

    /// Whether a look takes a round trip over a network.
    pub fn is_remote(&self) -> bool {
        matches!(self, Self::Redis(..))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_folder_or_a_server() {
        assert!(matches!(SharedPlace::read(Path::new("limits.db")), Ok(SharedPlace::Folder(_))));
        let place = SharedPlace::read(Path::new("redis://me:secret@host:7000/2?name=orders")).unwrap();
        assert_eq!(place.redacted(), "redis://host:7000/2?name=orders");
        assert!(matches!(place, SharedPlace::Redis(_, name) if name == "orders"));
        for (text, why) in [
            ("", "give a path"),
            ("redis://a:secret@host?name=a b", "invalid name 'a b'"),
            ("redis://a:secret@host?queue=a", "unknown parameter 'queue'; choose name"),
            ("redis://a:secret@host:no", "write redis://HOST:PORT"),
        ] {
            let error = SharedPlace::read(Path::new(text)).unwrap_err().to_string();
            assert!(error.contains(why) && !error.contains("secret") && error.lines().count() == 1, "{text}: {error}");
        }
    }
}
