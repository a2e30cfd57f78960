//! A client that writes bytes as they are, right or wrong, and reads what comes back.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use rustix::net::sockopt::set_socket_recv_buffer_size;

use super::raw_stream::RawStream;

/// Nothing takes longer than this.
const PATIENCE: Duration = Duration::from_secs(60);

/// A connection.
#[derive(Debug)]
pub struct Raw {
    stream: RawStream,
    /// Come, and not looked at yet.
    come: Vec<u8>,
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    /// `HTTP/1.1`
    pub version: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// Without what frames it.
    pub body: Vec<u8>,
}

impl Raw {
    pub fn connect(address: &str) -> Self {
        Self::on(TcpStream::connect(address).unwrap())
    }

    pub fn on(stream: TcpStream) -> Self {
        stream.set_nodelay(true).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        Self::over(RawStream::Tcp(stream))
    }

    /// A connection to a Unix socket.
    pub fn unix(path: &Path) -> Self {
        Self::over(RawStream::Unix(UnixStream::connect(path).unwrap()))
    }

    /// A connection of any kind, as it is.
    pub(crate) fn over(stream: RawStream) -> Self {
        stream.tcp_or_unix_timeout(Some(PATIENCE));
        Self { stream, come: Vec::new() }
    }

    /// TLS of the connection, if it has it.
    pub fn tls(&self) -> &rustls::ClientConnection {
        self.stream.tls()
    }

    /// Takes as little as the system allows before it is read.
    pub fn with_a_small_buffer(self) -> Self {
        set_socket_recv_buffer_size(self.stream.file(), 4096).unwrap();
        self
    }

    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.try_send(bytes).unwrap();
    }

    /// For bytes that the other end may refuse.
    pub fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.stream.write_all(bytes.as_ref())
    }

    /// A request without a body, and its whole answer.
    pub fn get(&mut self, path: &str) -> Answer {
        self.send(format!("GET {path} HTTP/1.1\r\nHost: test\r\n\r\n"));
        self.answer()
    }

    /// A request with a body, and its whole answer.
    pub fn post(&mut self, path: &str, body: impl AsRef<[u8]>) -> Answer {
        let body = body.as_ref();
        self.send(format!("POST {path} HTTP/1.1\r\nHost: test\r\nContent-Length: {}\r\n\r\n", body.len()));
        self.send(body);
        self.answer()
    }

    /// The next answer, which is whole and not to a HEAD.
    pub fn answer(&mut self) -> Answer {
        let answer = self.head();
        match self.body(answer) {
            (answer, true) => answer,
            (answer, false) => panic!("the answer is cut after {} bytes: {:?}", answer.body.len(), answer.headers),
        }
    }

    /// The next answer, whose body ends before it should.
    pub fn cut_answer(&mut self) -> Answer {
        let answer = self.head();
        match self.body(answer) {
            (answer, false) => answer,
            (answer, true) => panic!("the answer is whole: {answer:?}"),
        }
    }

    /// The next answer, and whether it is whole.
    pub fn answer_or_cut(&mut self) -> (Answer, bool) {
        let answer = self.head();
        self.body(answer)
    }

    /// All that comes until the end, whatever the end is like, after this end has been closed.
    pub fn leftovers(mut self) -> Vec<u8> {
        self.stream.finish();
        while self.more().is_ok_and(|more| more) {}
        self.come
    }

    /// The next answer's head; its body, if it has one, comes next.
    pub fn head(&mut self) -> Answer {
        loop {
            if let Some(answer) = self.try_head() {
                return answer;
            }
            let more = self.more();
            let come = String::from_utf8_lossy(&self.come);
            assert!(matches!(more, Ok(true)), "no answer, but {more:?} after {come:?}");
        }
    }

    /// `count` bytes of what comes; fails if there are fewer.
    pub fn take(&mut self, count: usize) -> Vec<u8> {
        while self.come.len() < count {
            assert!(self.more().unwrap(), "the connection ended after {} of {count} bytes", self.come.len());
        }
        self.come.drain(..count).collect()
    }

    /// All that comes until the other end closes, in order or with a reset.
    pub fn rest(&mut self) -> Vec<u8> {
        loop {
            match self.more() {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => break,
                Err(error) => panic!("neither bytes nor a close: {error}"),
            }
        }
        std::mem::take(&mut self.come)
    }

    /// Waits for the other end's close; fails if bytes come in its place. Says whether it was a reset.
    pub fn is_reset(&mut self) -> bool {
        match self.more() {
            Ok(false) => false,
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => true,
            other => panic!("{other:?} in place of a close: {:?}", String::from_utf8_lossy(&self.come)),
        }
    }

    /// Whether the other end has closed; waits for that up to `patience`. What comes in its place is kept.
    pub fn has_ended(&mut self, patience: Duration) -> bool {
        self.stream.tcp_or_unix_timeout(Some(patience));
        let more = self.more();
        self.stream.tcp_or_unix_timeout(Some(PATIENCE));
        match more {
            Ok(more) => !more,
            Err(error) => !matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut),
        }
    }

    /// The same connection once more, for a thread that sends while this one reads.
    pub fn twin(&self) -> Self {
        Self { stream: self.stream.twin(), come: Vec::new() }
    }

    /// Says that nothing more is sent from this end.
    pub fn finish(&mut self) {
        self.stream.finish();
    }

    /// Ends the connection with a reset.
    pub fn reset(self) {
        rustix::net::sockopt::set_socket_linger(self.stream.file(), Some(Duration::ZERO)).unwrap();
    }

    /// Reads more; false at the end.
    fn more(&mut self) -> io::Result<bool> {
        let mut bytes = vec![0; 64 * 1024];
        let read = loop {
            match self.stream.read(&mut bytes) {
                // A read with a timeout ends so when this process was stopped for a while.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read?,
            }
        };
        self.come.extend_from_slice(&bytes[..read]);
        Ok(read > 0)
    }

    fn try_head(&mut self) -> Option<Answer> {
        let mut headers = [httparse::EMPTY_HEADER; 64];
        let mut head = httparse::Response::new(&mut headers);
        let parsed = head.parse(&self.come);
        let parsed = parsed.unwrap_or_else(|why| panic!("{why}: {:?}", String::from_utf8_lossy(&self.come)));
        let httparse::Status::Complete(length) = parsed else { return None };
        let text = |value: &[u8]| String::from_utf8(value.to_vec()).unwrap();
        let answer = Answer {
            status: head.code.unwrap(),
            version: format!("HTTP/1.{}", head.version.unwrap()),
            headers: head.headers.iter().map(|h| (h.name.to_ascii_lowercase(), text(h.value))).collect(),
            body: Vec::new(),
        };
        self.come.drain(..length);
        Some(answer)
    }

    /// The answer with its body, and whether that is whole.
    fn body(&mut self, mut answer: Answer) -> (Answer, bool) {
        if matches!(answer.status, 100..200 | 204 | 304) {
            return (answer, true);
        }
        if answer.header("transfer-encoding") == Some("chunked") {
            return self.chunks(answer);
        }
        let Some(length) = answer.header("content-length") else {
            answer.body = self.rest();
            return (answer, true);
        };
        let length = length.parse().unwrap();
        while self.come.len() < length && self.more().unwrap_or(false) {}
        answer.body = self.come.drain(..length.min(self.come.len())).collect();
        let whole = answer.body.len() == length;
        (answer, whole)
    }

    fn chunks(&mut self, mut answer: Answer) -> (Answer, bool) {
        loop {
            match httparse::parse_chunk_size(&self.come).unwrap() {
                httparse::Status::Complete((head, length)) => {
                    let (body, end) = (head + length as usize, head + length as usize + 2);
                    if self.come.len() >= end {
                        answer.body.extend_from_slice(&self.come[head..body]);
                        assert_eq!(self.come[body..end], *b"\r\n", "a chunk that is longer than it says");
                        self.come.drain(..end);
                        if length == 0 {
                            return (answer, true);
                        }
                        continue;
                    }
                }
                httparse::Status::Partial => {}
            }
            if !self.more().unwrap_or(false) {
                return (answer, false);
            }
        }
    }
}

impl Answer {
    /// A header's value, if it is there once.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.iter().filter(|(other, _)| other == name).map(|(_, value)| value.as_str());
        let value = values.next();
        assert_eq!(values.next(), None, "{name} comes more than once");
        value
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|why| panic!("{why}: {self:?}"))
    }
}
