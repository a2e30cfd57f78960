//! Thread that reads the certificates of listeners again when their files have changed.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use weir_machine::logger::Logger;
use weir_server::tls::ServerTls;

/// Interval of looking at the files. Notices of the kernel would be earlier, and are missing where files come by a
/// network or by a symbolic link that is replaced, as in Kubernetes.
const WATCH_INTERVAL: Duration = Duration::from_secs(1);

/// The running thread; it ends when this is dropped.
#[derive(Debug)]
pub(super) struct CertificateWatch {
    stop: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl CertificateWatch {
    /// Starts the thread for these listeners, by their names.
    ///
    /// # Errors
    /// The system has no thread left.
    pub(super) fn start(listeners: Vec<(String, Arc<ServerTls>)>, logger: Logger) -> io::Result<Self> {
        let (stop, stopped) = sync_channel(0);
        let thread = thread::Builder::new().name("certificates".to_owned()).spawn(move || {
            while stopped.recv_timeout(WATCH_INTERVAL) == Err(RecvTimeoutError::Timeout) {
                for (name, tls) in &listeners {
                    match tls.reload_if_changed() {
                        Ok(false) => {}
                        Ok(true) => logger.log(&format!("listener {name}: certificates reloaded")),
                        Err(error) => {
                            logger.log(&format!(
                                "listener {name}: certificates not reloaded: {error}; the old ones stay"
                            ));
                        }
                    }
                }
            }
        })?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for CertificateWatch {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
