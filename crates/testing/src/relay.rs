//! A relay before a service whose network can be cut: connections end, and new ones are refused.

use std::io::copy;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

/// A relay; it ends when it is dropped.
#[derive(Debug)]
pub struct Relay {
    /// Where it listens, also after an outage.
    address: SocketAddr,
    to: SocketAddr,
    open: Arc<Mutex<OpenStreams>>,
    accepting: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct OpenStreams {
    is_cut: bool,
    streams: Vec<TcpStream>,
}

impl Relay {
    /// Relay to a service at HOST:PORT.
    pub fn to(address: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let own = listener.local_addr().unwrap();
        let to = address.parse().unwrap();
        let open = Arc::new(Mutex::new(OpenStreams::default()));
        let mut relay = Self { address: own, to, open, accepting: None };
        relay.accept(listener);
        relay
    }

    /// URL of a path behind it.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Begins an outage: ends all connections, and refuses new ones.
    pub fn cut(&mut self) {
        for stream in self.open(|open| {
            open.is_cut = true;
            std::mem::take(&mut open.streams)
        }) {
            let _ = stream.shutdown(Shutdown::Both);
        }
        // Wakes the thread, which closes its listener.
        let _ = TcpStream::connect(self.address);
        if let Some(accepting) = self.accepting.take() {
            accepting.join().unwrap();
        }
    }

    /// Ends an outage.
    pub fn restore(&mut self) {
        self.open(|open| open.is_cut = false);
        self.accept(TcpListener::bind(self.address).unwrap());
    }

    fn open<T>(&self, act: impl FnOnce(&mut OpenStreams) -> T) -> T {
        act(&mut self.open.lock().unwrap())
    }

    fn accept(&mut self, listener: TcpListener) {
        let (open, to) = (Arc::clone(&self.open), self.to);
        self.accepting = Some(thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let mut open = open.lock().unwrap();
                if open.is_cut {
                    break;
                }
                let Ok(service) = TcpStream::connect(to) else { continue };
                for (from, to) in [(&client, &service), (&service, &client)] {
                    let (Ok(mut from), Ok(mut to), Ok(kept)) = (from.try_clone(), to.try_clone(), from.try_clone())
                    else {
                        continue;
                    };
                    open.streams.push(kept);
                    thread::spawn(move || {
                        let _ = copy(&mut from, &mut to);
                        let _ = to.shutdown(Shutdown::Both);
                    });
                }
            }
        }));
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        if self.accepting.is_some() {
            self.cut();
        }
    }
}
