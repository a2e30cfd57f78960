//! Errors of scripts, as one line with file, line and function.

use mlua::Error;

/// Start of the part of a message that names the callers.
const TRACEBACK: &str = "\nstack traceback:";

/// Error of a script in `called`, as one line: `shop.lua:7: attempt to ... (in token, called by request)`.
pub(crate) fn describe(error: &Error, called: &str) -> String {
    let (message, frames) = parts(error);
    let frames: Vec<&str> = frames.lines().map(str::trim).collect();
    let scripted = |frame: &&&str| !frame.starts_with(['[', '(']) && !is_internal(frame);
    // A function of the load that is called by the script has no line of it; its caller has.
    let (message, place) = match place(&message) {
        Some(own) if is_internal(own) => (message[own.len() + 2..].to_owned(), None),
        place => (message.clone(), place.map(str::to_owned)),
    };
    let place_of_caller = frames.iter().filter(scripted).find_map(|frame| frame.split_once(": in ").map(|(at, _)| at));
    let message = match (&place, place_of_caller) {
        (None, Some(at)) => format!("{at}: {message}"),
        _ => message,
    };
    let at = place.as_deref().or(place_of_caller);
    let named = frames.iter().find_map(|frame| {
        let (place, function) = frame.split_once(": in ")?;
        // Of a function, upvalue, local, field or method.
        let name = function.split_once(" '")?.1.strip_suffix('\'')?;
        (Some(place) == at).then_some(name)
    });
    let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
    match named {
        Some(name) if name != called && !called.is_empty() => format!("{message} (in {name}, called by {called})"),
        _ if called.is_empty() => message,
        _ => format!("{message} (in {called})"),
    }
}

/// Message and callers of an error.
fn parts(error: &Error) -> (String, String) {
    let split = |text: &str| match text.split_once(TRACEBACK) {
        Some((message, frames)) => (message.to_owned(), frames.to_owned()),
        None => (text.to_owned(), String::new()),
    };
    match error {
        Error::RuntimeError(text) => split(text),
        Error::SyntaxError { message, .. } => (message.clone(), String::new()),
        Error::MemoryError(_) => ("not enough memory".to_owned(), String::new()),
        Error::CallbackError { traceback, cause } => {
            let (message, frames) = parts(cause);
            let own = traceback.strip_prefix("stack traceback:").unwrap_or(traceback);
            (message, if frames.is_empty() { own.to_owned() } else { frames })
        }
        Error::BadArgument { cause, pos, .. } => (format!("argument {pos}: {}", parts(cause).0), String::new()),
        other => split(&other.to_string()),
    }
}

/// Whether a place is in code of the load, or of the border to Lua.
fn is_internal(place: &str) -> bool {
    place.starts_with("wrk:") || place.starts_with("__mlua")
}

/// File and line at the start of a message: `shop.lua:7`.
pub(crate) fn place(message: &str) -> Option<&str> {
    let end = message.match_indices(": ").find_map(|(at, _)| {
        let (file, line) = message[..at].rsplit_once(':')?;
        (!file.is_empty() && !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_digit())).then_some(at)
    })?;
    Some(&message[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_file_line_and_functions() {
        let text = "a b.lua:3: attempt to index a nil value\nstack traceback:\n\t[C]: in function 'error'\n\ta b.lua:3: \
                    in upvalue 'token'\n\ta b.lua:7: in function <a b.lua:6>\n\t[string \"api\"]:9: in function <x:8>";
        let error = Error::RuntimeError(text.to_owned());
        assert_eq!(
            describe(&error, "request"),
            "a b.lua:3: attempt to index a nil value (in token, called by request)"
        );
        let plain = Error::RuntimeError("a.lua:3: no\nluck\nstack traceback:\n\ta.lua:3: in function <a.lua:1>".into());
        assert_eq!(describe(&plain, "request"), "a.lua:3: no luck (in request)");
        let syntax = Error::SyntaxError { message: "a.lua:1: '=' expected near 'x'".into(), incomplete_input: false };
        assert_eq!(describe(&syntax, ""), "a.lua:1: '=' expected near 'x'");
    }

    #[test]
    fn an_error_of_the_load_has_the_place_of_its_caller() {
        let traceback = "stack traceback:\n\t[C]: in function 'lookup'\n\ta.lua:4: in function 'setup'".to_owned();
        let cause = std::sync::Arc::new(Error::RuntimeError("cannot resolve x:http".into()));
        let error = Error::CallbackError { traceback, cause };
        assert_eq!(describe(&error, "setup"), "a.lua:4: cannot resolve x:http (in setup)");
        let text = "wrk:30: attempt to index local 'headers'\nstack traceback:\n\twrk:30: in function 'format'\n\ta.lua:2: in \
                    function <a.lua:1>\n\twrk:88: in function <wrk:85>";
        let error = Error::RuntimeError(text.to_owned());
        assert_eq!(describe(&error, "request"), "a.lua:2: attempt to index local 'headers' (in request)");
    }
}
