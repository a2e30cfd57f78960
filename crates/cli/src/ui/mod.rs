//! `weir ui`: a page that starts loads, shows and changes them while they run, and finds them afterwards.
//!
//! - [`UiArgs`]: arguments; [`run`]: the server
//! - `load_form`: options of `weir load` as a form, and a form as arguments
//! - `ui_commands`: what the page asks for

mod load_form;
mod ui_commands;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;

use self::ui_commands::UiCommands;
use weir_command::Messages;
use weir_command::ServerLifecycle;
use weir_command::self_command;
use weir_history::{DEFAULT_STORE, RunLibrary};
use weir_machine::logger::Logger;
use weir_web::{PageListener, UiPage, WebAddress};

/// Examples at the end of the help.
const EXAMPLES: &str = "Examples:\n  weir ui\n  weir ui --listen 127.0.0.1:9000 --store results/";

/// Page for loads.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct UiArgs {
    /// listen on this address [default: 127.0.0.1:8089, or a free port]
    #[arg(long, value_name = "HOST:PORT")]
    listen: Option<WebAddress>,
    /// show runs from this store, or this folder of results (--out)
    #[arg(long, value_name = "FILE|FOLDER", default_value = DEFAULT_STORE)]
    store: PathBuf,
    /// set the token in the page's address [default: random]; required unless on loopback
    #[arg(long, value_name = "TOKEN")]
    web_token: Option<String>,
}

/// Serves the page until a signal; the run that is going on is ended and saved.
pub(super) fn run(asked: &UiArgs, args: &[OsString], messages: Messages) -> Result<u8, String> {
    let library = RunLibrary::open(&asked.store)?;
    let backend = UiCommands::new(library, self_command(args));
    let logger = Logger::new(move |text| messages.note(text));
    let mut lifecycle = ServerLifecycle::new(&[])?;
    let listener = PageListener { flag: "--listen", address: asked.listen.as_ref(), token: asked.web_token.as_deref() };
    let page = UiPage::start(listener, Arc::new(backend), &logger)?;
    let [operator, spectator] = page.urls();
    // Also with --quiet: without the token the page cannot be opened.
    messages.always(&format!("page {operator} (to watch only: {spectator})"));
    let end = lifecycle.run_until_signal(&page.url())?;
    let killer = page.killer();
    Ok(lifecycle.finish(end, move || killer.kill(), move || page.stop()))
}
