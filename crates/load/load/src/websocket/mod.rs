//! Messages over WebSocket: what a load asks for, and what a connection has of it.
//!
//! - [`options`]: as given
//! - `message_plan`: the same, validated: the upgrade's request, and the messages
//! - `conversation`: one connection for a person, with all that comes on it
//! - `exchange`: one connection: its upgrade, its frames, its messages in flight
//! - `message_renderer`: messages with templates
//! - `reply_query`: part of a message that its reply repeats
//! - `upgrade_probe`: whether a service speaks WebSocket, before the load
//! - `upgrade_response`: the response to an upgrade, read in pieces
//! - `user_socket`: a connection that a user of a program holds

mod conversation;
mod exchange;
mod message_plan;
mod message_renderer;
pub mod options;
mod reply_query;
mod upgrade_probe;
mod upgrade_response;
mod user_socket;

pub use self::conversation::{ConversationPart, converse};
pub(crate) use self::exchange::{ConnectionOpening, HeardMessages, SentMessage, WebSocketExchange};
pub use self::message_plan::is_websocket_url;
pub use self::message_plan::{MessagePlan, PlannedMessage};
pub(crate) use self::message_plan::{http_url, opcode_of};
pub(crate) use self::message_renderer::MessageRenderer;
pub use self::options::{DeflateChoice, WebSocketOptions};
pub(crate) use self::upgrade_probe::{UpgradeRejection, unanswered, upgrade_once};
pub(crate) use self::upgrade_response::UpgradeResponse;
pub(crate) use self::user_socket::{AwaitedReply, UserSocket};
