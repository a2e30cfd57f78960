//! Options of HTTP/2, and the same validated.

use serde::{Deserialize, Serialize};
use weir_http2::connection::ClientSettings;
use weir_net::tls::Tls;

use super::super::plan::PlanError;

/// Options of HTTP/2 as given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Http2Options {
    /// HTTP/2 over TLS.
    pub over_tls: Option<Http2Preference>,
    /// HTTP/2 without TLS and without negotiation ("prior knowledge", RFC 9113 section 3.3).
    pub cleartext: bool,
    /// Requests at the same time on a connection.
    pub streams: Option<u64>,
    /// Window of flow control of each stream, in bytes.
    pub window_bytes: Option<u64>,
}

/// How much HTTP/2 over TLS is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Http2Preference {
    /// HTTP/1.1 with a service that does not offer HTTP/2.
    Preferred,
    /// No load without it.
    Required,
}

impl Http2Preference {
    /// Word of the command line and of Python that requires it.
    pub const ONLY: &str = "only";
}

/// HTTP/2 of a load, validated.
#[derive(Clone, Copy, Debug)]
pub struct Http2Plan {
    /// HTTP/2 over TLS.
    pub over_tls: Option<Http2Preference>,
    /// HTTP/2 without TLS.
    pub cleartext: bool,
    /// Maximum number of streams on a connection at the same time.
    pub streams: usize,
    /// Whether several users share a connection, and not a connection's streams are one user's.
    pub shares_users: bool,
    /// Settings that connections announce to the service.
    pub settings: ClientSettings,
}

/// Maximum of `--streams`: what some services permit, and far above what any uses.
const MAX_STREAMS: u64 = 100_000;
/// Range of `--h2-window`, in bytes.
const MIN_WINDOW_BYTES: u64 = 1024;
const MAX_WINDOW_BYTES: u64 = (1 << 31) - 1;

impl Http2Options {
    /// Whether HTTP/2 is requested.
    pub fn is_given(&self) -> bool {
        self.over_tls.is_some() || self.cleartext
    }

    /// Checks the options; `None` without HTTP/2. `shares_users`: several users share a connection.
    ///
    /// # Errors
    /// A value out of range, or one that means nothing without HTTP/2.
    pub fn plan(&self, shares_users: bool) -> Result<Option<Http2Plan>, PlanError> {
        let streams = super::super::plan::in_range("streams", self.streams.unwrap_or(1), 1, MAX_STREAMS)?;
        let mut settings = ClientSettings { max_streams: streams as u32, ..ClientSettings::default() };
        if let Some(bytes) = self.window_bytes {
            let bytes = super::super::plan::in_range("h2-window", bytes, MIN_WINDOW_BYTES, MAX_WINDOW_BYTES)? as u32;
            // All streams together never have less than one of them.
            settings.connection_window_bytes = settings.connection_window_bytes.max(bytes);
            settings.stream_window_bytes = bytes;
        }
        if !self.is_given() {
            let rules = [
                (self.streams.is_some(), "--streams needs HTTP/2: --http2, or --h2c without TLS"),
                (self.window_bytes.is_some(), "--h2-window needs HTTP/2: --http2, or --h2c without TLS"),
            ];
            let broken = rules.into_iter().find(|(is_broken, _)| *is_broken);
            return broken.map_or(Ok(None), |(_, why)| Err(PlanError::Conflict(why)));
        }
        let streams = streams as usize;
        let Self { over_tls, cleartext, .. } = *self;
        Ok(Some(Http2Plan { over_tls, cleartext, streams, shares_users, settings }))
    }

    /// TLS that offers the requested versions of HTTP.
    pub(crate) fn offer(&self, tls: Tls) -> Tls {
        match self.over_tls {
            Some(preference) => tls.offering_http2(preference == Http2Preference::Preferred),
            None => tls,
        }
    }
}

/// Maximum number of calls at the same time on a connection of a program's user.
const MAX_USER_CALLS: usize = 100;

impl Http2Plan {
    /// HTTP/2 for the calls of a program, and for nothing else.
    pub(crate) fn of_calls_alone() -> Self {
        Self { over_tls: None, cleartext: false, streams: 1, shares_users: true, settings: ClientSettings::default() }
    }

    /// Settings of a connection for the calls of a program's user, and the maximum number of its streams.
    pub(crate) fn of_user_calls(&self, is_tls: bool) -> (ClientSettings, usize) {
        let max_streams = MAX_USER_CALLS as u32;
        (ClientSettings { is_tls, max_streams, wants_trailers: true, ..self.settings }, MAX_USER_CALLS)
    }

    /// The same for calls of gRPC, whose trailers are wanted.
    pub(crate) fn for_calls(self, are_calls: bool) -> Self {
        Self { settings: ClientSettings { wants_trailers: are_calls, ..self.settings }, ..self }
    }

    /// Whether connections with, or without, TLS begin with HTTP/2.
    pub(crate) fn applies(&self, is_tls: bool) -> bool {
        if is_tls { self.over_tls.is_some() } else { self.cleartext }
    }

    /// Settings of a connection.
    pub(crate) fn settings(&self, is_tls: bool) -> ClientSettings {
        ClientSettings { is_tls, ..self.settings }
    }
}
