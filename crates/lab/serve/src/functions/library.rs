//! Users' libraries: loading, and the host's side of `include/weir.h`.
#![allow(unsafe_code, reason = "a library in C is loaded and called, and it hands over pointers")]

use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

use super::routes::BuiltInFunction;
use super::{LibraryError, crash, query};

/// Version of `include/weir.h`.
const ABI_VERSION: u32 = 2;

/// Function of a library with its route.
#[derive(Debug)]
pub(super) struct LibraryFunction {
    path: CString,
    label: crash::FunctionLabel,
    /// Name in the log.
    pub(super) name: String,
    call: CallFn,
    user: UserData,
    failures: AtomicU64,
}

/// Functions by path.
pub(super) type FunctionTable = HashMap<Vec<u8>, Arc<LibraryFunction>>;

type CallFn = unsafe extern "C" fn(*const FunctionRequest<'_>, *mut ResponseBuffer, *mut c_void) -> c_int;
type RegisterFn = unsafe extern "C" fn(*mut LibraryHost<'_>) -> c_int;

/// User pointer of a registration, opaque to the host.
#[derive(Clone, Copy, Debug)]
struct UserData(*mut c_void);

// SAFETY: the host never dereferences the pointer. That functions run on several threads at once, and what that asks
// of what they share, is part of the contract in weir.h.
unsafe impl Send for UserData {}
// SAFETY: as above.
unsafe impl Sync for UserData {}

/// `weir_api`: functions of the host. Host, request and response begin with a pointer to it.
#[derive(Debug)]
#[repr(C)]
struct Api {
    route: unsafe extern "C" fn(*mut LibraryHost<'_>, u32, *const c_char, Option<CallFn>, *mut c_void) -> c_int,
    param: unsafe extern "C" fn(*const FunctionRequest<'_>, *const c_char, *mut c_char, usize) -> isize,
    method: unsafe extern "C" fn(*const FunctionRequest<'_>) -> *const c_char,
    path: unsafe extern "C" fn(*const FunctionRequest<'_>) -> *const c_char,
    body: unsafe extern "C" fn(*const FunctionRequest<'_>, *mut usize) -> *const c_void,
    status: unsafe extern "C" fn(*mut ResponseBuffer, c_int) -> c_int,
    header: unsafe extern "C" fn(*mut ResponseBuffer, *const c_char, *const c_char) -> c_int,
    write: unsafe extern "C" fn(*mut ResponseBuffer, *const c_void, usize) -> c_int,
}

static API: Api = Api { route, param, method, path, body, status, header, write };

/// `weir_host`: a library while it registers.
#[repr(C)]
struct LibraryHost<'a> {
    api: &'static Api,
    library: &'a str,
    functions: &'a mut FunctionTable,
    routes: usize,
    /// First error.
    error: Option<String>,
}

/// `weir_request`: request of a call.
#[repr(C)]
struct FunctionRequest<'a> {
    api: &'static Api,
    method: &'a CStr,
    path: &'a CStr,
    query: &'a str,
    body: &'a [u8],
}

/// `weir_response`: response that a function writes.
#[derive(Debug)]
#[repr(C)]
pub(super) struct ResponseBuffer {
    api: &'static Api,
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
    /// Maximum and current length of headers and body, in bytes.
    max_bytes: usize,
    used_bytes: usize,
    pub(super) too_long: bool,
}

/// Loads a library, and adds its functions to the table.
pub(super) fn load(file: &Path, functions: &mut FunctionTable) -> Result<(), LibraryError> {
    let name = file.display().to_string();
    let failed = |reason: String| LibraryError(name.clone(), reason);
    // The system would search for a plain name in its library path.
    let path = file.canonicalize().map_err(|error| failed(error.to_string()))?;
    crash::install_crash_handlers();
    let loading = crash::FunctionLabel::new(&format!("the loading of {name}"));
    // SAFETY: it runs the library's initialisers; a library is trusted with the process by naming it.
    let library = crash::run_labelled(&loading, || unsafe { Library::open(Some(&path), RTLD_NOW | RTLD_LOCAL) });
    let library = library.map_err(|error| {
        let reason = std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
        failed(reason.trim_start_matches(&*path.to_string_lossy()).trim_start_matches(": ").to_owned())
    })?;
    // SAFETY: weir.h declares what has this name as a function of this form.
    let register = unsafe { library.get::<RegisterFn>(c"weir_register") };
    let register = *register.map_err(|_| failed("it exports no weir_register; see include/weir.h".to_owned()))?;
    // Never unloaded: its functions can still run after the end of the service, and it can have threads of its own.
    std::mem::forget(library);
    let mut host = LibraryHost { api: &API, library: &name, functions, routes: 0, error: None };
    let registering = crash::FunctionLabel::new(&format!("weir_register of {name}"));
    // SAFETY: `host` is alive and not aliased during the call, which is how long weir.h lets the library have it.
    let code = crash::run_labelled(&registering, || unsafe { register(&raw mut host) });
    match host.error {
        Some(wrong) => Err(failed(wrong)),
        None if code != 0 => Err(failed(format!("its weir_register returned {code}"))),
        None if host.routes == 0 => Err(failed("it registers no route; see weir_route in include/weir.h".to_owned())),
        None => Ok(()),
    }
}

impl LibraryFunction {
    /// Calls the function on this thread; returns its response and return code.
    pub(super) fn call(&self, method: &CStr, query: &str, body: &[u8], max: usize) -> (ResponseBuffer, c_int) {
        let request = FunctionRequest { api: &API, method, path: &self.path, query, body };
        let mut response = ResponseBuffer {
            api: &API,
            status: StatusCode::OK,
            headers: HeaderMap::new(),
            body: Vec::new(),
            max_bytes: max,
            used_bytes: 0,
            too_long: false,
        };
        crash::install_signal_stack();
        // SAFETY: the function was registered as one of this form, and its library is never unloaded. Request and
        // response are alive and not aliased during the call, which is how long weir.h lets the function use them.
        let call = || unsafe { (self.call)(&raw const request, &raw mut response, self.user.0) };
        let code = crash::run_labelled(&self.label, call);
        (response, code)
    }

    /// Counts a failure; returns the total.
    pub(super) fn count_failure(&self) -> u64 {
        self.failures.fetch_add(1, Ordering::Relaxed) + 1
    }
}

/// String of a library.
///
/// # Safety
/// It is null, or ends with a zero and stays as it is for `'a`.
unsafe fn text<'a>(text: *const c_char) -> Option<&'a CStr> {
    // SAFETY: as the caller promises.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) })
}

/// SAFETY, of this and all that follow: weir.h hands on what the library was given for this call and has not ended,
/// and strings, buffers and lengths as it says there. Nothing here unwinds.
unsafe extern "C" fn route(
    host: *mut LibraryHost<'_>,
    abi: u32,
    path: *const c_char,
    call: Option<CallFn>,
    user: *mut c_void,
) -> c_int {
    // SAFETY: see above; nothing else uses the host during this call.
    let (host, path) = unsafe { (&mut *host, text(path)) };
    let added = host.add(abi, path, call, UserData(user));
    let code = if added.is_ok() { 0 } else { -1 };
    if let Err(wrong) = added {
        host.error.get_or_insert(wrong);
    }
    code
}

impl LibraryHost<'_> {
    fn add(&mut self, abi: u32, path: Option<&CStr>, call: Option<CallFn>, user: UserData) -> Result<(), String> {
        if abi != ABI_VERSION {
            return Err(format!(
                "it was built with version {abi} of weir.h; build it with the weir.h of this program, version {ABI_VERSION}"
            ));
        }
        let (Some(path), Some(call)) = (path, call) else {
            return Err("it registers a route without a path or a function".to_owned());
        };
        let shown = path.to_string_lossy();
        if !path.to_bytes().starts_with(b"/") {
            return Err(format!("its route '{shown}' does not begin with '/'"));
        }
        let ours = BuiltInFunction::at(path.to_bytes()).is_some() || path.to_bytes() == b"/metrics";
        if ours || self.functions.contains_key(path.to_bytes()) {
            return Err(format!("its route {shown} is taken; choose another path"));
        }
        let name = format!("{shown} of {}", self.library);
        let label = crash::FunctionLabel::new(&name);
        let function = LibraryFunction { path: path.to_owned(), label, name, call, user, failures: AtomicU64::new(0) };
        self.functions.insert(path.to_bytes().to_vec(), Arc::new(function));
        self.routes += 1;
        Ok(())
    }
}

unsafe extern "C" fn param(
    request: *const FunctionRequest<'_>,
    name: *const c_char,
    buffer: *mut c_char,
    size: usize,
) -> isize {
    // SAFETY: see `route`.
    let (request, name) = unsafe { (&*request, text(name)) };
    let Some(value) = name.and_then(|name| query::value(request.query, name.to_bytes())) else { return -1 };
    if !buffer.is_null() && size > 0 {
        let fits = value.len().min(size - 1);
        // SAFETY: the buffer has `size` bytes and is the library's own; `fits` + 1 are at most that.
        unsafe {
            buffer.cast::<u8>().copy_from_nonoverlapping(value.as_ptr(), fits);
            buffer.add(fits).write(0);
        }
    }
    value.len() as isize
}

unsafe extern "C" fn method(request: *const FunctionRequest<'_>) -> *const c_char {
    // SAFETY: see `route`.
    unsafe { &*request }.method.as_ptr()
}

unsafe extern "C" fn path(request: *const FunctionRequest<'_>) -> *const c_char {
    // SAFETY: see `route`.
    unsafe { &*request }.path.as_ptr()
}

unsafe extern "C" fn body(request: *const FunctionRequest<'_>, length: *mut usize) -> *const c_void {
    // SAFETY: see `route`.
    let (request, length) = unsafe { (&*request, length.as_mut()) };
    if let Some(length) = length {
        *length = request.body.len();
    }
    request.body.as_ptr().cast()
}

unsafe extern "C" fn status(response: *mut ResponseBuffer, status: c_int) -> c_int {
    // SAFETY: see `route`.
    let response = unsafe { &mut *response };
    let status = u16::try_from(status).ok().filter(|status| (200..600).contains(status));
    let Some(status) = status.and_then(|status| StatusCode::from_u16(status).ok()) else { return -1 };
    response.status = status;
    0
}

unsafe extern "C" fn header(response: *mut ResponseBuffer, name: *const c_char, value: *const c_char) -> c_int {
    // SAFETY: see `route`.
    let (response, name, value) = unsafe { (&mut *response, text(name), text(value)) };
    match name.zip(value).and_then(|(name, value)| response.add_header(name.to_bytes(), value.to_bytes())) {
        Some(()) => 0,
        None => -1,
    }
}

unsafe extern "C" fn write(response: *mut ResponseBuffer, bytes: *const c_void, length: usize) -> c_int {
    // SAFETY: see `route`.
    let response = unsafe { &mut *response };
    if length == 0 {
        return 0;
    }
    if bytes.is_null() || !response.reserve(length) {
        return -1;
    }
    // SAFETY: the library has `length` bytes there, and `reserve` has accepted them.
    response.body.extend_from_slice(unsafe { std::slice::from_raw_parts(bytes.cast(), length) });
    0
}

impl ResponseBuffer {
    /// Reserves a length of the maximum response; false if it does not fit.
    fn reserve(&mut self, length: usize) -> bool {
        match self.used_bytes.checked_add(length).filter(|sum| *sum <= self.max_bytes) {
            Some(sum) => self.used_bytes = sum,
            None => self.too_long = true,
        }
        !self.too_long
    }

    fn add_header(&mut self, name: &[u8], value: &[u8]) -> Option<()> {
        let (length, name) = (name.len() + value.len(), HeaderName::from_bytes(name).ok()?);
        let value = HeaderValue::from_bytes(value).ok()?;
        if [header::CONTENT_LENGTH, header::TRANSFER_ENCODING, header::CONNECTION].contains(&name) {
            return None;
        }
        if !self.reserve(length) {
            return None;
        }
        if name == header::CONTENT_TYPE {
            self.headers.try_insert(name, value).ok()?;
        } else {
            self.headers.try_append(name, value).ok()?;
        }
        Some(())
    }
}
