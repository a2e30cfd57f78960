//! The loop: accepts, reads, answers, in one thread with one `read` and one `write` per batch of requests.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::io::{Errno, read};
use rustix::net::{self, AddressFamily, SocketFlags, SocketType, sockopt};
use rustix::process::{Resource, getrlimit, setrlimit};
use rustix::time::Timespec;

use crate::behaviour::{Answer, Behaviour, Ticket};
use crate::clock::{self, Nanos};
use crate::connection::{Arrival, Connection};
use crate::streams;

const ANSWER: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 38\r\nConnection: keep-alive\r\n\r\n\
    The river does not wait for the dam.\r\n";
/// Content of the answer.
pub const BODY: &[u8] = b"The river does not wait for the dam.\r\n";
const BATCH: usize = 64; // answers in one write
const BUFFER: usize = 64 * 1024;
const EVENTS: usize = 1024;
const BACKLOG: i32 = 65_535; // the kernel cuts it to its own limit

pub struct Server<B> {
    behaviour: B,
    epoll: OwnedFd,
    listener: OwnedFd,
    connections: Vec<Option<Connection>>, // by descriptor
    generation: u64,
    requests: u64,
    spin: bool,
    answers: Vec<u8>, // BATCH times ANSWER
}

impl<B: Behaviour> Server<B> {
    /// Listens on 127.0.0.1 and tells the port.
    pub fn bind(behaviour: B, port: u16, spin: bool) -> io::Result<(Self, u16)> {
        clock::be_exact();
        raise_file_limit();
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let listener = net::socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
        sockopt::set_socket_reuseaddr(&listener, true)?;
        net::bind(&listener, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, port))?;
        net::listen(&listener, BACKLOG)?;
        let port = SocketAddrV4::try_from(net::getsockname(&listener)?)?.port();
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &listener, data(&listener), EventFlags::IN)?;
        let answers = ANSWER.repeat(BATCH);
        let connections = Vec::new();
        Ok((Self { behaviour, epoll, listener, connections, generation: 0, requests: 0, spin, answers }, port))
    }

    /// Serves until the process ends.
    pub fn run(&mut self) -> io::Result<()> {
        let mut events: Vec<Event> = Vec::with_capacity(EVENTS);
        let mut buffer = vec![0; BUFFER];
        let listener = data(&self.listener).u64();
        loop {
            events.clear();
            match epoll::wait(&self.epoll, spare_capacity(&mut events), self.patience().as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            if B::TIMED {
                // Asked after the wait, so that what came while frozen is not looked at before the thaw.
                if let Some(until) = self.behaviour.frozen_until(clock::now()) {
                    clock::sleep_until(until);
                }
                self.answer_due();
            }
            for event in &events {
                let (mark, flags) = (event.data.u64(), event.flags);
                if mark == listener {
                    self.accept()?;
                } else {
                    self.serve(mark as usize, flags, &mut buffer);
                }
            }
        }
    }

    /// How long the next wait may last, to the nanosecond; None is until something happens.
    fn patience(&self) -> Option<Timespec> {
        if self.spin {
            return Some(clock::timespec(0));
        }
        if !B::TIMED {
            return None;
        }
        self.behaviour.idle(clock::now()).map(clock::timespec)
    }

    fn answer_due(&mut self) {
        while let Some(ticket) = self.behaviour.due(clock::now()) {
            let Some(Some(connection)) = self.connections.get_mut(ticket.descriptor) else { continue };
            if connection.generation != ticket.generation {
                continue;
            }
            let sent = match ticket.stream {
                0 => connection.send(ANSWER),
                stream => connection.send(&streams::answer(stream)),
            };
            if sent.is_err() {
                self.connections[ticket.descriptor] = None;
            }
        }
    }

    fn accept(&mut self) -> io::Result<()> {
        loop {
            let socket = match net::accept_with(&self.listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
                Ok(socket) => socket,
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR | Errno::CONNABORTED) => continue,
                Err(error) => return Err(error.into()),
            };
            sockopt::set_tcp_nodelay(&socket, true)?;
            // Registered once for everything that can happen, edge-triggered: no epoll_ctl afterwards.
            let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
            epoll::add(&self.epoll, &socket, data(&socket), flags)?;
            let index = data(&socket).u64() as usize;
            if index >= self.connections.len() {
                self.connections.resize_with(index + 1, || None);
            }
            self.generation += 1;
            self.connections[index] = Some(Connection::new(socket, self.generation));
        }
    }

    /// Handles one event; a connection that is at its end is dropped, which closes it.
    fn serve(&mut self, index: usize, flags: EventFlags, buffer: &mut [u8]) {
        let Some(mut connection) = self.connections.get_mut(index).and_then(Option::take) else { return };
        let ending = flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR);
        if connection.flush().is_err() {
            return;
        }
        loop {
            match read(&connection.socket, &mut *buffer) {
                Ok(0) => return,
                Ok(got) => {
                    if self.answer(&mut connection, index, &buffer[..got]).is_err() {
                        return;
                    }
                    // A short read empties the socket, unless its end is still to be read.
                    if got < buffer.len() && !ending {
                        break;
                    }
                }
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(_) => return,
            }
        }
        self.connections[index] = Some(connection);
    }

    /// Answers every request that `bytes` completes: as many as possible with one write.
    fn answer(&mut self, connection: &mut Connection, descriptor: usize, bytes: &[u8]) -> Result<(), Errno> {
        let ticket = Ticket { descriptor, generation: connection.generation, stream: 0 };
        let now: Nanos = if B::TIMED { clock::now() } else { 0 };
        let mut count = 0; // to be answered now
        let mut asked = Vec::new(); // allocates only for the server's own paths
        let mut frames = Vec::new(); // allocates only with HTTP/2
        connection.requests(bytes, |arrival| match arrival {
            Arrival::Head(head) if head.starts_with(b"GET /_") => {
                asked.push(String::from_utf8_lossy(head).into_owned());
            }
            Arrival::Head(_) => {
                self.requests += 1;
                count += usize::from(self.behaviour.arrived(now, ticket) == Answer::Now);
            }
            Arrival::Stream(stream) => {
                self.requests += 1;
                if self.behaviour.arrived(now, Ticket { stream, ..ticket }) == Answer::Now {
                    frames.extend(streams::answer(stream));
                }
            }
            Arrival::Reply(frame) => frames.extend(frame),
        });
        if !frames.is_empty() {
            connection.send(&frames)?;
        }
        while count > 0 {
            let batch = count.min(BATCH);
            connection.send(&self.answers[..batch * ANSWER.len()])?;
            count -= batch;
        }
        for head in asked {
            let body = self.own(&head);
            let response = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
            connection.send(response.as_bytes())?;
        }
        Ok(())
    }

    /// What the server says about itself, as JSON.
    fn own(&mut self, head: &str) -> String {
        let path = head.split(' ').nth(1).unwrap_or_default();
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        match path {
            "/_arrivals" => {
                let rate = query.split('&').find_map(|pair| pair.strip_prefix("rate=")?.parse().ok());
                self.behaviour.arrivals(rate)
            }
            "/_reset" => {
                self.requests = 0;
                self.behaviour.reset();
                "{}".to_owned()
            }
            _ => format!("{{\"requests\":{}{}}}", self.requests, self.behaviour.stats()),
        }
    }
}

/// A descriptor marks its own events.
fn data(socket: &OwnedFd) -> EventData {
    EventData::new_u64(u64::from(socket.as_raw_fd().unsigned_abs()))
}

/// Asks for as many open files as the system allows.
fn raise_file_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // With fewer, the server takes as many connections as it may, and `accept` says when there are no more.
    let _ = setrlimit(Resource::Nofile, limit);
}
