//! Sources of modules as the interpreter takes them.

use crate::typescript;

/// Prepares the bytes of a file: JSON becomes a module, types of TypeScript go, and a module of CommonJS becomes one of
/// ES.
///
/// # Errors
/// One line.
pub(crate) fn prepared(name: &str, bytes: Vec<u8>) -> Result<String, String> {
    let text = String::from_utf8(bytes).map_err(|_| format!("{name}: not UTF-8"))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    if let Some(at) = text.find('\0') {
        let line = text[..at].matches('\n').count() + 1;
        return Err(format!("{name}:{line}: a NUL character; write \\0"));
    }
    if name.ends_with(".json") {
        return Ok(format!("export default {text};"));
    }
    let erased = name.ends_with(".ts").then(|| typescript::without_types(name, text)).transpose()?;
    let text = erased.as_deref().unwrap_or(text);
    if is_common_js(text) {
        // On one line, so that lines keep their numbers.
        return Ok(format!(
            "const module = {{ exports: {{}} }}; (function (module, exports) {{ {text}\n}})(module, module.exports); \
             export const __commonJs = true; export default module.exports;"
        ));
    }
    Ok(text.to_owned())
}

/// Prepares the bytes of a collection of Postman: a module whose function plays it.
///
/// # Errors
/// One line.
pub(crate) fn collection(name: &str, bytes: Vec<u8>) -> Result<String, String> {
    let text = String::from_utf8(bytes).map_err(|_| format!("{name}: not UTF-8"))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    Ok(format!(
        "import {{ collection, options }} from 'weir/postman'; export {{ options }}; export default collection({text});"
    ))
}

/// Whether a source is a module of CommonJS: it exports as such, and not as a module of ES.
fn is_common_js(text: &str) -> bool {
    let begins = |line: &str, words: &[&str]| words.iter().any(|word| line.starts_with(word));
    let is_es =
        text.lines().any(|line| begins(line, &["import ", "import{", "import\"", "import'", "export ", "export{"]));
    !is_es && (text.contains("module.exports") || text.lines().any(|line| line.trim_start().starts_with("exports.")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_of_common_js_keep_their_lines() {
        let made =
            prepared("a.js", b"const x = require('k6');\nmodule.exports.default = () => x;\n".to_vec()).expect("valid");
        assert!(made.lines().nth(1).is_some_and(|line| line.starts_with("module.exports.default")), "{made}");
        let es = "import x from './x.js';\nexport default x; // module.exports\n";
        assert_eq!(prepared("a.js", es.as_bytes().to_vec()).as_deref(), Ok(es));
    }
}
