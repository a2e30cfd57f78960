//! Conversation over one connection, for a person: its messages, and all that the service sends.

use std::io::{self, IoSlice};

use super::message_plan::{MAX_MESSAGE_BYTES, MessagePlan};
use super::message_renderer::MessageRenderer;
use super::upgrade_probe::{unanswered, upgrade};
use super::{UpgradeRejection, opcode_of};
use crate::plan::LoadPlan;
use crate::probe::{Wait, connect_plan};
use crate::{LoadError, ProgressCallback};
use weir_base::Nanos;
use weir_net::stream::Stream;
use weir_websocket::close_code::CloseCode;
use weir_websocket::close_handshake::{CloseHandshake, CloseStep};
use weir_websocket::deflate::Inflater;
use weir_websocket::frame::{Endpoint, Opcode};
use weir_websocket::frame_writer::FrameWriter;
use weir_websocket::message_reader::{Received, WebSocketReader};
use weir_websocket::violation::Violation;

/// Part of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConversationPart<'a> {
    /// The connection is open, with this subprotocol.
    Opened(Option<&'a str>),
    /// Message of the client: text, or binary.
    Sent(bool, &'a [u8]),
    /// Message of the service: text, or binary.
    Received(bool, &'a [u8]),
    /// Ping of the service, which gets its pong.
    Ping(&'a [u8]),
    /// Close frame of the client.
    SentClose(CloseCode),
    /// Close frame of the service: its code, and its reason.
    ReceivedClose(CloseCode, &'a str),
    /// End of the connection without a close frame of the service.
    Ended,
    /// Breach of the protocol by the service.
    Violation(Violation),
}

/// Sends the messages of a plan, each once, and reports what comes until the service closes, or the plan's timeout is
/// over; whether it ended as it should.
///
/// # Errors
/// The service cannot be reached, or does not speak WebSocket there.
pub fn converse(
    plan: &LoadPlan,
    watch: &mut ProgressCallback<'_>,
    tell: &mut dyn FnMut(&ConversationPart<'_>),
) -> Result<bool, LoadError> {
    let Some(messages) = &plan.messages else { return Ok(true) };
    let rejected = |why: String| LoadError::Upgrade(plan.shown_url(), why);
    let (mut stream, mut wait) = connect_plan(plan, watch)?;
    let upgraded =
        upgrade(&mut stream, messages, (plan.seed, 0), &mut || wait.next()).map_err(|error| match error.kind() {
            io::ErrorKind::Interrupted => LoadError::Interrupted,
            io::ErrorKind::TimedOut => rejected(unanswered(plan.timeout).to_string()),
            _ => rejected(error.to_string()),
        })?;
    let (agreement, rest) = upgraded.map_err(|error| rejected(UpgradeRejection::of_handshake(&error).to_string()))?;
    tell(&ConversationPart::Opened(agreement.subprotocol.as_deref()));
    let mut conversation = ClientConversation::new(&mut stream, plan.seed);
    if let Some(deflate) = agreement.deflate {
        conversation.reader.set_inflater(Inflater::new(!deflate.server_no_context));
    }
    for (text, data) in planned(plan, messages) {
        let data = data.map_err(|why| rejected(format!("a message cannot be rendered: {why}")))?;
        conversation.send(&data, text, tell);
    }
    conversation.listen(rest, &mut wait, tell).or_else(|error| match error.kind() {
        io::ErrorKind::Interrupted => Ok(true),
        _ => {
            tell(&ConversationPart::Ended);
            Ok(false)
        }
    })
}

/// Messages of a plan, each once and with its kind.
fn planned(plan: &LoadPlan, messages: &MessagePlan) -> Vec<(Opcode, Result<Vec<u8>, String>)> {
    let first = messages.first_messages.iter().chain(&messages.messages);
    let mut all: Vec<_> = first.map(|message| (message.opcode, Ok(message.data.clone()))).collect();
    if let Some(mix) = &messages.templates {
        let mut renderer = MessageRenderer::new(mix, plan.seed, None);
        let count = mix.scenarios.len() as u64;
        all.extend((0..count.max(1)).map(|number| {
            let mut text = Vec::new();
            let rendered = renderer.render(0, number, Nanos::ZERO, &mut text);
            (opcode_of(&text, messages.is_binary), rendered.map(|()| text))
        }));
    }
    all
}

/// Open connection of a conversation.
struct ClientConversation<'s> {
    stream: &'s mut Stream,
    reader: WebSocketReader,
    writer: FrameWriter,
    close: CloseHandshake,
    /// Bytes to write.
    out: Vec<u8>,
}

impl<'s> ClientConversation<'s> {
    fn new(stream: &'s mut Stream, seed: u64) -> Self {
        Self {
            stream,
            reader: WebSocketReader::new(Endpoint::Client, MAX_MESSAGE_BYTES),
            writer: FrameWriter::new(Endpoint::Client, seed),
            close: CloseHandshake::default(),
            out: Vec::new(),
        }
    }

    fn send(&mut self, data: &[u8], opcode: Opcode, tell: &mut dyn FnMut(&ConversationPart<'_>)) {
        self.writer.write(opcode, data, &mut self.out);
        tell(&ConversationPart::Sent(opcode == Opcode::Text, data));
    }

    /// Reads until the end; whether that is as it should be.
    fn listen(
        &mut self,
        rest: Vec<u8>,
        wait: &mut Wait<'_, '_>,
        tell: &mut dyn FnMut(&ConversationPart<'_>),
    ) -> io::Result<bool> {
        let mut buffer = vec![0; 64 * 1024];
        let mut received = rest;
        loop {
            let mut rest = received.as_slice();
            if let Some(is_good) = self.take(&mut rest, tell) {
                // What is left to write is the close frame; without room for it the connection ends without it.
                let _ = self.write();
                return Ok(is_good);
            }
            self.write()?;
            let read = loop {
                let waited = match self.stream.read(&mut buffer) {
                    Ok(read) => match wait.check() {
                        Ok(()) => break read.bytes,
                        over => over,
                    },
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => wait.next(),
                    Err(error) => return Err(error),
                };
                match waited {
                    Ok(()) => self.write()?,
                    // The time is over, as asked for.
                    Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                        self.close.sent(Some(CloseCode::NORMAL));
                        self.writer.write_close(Some(CloseCode::NORMAL), "", &mut self.out);
                        tell(&ConversationPart::SentClose(CloseCode::NORMAL));
                        let _ = self.write();
                        return Ok(true);
                    }
                    Err(error) => return Err(error),
                }
            };
            if read == 0 {
                tell(&ConversationPart::Ended);
                return Ok(false);
            }
            received = buffer[..read].to_vec();
        }
    }

    /// Takes what has come; whether the conversation has ended as it should, if it has ended.
    fn take(&mut self, rest: &mut &[u8], tell: &mut dyn FnMut(&ConversationPart<'_>)) -> Option<bool> {
        loop {
            match self.reader.next_message(rest) {
                Ok(None) => return None,
                Ok(Some(Received::Message(message))) => {
                    tell(&ConversationPart::Received(message.is_text, message.data));
                }
                Ok(Some(Received::Ping(data))) => {
                    self.writer.write(Opcode::Pong, data, &mut self.out);
                    tell(&ConversationPart::Ping(data));
                }
                Ok(Some(Received::Pong(_))) => {}
                Ok(Some(Received::Close(code, reason))) => {
                    if let CloseStep::Reply(reply) = self.close.receive(code) {
                        self.writer.write_close(reply, "", &mut self.out);
                    }
                    let code = self.close.peer_code();
                    tell(&ConversationPart::ReceivedClose(code, reason));
                    return Some(code.is_regular());
                }
                Err(violation) => {
                    self.writer.write_close(Some(violation.close_code()), "", &mut self.out);
                    tell(&ConversationPart::Violation(violation));
                    return Some(false);
                }
            }
        }
    }

    /// Writes as much as the socket accepts.
    fn write(&mut self) -> io::Result<()> {
        while !self.out.is_empty() {
            match self.stream.write(&[IoSlice::new(&self.out)]) {
                Ok(bytes) => drop(self.out.drain(..bytes)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        self.stream.flush()
    }
}
