//! Page of `weir ui`: a server that starts runs, shows them while they go, and finds them afterwards.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::child_run::ChildRuns;
use super::page_server::{PageListener, page_urls};
use super::page_service::PageService;
use super::ui_backend::UiBackend;
use super::ui_service::UiService;
use super::ui_shared::UiShared;
use super::upload_folder::UploadFolder;
use weir_machine::logger::Logger;
use weir_server::RunningServer;

/// Page of `weir ui`.
#[derive(Debug)]
pub struct UiPage {
    shared: Arc<UiShared>,
    server: RunningServer,
}

/// Handle by which another thread ends a run at once.
#[derive(Clone, Debug)]
pub struct RunKiller(Arc<ChildRuns>);

/// Time that pages have to read the end.
const END_GRACE: Duration = Duration::from_millis(200);

impl UiPage {
    /// Starts the page.
    ///
    /// # Errors
    /// One line: an address that cannot be listened on, or is not of this machine alone without a token.
    pub fn start(listener: PageListener<'_>, backend: Arc<dyn UiBackend>, logger: &Logger) -> Result<Self, String> {
        let shared = Arc::new(UiShared {
            rules: listener.rules()?,
            uploads: UploadFolder(backend.uploads()),
            backend,
            runs: Arc::default(),
            documents: Mutex::default(),
        });
        let server = listener.start(|| PageService(UiService(Arc::clone(&shared))), logger)?;
        Ok(Self { shared, server })
    }

    /// `http://` and the address, without a token.
    pub fn url(&self) -> String {
        self.server.url()
    }

    /// Addresses of those who may start and change runs, and of those who may only read.
    pub fn urls(&self) -> [String; 2] {
        page_urls(&self.shared.rules, &self.server)
    }

    /// Handle by which another thread ends a run at once.
    pub fn killer(&self) -> RunKiller {
        RunKiller(Arc::clone(&self.shared.runs))
    }

    /// Ends the run, waits until it is saved, and stops.
    pub fn stop(self) {
        self.shared.runs.end();
        self.shared.runs.join();
        self.server.stop(END_GRACE);
    }
}

impl RunKiller {
    /// Ends the run at once; what it has is lost.
    pub fn kill(&self) {
        self.0.kill();
    }
}
