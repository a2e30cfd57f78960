//! Options of the service.

use crate::number_range::check_number;
use weir_base::Nanos;
use weir_workload::delay::Delay;

/// Options of the service.
#[derive(Clone, Debug)]
pub struct Options {
    /// Seed of all random choices.
    pub seed: u64,
    /// Delay of each reply of `/echo`, from the arrival of its message.
    pub delay: Delay,
    /// Whether a reply is sent when its own delay is over, and not behind those to earlier messages.
    pub unordered: bool,
    /// Time between messages of `/push`.
    pub gap: Delay,
    /// Messages of `/push`, after which it closes with 1000; 0: without end.
    pub messages: u64,
    /// Length of a message of `/push`, in bytes.
    pub message_bytes: usize,
    /// Frames that each message is sent in.
    pub fragments: usize,
    /// Whether a ping is sent between the frames of a message.
    pub pings: bool,
    /// Subprotocols that are supported; of those that a client offers its first one is selected.
    pub subprotocols: Vec<String>,
    /// Whether compression is accepted.
    pub deflate: bool,
    /// Whether each message is compressed by itself.
    pub no_context: bool,
    /// Maximum length of a received message, in bytes; above it the connection is closed with 1009.
    pub max_message_bytes: u64,
    /// Faults.
    pub faults: WebSocketFaults,
}

/// Faults, as fractions, 0 to 1. A message has one at most: the first of these that is drawn.
#[derive(Clone, Debug, Default)]
pub struct WebSocketFaults {
    /// Upgrades that are rejected with status 503.
    pub reject: f64,
    /// Messages after which the connection ends without a close frame.
    pub cut: f64,
    /// Messages after which the connection is closed with [`Self::close_code`].
    pub close: f64,
    /// Code of these closes.
    pub close_code: u16,
    /// Messages without a reply.
    pub ignore: f64,
}

impl Options {
    /// Default length of a message of `/push`, in bytes.
    pub const DEFAULT_MESSAGE_BYTES: usize = 32;
    /// Default limit of a received message, in bytes: 16 MiB.
    pub const DEFAULT_MAX_MESSAGE_BYTES: u64 = 16 << 20;
    /// Default code of closes on purpose.
    pub const DEFAULT_CLOSE_CODE: u16 = 1011;

    /// Checks the options.
    ///
    /// # Errors
    /// First invalid option, by its flag, in one line.
    pub fn check(&self) -> Result<(), String> {
        check_number("message-bytes", self.message_bytes, 0..=1 << 20)?;
        check_number("fragments", self.fragments, 1..=1000)?;
        check_number("max-message", self.max_message_bytes, 1..=1 << 30)?;
        if !weir_websocket::close_code::CloseCode(self.faults.close_code).is_sendable() {
            let code = self.faults.close_code;
            return Err(format!(
                "invalid value '{code}' for '--close-code': a close frame cannot have it; write e.g. 1011 or 4000"
            ));
        }
        let is_token =
            |name: &String| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b',');
        match self.subprotocols.iter().find(|name| !is_token(name)) {
            Some(name) => {
                Err(format!("invalid value '{}' for '--subprotocol': write e.g. graphql-ws", name.escape_debug()))
            }
            None => Ok(()),
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            seed: 0,
            delay: Delay::Constant(Nanos::ZERO),
            unordered: false,
            gap: Delay::Constant(Nanos::from_millis(20)),
            messages: 0,
            message_bytes: Self::DEFAULT_MESSAGE_BYTES,
            fragments: 1,
            pings: false,
            subprotocols: Vec::new(),
            deflate: false,
            no_context: false,
            max_message_bytes: Self::DEFAULT_MAX_MESSAGE_BYTES,
            faults: WebSocketFaults { close_code: Self::DEFAULT_CLOSE_CODE, ..WebSocketFaults::default() },
        }
    }
}
