//! Comments in JSON, which some tools take out before they send it.

/// JSON without `//` and `/* */` comments outside of strings; line ends stay.
pub(crate) fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut is_string = false;
    while let Some(c) = rest.chars().next() {
        let length = match c {
            '\\' if is_string => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
            '"' => {
                is_string = !is_string;
                1
            }
            '/' if !is_string && rest.starts_with("//") => {
                rest = &rest[rest.find(['\n', '\r']).unwrap_or(rest.len())..];
                continue;
            }
            '/' if !is_string && rest.starts_with("/*") => {
                rest = &rest[rest[2..].find("*/").map_or(rest.len(), |at| at + 4)..];
                continue;
            }
            c => c.len_utf8(),
        };
        out.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_gone_and_strings_stay() {
        let text = "{ // one\n \"a\": \"//\\\"/*\", /* two\n*/ \"b\": 1 }";
        assert_eq!(without_comments(text), "{ \n \"a\": \"//\\\"/*\",  \"b\": 1 }");
        assert_eq!((without_comments("/*"), without_comments("a//")), (String::new(), "a".to_owned()));
    }
}
