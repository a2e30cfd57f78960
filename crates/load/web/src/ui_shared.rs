//! State shared by all requests of the page of `weir ui`.

use std::sync::{Arc, Mutex};

use super::access::AccessRules;
use super::child_run::ChildRuns;
use super::shown_documents::ShownDocuments;
use super::ui_backend::UiBackend;
use super::upload_folder::UploadFolder;

/// State shared by the requests of the page.
#[derive(Debug)]
pub(crate) struct UiShared {
    pub(crate) rules: AccessRules,
    pub(crate) backend: Arc<dyn UiBackend>,
    pub(crate) runs: Arc<ChildRuns>,
    pub(crate) documents: Mutex<ShownDocuments>,
    pub(crate) uploads: UploadFolder,
}
