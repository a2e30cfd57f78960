//! Parts of pages that a load usually does not measure.

/// Media types of static files, by their beginning.
const STATIC_TYPES: [&str; 7] =
    ["image/", "font/", "video/", "audio/", "text/css", "application/font", "application/vnd.ms-font"];

/// Ends of the paths of static files.
const STATIC_ENDINGS: [&str; 16] = [
    ".css", ".js", ".mjs", ".png", ".jpg", ".jpeg", ".gif", ".svg", ".ico", ".woff", ".woff2", ".ttf", ".webp", ".map",
    ".mp4", ".avif",
];

/// Whether a recorded request is for a static file: an image, a font, a style sheet, a script of a page. `resource_type`
/// is what the page wanted, in the words of Chromium's HAR files; without it media type and path decide.
pub fn is_static_file(method: &str, url: &str, media_type: &str, resource_type: Option<&str>) -> bool {
    if method != "GET" {
        return false;
    }
    if let Some(kind) = resource_type {
        return matches!(kind, "image" | "font" | "stylesheet" | "script" | "media" | "manifest" | "texttrack");
    }
    let media_type = media_type.to_ascii_lowercase();
    let is_static_type = STATIC_TYPES.iter().any(|start| media_type.starts_with(start))
        || (media_type.contains("javascript") && !media_type.contains("json"));
    let path = url.split(['?', '#']).next().unwrap_or_default().to_ascii_lowercase();
    is_static_type || STATIC_ENDINGS.iter().any(|ending| path.ends_with(ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_pages_are_told_by_wish_type_and_path() {
        for (method, url, media_type, wanted, expected) in [
            ("GET", "http://h/a", "text/css; charset=utf-8", None, true),
            ("GET", "http://h/app.JS?v=1", "", None, true),
            ("GET", "http://h/logo.png", "image/png", Some("fetch"), false),
            ("GET", "http://h/render", "application/json", Some("script"), true),
            ("GET", "http://h/items", "application/json", None, false),
            ("POST", "http://h/a.js", "text/javascript", None, false),
        ] {
            assert_eq!(is_static_file(method, url, media_type, wanted), expected, "{method} {url}");
        }
    }
}
