//! Parsers of the parts of a request on the command line.

use weir_machine::input_file;
use weir_request::secret_mask::shown_header;

/// Header from `Name: value`.
pub(super) fn header(line: &str) -> Result<(String, String), String> {
    let parts = line.split_once(':').map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()));
    parts
        .filter(|(name, _)| http::HeaderName::from_bytes(name.as_bytes()).is_ok())
        .ok_or_else(|| format!("invalid --header '{}'; write 'Name: value'", shown_header(line).escape_debug()))
}

/// Body from text, or from `@FILE`.
pub(super) fn body(text: &str) -> Result<Vec<u8>, String> {
    match text.strip_prefix('@') {
        Some(path) => input_file::read(path).map_err(|error| format!("cannot read {path}: {error}")),
        None => Ok(text.as_bytes().to_vec()),
    }
}

/// Method, in upper case.
pub(super) fn method(text: &str) -> Result<String, String> {
    let method = text.to_ascii_uppercase();
    match http::Method::from_bytes(method.as_bytes()) {
        Ok(_) => Ok(method),
        Err(_) => Err(format!("invalid --method '{}'; write e.g. POST", method.escape_debug())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_shows_no_value_of_a_header() {
        assert_eq!(header("a : b"), Ok(("a".into(), "b".into())));
        let error = header("Authorization Bearer SECRET").unwrap_err();
        assert_eq!(error, "invalid --header 'Authorization ***'; write 'Name: value'");
    }
}
