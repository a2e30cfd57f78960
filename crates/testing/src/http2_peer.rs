//! A peer that speaks HTTP/2 frame by frame, so that it can announce anything.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

/// Behaviour of a peer on each connection.
#[derive(Clone, Debug, Default)]
pub struct Http2Manner {
    /// Frames that it begins with: its settings.
    pub greeting: Vec<u8>,
    /// Whether it acknowledges the client's settings.
    pub acknowledges: bool,
    /// Whether it responds to requests, each with status 200 and no body.
    pub responds: bool,
    /// Frames behind each response.
    pub after_response: Vec<u8>,
    /// Whether it closes the connection behind its greeting.
    pub closes: bool,
}

/// A running peer; it ends when it is dropped.
pub struct Http2Peer {
    address: SocketAddr,
    connections: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
}

/// Length of the preface of a client, in bytes.
const PREFACE_BYTES: usize = 24;
const END_STREAM: u8 = 1;
const ACK: u8 = 1;
/// END_HEADERS and END_STREAM.
const WHOLE_RESPONSE: u8 = 5;

/// A frame.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// A SETTINGS frame.
pub fn settings(pairs: &[(u16, u32)]) -> Vec<u8> {
    let payload: Vec<u8> =
        pairs.iter().flat_map(|(id, value)| [&id.to_be_bytes()[..], &value.to_be_bytes()].concat()).collect();
    frame(4, 0, 0, &payload)
}

/// A GOAWAY frame without an error.
pub fn goaway(last_stream: u32) -> Vec<u8> {
    frame(7, 0, 0, &[last_stream.to_be_bytes(), [0; 4]].concat())
}

impl Http2Peer {
    pub fn start(manner: Http2Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (connections, is_over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (count, ends) = (Arc::clone(&connections), Arc::clone(&is_over));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if ends.load(Ordering::Acquire) {
                    return;
                }
                count.fetch_add(1, Ordering::Relaxed);
                let manner = manner.clone();
                // The end of a connection is the client's.
                thread::spawn(move || drop(speak(stream, &manner)));
            }
        });
        Self { address, connections, is_over }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Number of connections so far.
    pub fn connections(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }
}

impl Drop for Http2Peer {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        // It looks once it has accepted something.
        drop(TcpStream::connect(self.address));
    }
}

fn speak(mut stream: TcpStream, manner: &Http2Manner) -> io::Result<()> {
    let mut preface = [0; PREFACE_BYTES];
    stream.read_exact(&mut preface)?;
    stream.write_all(&manner.greeting)?;
    if manner.closes {
        return Ok(());
    }
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head)?;
        let [a, b, c, kind, flags, stream_bytes @ ..] = head;
        let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
        stream.read_exact(&mut payload)?;
        let id = u32::from_be_bytes(stream_bytes);
        match kind {
            4 if flags & ACK == 0 && manner.acknowledges => stream.write_all(&frame(4, ACK, 0, &[]))?,
            6 if flags & ACK == 0 => stream.write_all(&frame(6, ACK, 0, &payload))?,
            0 | 1 if flags & END_STREAM != 0 && manner.responds => {
                // `:status: 200` of the static table.
                let response = frame(1, WHOLE_RESPONSE, id, &[0x88]);
                stream.write_all(&[&response[..], &manner.after_response].concat())?;
            }
            _ => {}
        }
    }
}
