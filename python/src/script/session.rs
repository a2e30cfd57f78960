//! State shared by the requests of a user.

use std::sync::Mutex;

use pyo3::prelude::*;
use weir::load::program::request::{check_session_head, secret_lines};
use weir::machine::lock::lock;
use weir::request::url::HttpUrl;
use weir::scenario::cookie_jar::CookieJar;

use crate::errors;

/// Session of a user's requests: URL before paths, header lines, cookies.
#[pyclass(frozen, module = "weir._weir")]
#[derive(Debug)]
pub(crate) struct ScriptSession {
    pub(super) state: Mutex<SessionState>,
}

#[derive(Debug)]
pub(super) struct SessionState {
    /// URL before paths, without a slash at its end; empty if there is none.
    pub(super) base: String,
    /// Header lines of all requests, each with its line break.
    pub(super) head: Vec<u8>,
    pub(super) jar: CookieJar,
    /// Lines of the command line's headers with a secret name, which belong to one origin ...
    pub(super) given: Vec<u8>,
    /// ... that of this URL; without it that of the first request.
    home: Option<HttpUrl>,
}

impl SessionState {
    /// Whether the credentials of the command line may go to a URL.
    pub(super) fn is_home(&mut self, url: &HttpUrl) -> bool {
        if self.given.is_empty() {
            return true;
        }
        let home = self.home.get_or_insert_with(|| url.clone());
        home.credential_origin().shares_credentials_with(&url.credential_origin())
    }
}

#[pymethods]
impl ScriptSession {
    /// `given`: header lines of the command line, those with a secret name of which go to the origin of `home` alone.
    #[new]
    #[pyo3(signature = (base, head, given="", home=""))]
    fn new(base: &str, head: &str, given: &str, home: &str) -> PyResult<Self> {
        check_session_head(head.as_bytes()).map_err(|why| errors::usage(&why))?;
        let state = SessionState {
            base: checked_base(base)?,
            head: head.as_bytes().to_vec(),
            jar: CookieJar::default(),
            given: secret_lines(given.as_bytes()),
            home: HttpUrl::parse(if home.is_empty() { base } else { home }.as_bytes()).ok(),
        };
        Ok(Self { state: Mutex::new(state) })
    }

    /// URL before paths.
    #[getter]
    fn base(&self) -> String {
        lock(&self.state).base.clone()
    }

    #[setter]
    fn set_base(&self, base: &str) -> PyResult<()> {
        lock(&self.state).base = checked_base(base)?;
        Ok(())
    }

    /// Replaces the header lines of all requests.
    fn set_head(&self, head: &str) -> PyResult<()> {
        check_session_head(head.as_bytes()).map_err(|why| errors::usage(&why))?;
        lock(&self.state).head = head.as_bytes().to_vec();
        Ok(())
    }

    /// Cookies: name, value, domain, path.
    fn cookies(&self) -> Vec<(String, String, String, String)> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let state = lock(&self.state);
        let cookies = state.jar.iter();
        cookies.map(|c| (text(c.name()), text(c.value()), c.domain().to_owned(), text(c.path()))).collect()
    }

    /// Stores a cookie as the field Set-Cookie in a response from `url` would, or from the URL before paths.
    #[pyo3(signature = (field, url=None))]
    fn set_cookie(&self, field: &str, url: Option<&str>) -> PyResult<()> {
        let mut state = lock(&self.state);
        let from = HttpUrl::parse(url.unwrap_or(&state.base).as_bytes());
        let from = from.map_err(|error| errors::usage(&format!("cookie: {error}")))?;
        // An ignored cookie is common, as in browsers.
        let _ = state.jar.store(field.as_bytes(), &from, unix_s());
        Ok(())
    }

    /// Removes all cookies.
    fn clear_cookies(&self) {
        lock(&self.state).jar.clear();
    }
}

/// Seconds since 1970.
pub(super) fn unix_s() -> i64 {
    weir::machine::clock::unix_s() as i64
}

fn checked_base(base: &str) -> PyResult<String> {
    let base = base.trim_end_matches('/');
    if !base.is_empty() {
        HttpUrl::parse(base.as_bytes())
            .map_err(|error| errors::usage(&format!("host: {error}; write e.g. http://localhost:8080")))?;
    }
    Ok(base.to_owned())
}
