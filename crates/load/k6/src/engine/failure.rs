//! Exceptions as one line.

use rquickjs::{CatchResultExt as _, CaughtError, Ctx, Value};

/// Exception of a script.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ScriptFailure {
    /// Message with the kind of the error: `TypeError: x is not a function`.
    pub(crate) message: String,
    /// Place of the innermost line of a file of the script: `login.js:7`.
    pub(crate) place: Option<String>,
    /// Calls that led to it, one to a line.
    pub(crate) stack: String,
}

impl ScriptFailure {
    /// Failure without a place.
    pub(crate) fn of_message(message: impl Into<String>) -> Self {
        Self { message: message.into(), ..Self::default() }
    }

    /// As one line with its place.
    pub(crate) fn line(&self) -> String {
        let message = one_line(&self.message);
        match &self.place {
            Some(place) => format!("{place}: {message}"),
            None => message,
        }
    }

    /// As one line with its place, or with the name of the file of the script.
    pub(crate) fn line_in(&self, file: &str) -> String {
        let line = self.line();
        if self.place.is_some() || line.contains(file) { line } else { format!("{}: {line}", shown_name(file)) }
    }
}

/// Most characters of a message: it may have the body of a response.
const MAX_CHARACTERS: usize = 1000;

/// A message on one line, without control characters, and not longer than people read.
fn one_line(message: &str) -> String {
    let shown = |c: char| if c.is_control() { ' ' } else { c };
    let mut line: String = message.chars().take(MAX_CHARACTERS).map(shown).collect();
    let left = message.chars().skip(MAX_CHARACTERS).count();
    if left > 0 {
        line.push_str(&format!("... ({left} characters more)"));
    }
    line
}

/// Result of a call as the script's failure.
pub(crate) fn caught<'js, T>(ctx: &Ctx<'js>, result: rquickjs::Result<T>) -> Result<T, ScriptFailure> {
    result.catch(ctx).map_err(|error| match error {
        CaughtError::Error(error) => ScriptFailure::of_message(error.to_string()),
        CaughtError::Exception(exception) => of_value(exception.into_object().into_value()),
        CaughtError::Value(value) => of_value(value),
    })
}

/// Failure of a thrown value.
pub(crate) fn of_value(value: Value<'_>) -> ScriptFailure {
    if value.is_null() {
        // Where there is no memory for an error, the interpreter throws this as well.
        return ScriptFailure::of_message("null was thrown, as when memory runs out (--js-heap)");
    }
    let Some(object) = value.as_object().filter(|object| object.get::<_, String>("message").is_ok()) else {
        return ScriptFailure::of_message(shown(value));
    };
    let text = |name: &str| object.get::<_, Option<String>>(name).ok().flatten().unwrap_or_default();
    let (name, message, stack) = (text("name"), text("message"), text("stack"));
    let message = match (name.is_empty(), message.is_empty()) {
        (true, _) => message,
        (false, true) => name,
        (false, false) => format!("{name}: {message}"),
    };
    // A text that was read as code or JSON has no line of the script; its reader has.
    let (of_texts, of_files): (Vec<_>, Vec<_>) =
        stack.lines().filter_map(place_of).partition(|it| it.starts_with(TEXT));
    let place = of_files.into_iter().chain(of_texts).next();
    ScriptFailure { message, place, stack: shown_stack(&stack) }
}

/// Name of a text that is read as code or JSON.
const TEXT: &str = "<input>";

/// Text of a value other than an error.
fn shown(value: Value<'_>) -> String {
    let ctx = value.ctx().clone();
    if value.is_undefined() || value.is_symbol() {
        return format!("{} was thrown", value.type_name());
    }
    if let Some(text) = value.as_string().and_then(|text| text.to_string().ok()) {
        return text;
    }
    let name = value.type_name();
    let json = ctx.json_stringify(value).ok().flatten().and_then(|text| text.to_string().ok());
    json.unwrap_or_else(|| {
        // What it throws itself is of no use.
        let _ = ctx.catch();
        format!("{name} was thrown, whose text cannot be read")
    })
}

/// Prefix of the names of modules that are weir's own.
const OWN_PREFIXES: [&str; 3] = ["weir:", "weir/", "k6"];

/// Place of a line of a stack, if it is in a file of the script: `    at login (/home/me/login.js:7:15)`.
fn place_of(line: &str) -> Option<String> {
    let (name, rest) = place_parts(line)?;
    let number = rest.split(':').next().unwrap_or(rest);
    Some(format!("{}:{number}", shown_name(name)))
}

fn place_parts(line: &str) -> Option<(&str, &str)> {
    let place = line.trim().strip_prefix("at ")?;
    let place = match place.rsplit_once('(') {
        Some((_, inner)) => inner.trim_end_matches(')'),
        None => place,
    };
    // The name, the line, and in most cases the column.
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let mut end = place.len();
    while let Some(colon) = place[..end].rfind(':').filter(|colon| digits(&place[colon + 1..end])) {
        end = colon;
    }
    let (name, rest) = (&place[..end], place.get(end + 1..)?);
    let is_own = OWN_PREFIXES.iter().any(|own| name.starts_with(own)) || name == "native" || name.is_empty();
    (!is_own).then_some((name, rest))
}

/// The later of two places of an interruption, if they are in one file: the beginning of a loop, and its last call.
pub(crate) fn later_place(one: Option<String>, other: Option<String>) -> Option<String> {
    let parts = |place: &Option<String>| {
        let (file, line) = place.as_deref()?.rsplit_once(':')?;
        Some((file.to_owned(), line.parse::<u64>().ok()?))
    };
    match (parts(&one), parts(&other)) {
        (Some((file, line)), Some((other_file, other_line))) if file == other_file && other_line > line => other,
        (None, Some(_)) => other,
        _ => one,
    }
}

/// Lines of a stack that are the script's.
fn shown_stack(stack: &str) -> String {
    let lines = stack.lines().filter_map(|line| {
        let (name, rest) = place_parts(line)?;
        let function = line.trim().strip_prefix("at ")?.split(" (").next().filter(|_| line.contains(" ("));
        let function = function.filter(|name| !name.starts_with('<')).map(|name| format!(" in {name}"));
        Some(format!("{}:{rest}{}", shown_name(name), function.unwrap_or_default()))
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Path of a module as messages have it: its file's name with the folder before it.
fn shown_name(name: &str) -> &str {
    let cwd = std::env::current_dir().ok();
    let inside = cwd.and_then(|folder| {
        let folder = folder.to_str()?.trim_end_matches('/').to_owned();
        name.strip_prefix(folder.as_str())?.strip_prefix('/')
    });
    inside.unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_that_of_the_innermost_line_of_the_script() {
        let stack = "    at get (k6/http:12:3)\n    at login (/x/login.js:7:15)\n    at <anonymous> (/x/main.js:3:1)\n";
        assert_eq!(stack.lines().find_map(place_of).as_deref(), Some("/x/login.js:7"));
        assert_eq!(shown_stack(stack), "/x/login.js:7:15 in login\n/x/main.js:3:1");
        assert_eq!(place_of("    at /x/y:z.js:4:2").as_deref(), Some("/x/y:z.js:4"));
        assert_eq!(place_of("    at call (native)"), None);
    }

    #[test]
    fn a_message_is_one_line_that_people_read() {
        let line = |message: &str| ScriptFailure::of_message(message).line();
        assert_eq!(line("a\nb\u{1b}[31m"), "a b [31m");
        let long = line(&"x".repeat(1_000_000));
        assert!(long.len() < 1100 && long.ends_with("(999000 characters more)"), "{}", long.len());
        assert_eq!(ScriptFailure::of_message("x").line_in("/a/users.js"), "/a/users.js: x");
        let placed = ScriptFailure { place: Some("b.js:3".to_owned()), ..ScriptFailure::of_message("x") };
        assert_eq!(placed.line_in("/a/users.js"), "b.js:3: x");
    }

    #[test]
    fn a_loop_is_named_by_its_last_call() {
        let place = |text: &str| Some(text.to_owned());
        assert_eq!(later_place(place("a.js:3"), place("a.js:4")), place("a.js:4"));
        assert_eq!(later_place(place("a.js:5"), place("a.js:4")), place("a.js:5"));
        assert_eq!(later_place(place("a.js:3"), place("b.js:4")), place("a.js:3"));
        assert_eq!((later_place(None, place("b.js:4")), later_place(None, None)), (place("b.js:4"), None));
    }
}
