//! Messages of the service, as `test.proto` has them.

use std::collections::BTreeMap;

use prost::Message;
use weir_base::Nanos;

/// Request of `Echo`, and a message of those of `Collect` and `Chat`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct EchoRequest {
    #[prost(string, tag = "1")]
    pub(super) text: String,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) payload: Vec<u8>,
    #[prost(uint32, tag = "3")]
    pub(super) reply_bytes: u32,
    #[prost(message, optional, tag = "4")]
    pub(super) delay: Option<WireDuration>,
    #[prost(message, optional, tag = "5")]
    pub(super) status: Option<WireStatus>,
    #[prost(bool, tag = "6")]
    pub(super) metadata: bool,
    #[prost(bool, tag = "7")]
    pub(super) compressed: bool,
    #[prost(enumeration = "ReplyFault", tag = "8")]
    pub(super) fault: i32,
}

/// Message of a response.
#[derive(Clone, PartialEq, Message)]
pub(super) struct EchoReply {
    #[prost(string, tag = "1")]
    pub(super) text: String,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) payload: Vec<u8>,
    #[prost(uint64, tag = "3")]
    pub(super) number: u64,
    #[prost(btree_map = "string, string", tag = "4")]
    pub(super) metadata: BTreeMap<String, String>,
}

/// Request of `List`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ListRequest {
    #[prost(uint32, tag = "1")]
    pub(super) count: u32,
    #[prost(message, optional, tag = "2")]
    pub(super) gap: Option<WireDuration>,
    #[prost(message, optional, tag = "3")]
    pub(super) echo: Option<EchoRequest>,
}

/// Response of `Collect`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct CollectReply {
    #[prost(uint64, tag = "1")]
    pub(super) messages: u64,
    #[prost(uint64, tag = "2")]
    pub(super) bytes: u64,
    #[prost(string, tag = "3")]
    pub(super) last_text: String,
}

/// `google.protobuf.Duration`.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct WireDuration {
    #[prost(int64, tag = "1")]
    pub(super) seconds: i64,
    #[prost(int32, tag = "2")]
    pub(super) nanos: i32,
}

/// `google.rpc.Status`.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct WireStatus {
    #[prost(int32, tag = "1")]
    pub(super) code: i32,
    #[prost(string, tag = "2")]
    pub(super) message: String,
    /// Messages of `google.protobuf.Any`, as bytes.
    #[prost(bytes = "vec", repeated, tag = "3")]
    pub(super) details: Vec<Vec<u8>>,
}

/// What is wrong with a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub(super) enum ReplyFault {
    None = 0,
    LengthTooLong = 1,
    LengthOf4Gib = 2,
    CompressedWithoutEncoding = 3,
    InvalidFlag = 4,
    InvalidMessage = 5,
    Reset = 6,
    ResetAfterMessage = 7,
    TrailersOnly = 8,
    NoTrailers = 9,
    NoStatus = 10,
    NoMessage = 11,
    TwoMessages = 12,
    Http503 = 13,
    Page = 14,
}

impl WireDuration {
    /// The time; none for a negative one.
    pub(super) fn time(self) -> Nanos {
        let seconds = u64::try_from(self.seconds).unwrap_or_default();
        Nanos(seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(self.nanos).unwrap_or_default()))
    }
}
