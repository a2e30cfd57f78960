//! A recording as a command makes it: from the checks of its files to the scenario.

use std::env;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::progress_line::ProgressLine;
use crate::record_outcome::RecordOutcome;
use crate::{Options, RecordingProxy};
use weir_command::{Interrupt, Messages, pages};
use weir_import::ImportSettings;
use weir_scenario_files::ensure_free;

/// A recording that becomes a scenario.
#[derive(Clone, Debug)]
pub struct RecordSession {
    /// The proxy. Without a folder of the authority it is that of the user's configuration; without a journal it is
    /// beside the scenario.
    pub proxy: Options,
    /// File of the scenario; stdout without one.
    pub out: Option<PathBuf>,
    /// HAR file of the recording, which is kept.
    pub har: Option<PathBuf>,
    /// Whether values of responses become captures.
    pub correlate: bool,
}

impl RecordSession {
    /// Records until a signal or the end of the options; returns the exit code.
    ///
    /// # Errors
    /// One line, if a file or the address is not available.
    pub fn run(mut self, messages: &Messages) -> Result<u8, String> {
        self.check_outputs()?;
        // Before the address is printed: a reader of it may send a signal at once.
        let interrupt = Interrupt::install().map_err(|error| format!("cannot listen for Ctrl-C: {error}"))?;
        self.proxy.journal = self.journal();
        // Of no use to a reverse proxy.
        if self.proxy.ca_dir.as_os_str().is_empty() && self.proxy.upstream.is_none() {
            self.proxy.ca_dir = config_folder()?;
        }
        let line = Rc::new(ProgressLine::new(*messages));
        let recorder =
            RecordingProxy::new(&self.proxy, Rc::<ProgressLine>::clone(&line)).map_err(|error| error.to_string())?;
        self.announce(&recorder, messages).inspect_err(|_| remove(&self.proxy.journal, messages))?;
        let counts = recorder.run(|| interrupt.is_requested()).map_err(|error| error.to_string())?;
        line.finish();
        let outcome = RecordOutcome {
            counts,
            journal: &self.proxy.journal,
            path: self.out.as_deref(),
            settings: ImportSettings {
                all: self.proxy.keeps_static,
                correlate: self.correlate,
                ..ImportSettings::default()
            },
            load_flags: self.load_flags(),
        };
        let code = outcome.write(messages)?;
        if self.har.is_some() {
            messages.note(&format!("{}: the recording, with passwords and tokens", self.proxy.journal.display()));
        } else {
            remove(&self.proxy.journal, messages);
        }
        Ok(code)
    }

    /// Rejects files that are there, before an hour of recording and not after it.
    fn check_outputs(&self) -> Result<(), String> {
        let out = self.out.as_deref();
        let variables = out.map(|path| path.with_extension("env"));
        let files = [out, variables.as_deref(), self.har.as_deref()];
        files.into_iter().flatten().try_for_each(|path| ensure_free(path, self.proxy.overwrites))?;
        if out.is_some() && out == self.har.as_deref() {
            return Err("-o and --har write to one file; give each its own".to_owned());
        }
        // A folder that cannot be written shows in the journal beside the scenario, but for an own place of the journal.
        let folder = out.and_then(Path::parent).filter(|folder| !folder.as_os_str().is_empty());
        match folder {
            Some(folder) if !folder.is_dir() => Err(format!("cannot write to {}: no such folder", folder.display())),
            _ => Ok(()),
        }
    }

    /// Flags by which services are trusted, as `weir load` has them.
    fn load_flags(&self) -> String {
        let tls = &self.proxy.tls;
        let files = [("--cacert", &tls.cacert), ("--cert", &tls.cert), ("--cert-key", &tls.key)];
        let given = files.iter().filter_map(|(flag, file)| Some(format!(" {flag} {}", file.as_ref()?.display())));
        let insecure = tls.insecure.then(|| " --insecure".to_owned());
        given.chain(insecure).collect()
    }

    /// HAR file that is written while the recording goes on: beside the scenario, where it is found if all else fails.
    fn journal(&self) -> PathBuf {
        match (&self.har, &self.out) {
            (Some(har), _) => har.clone(),
            (None, Some(out)) => out.with_extension("recording.har"),
            (None, None) => env::temp_dir().join(format!("weir-{}.recording.har", std::process::id())),
        }
    }

    fn announce(&self, recorder: &RecordingProxy, messages: &Messages) -> Result<(), String> {
        let url = recorder.url();
        match &self.proxy.upstream {
            Some(target) => {
                messages.note(&format!("recording {} at {url}; Ctrl-C ends it", target.url.trim_end_matches('/')));
            }
            None => messages.note(&format!("recording; set {url} as the proxy of your client; Ctrl-C ends it")),
        }
        if let Some(file) = recorder.ca_file() {
            messages.note(&format!(
                "for https: trust {} in the client, e.g. curl --cacert ({}record.md)",
                file.display(),
                pages::base()
            ));
        }
        if self.proxy.allows_remote {
            messages.note("warning: other machines that reach this address can use the proxy");
        }
        if self.out.is_none() {
            return Ok(());
        }
        let line = serde_json::json!({ "listening": url });
        writeln!(io::stdout(), "{line}")
            .and_then(|()| io::stdout().flush())
            .map_err(|error| format!("cannot write to stdout: {error}"))
    }
}

/// Folder of weir in the user's configuration.
fn config_folder() -> Result<PathBuf, String> {
    let absolute = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = absolute("XDG_CONFIG_HOME").or_else(|| absolute("HOME").map(|home| home.join(".config")));
    base.map(|base| base.join("weir"))
        .ok_or_else(|| "the place of the certificate authority is not known: HOME is not set; give --ca-dir".to_owned())
}

/// Removes a file that is there; what cannot be removed is reported.
fn remove(path: &Path, messages: &Messages) {
    if let Err(error) = fs::remove_file(path) {
        messages.note(&format!("warning: cannot remove {}: {error}", path.display()));
    }
}
