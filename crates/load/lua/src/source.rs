//! Script as given, and the request options of its command line.

use std::str::FromStr;
use std::time::Duration;

use weir_net::target::{SocketAddress, Target};

/// Script with its arguments, and the method, headers and body that the command line gives its requests.
#[derive(Clone, Debug)]
pub struct ScriptSource {
    /// Name of the file, for messages.
    pub name: String,
    /// Text.
    pub text: Vec<u8>,
    /// Arguments of `init`, after the URL.
    pub args: Vec<String>,
    /// URL as given.
    pub url: String,
    /// Parts of the URL.
    pub target: Target,
    /// Addresses of the target, in order of preference.
    pub addresses: Vec<SocketAddress>,
    /// Method: `wrk.method`.
    pub method: String,
    /// Headers: `wrk.headers`.
    pub headers: Vec<(String, String)>,
    /// Body: `wrk.body`.
    pub body: Option<Vec<u8>>,
    /// Seed of `math.random`; 0 leaves it as LuaJIT has it.
    pub seed: u64,
    /// Consequence of an error of the script during the load.
    pub errors: ScriptErrors,
    /// Maximum duration of a call during the load.
    pub timeout: Duration,
}

/// Consequence of a script's error during the load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ScriptErrors {
    /// The run ends.
    #[default]
    Stop,
    /// The iteration has failed, and the load goes on.
    Count,
}

impl FromStr for ScriptErrors {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "stop" => Ok(Self::Stop),
            "count" => Ok(Self::Count),
            other => Err(format!("unknown policy '{}'; choose stop or count", other.escape_debug())),
        }
    }
}

impl ScriptSource {
    /// Name in results: `shop` of `tests/shop.lua`.
    pub(crate) fn stem(&self) -> &str {
        let file = self.name.rsplit('/').next().unwrap_or(&self.name);
        file.strip_suffix(".lua").unwrap_or(file)
    }
}
