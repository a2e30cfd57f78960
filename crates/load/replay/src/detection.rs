//! Format of a log, detected from its first lines.

use super::access_format::AccessFormat;
use super::line_error::LineError;

/// Choice among the known formats: that which reads most of the first lines.
#[derive(Clone, Debug)]
pub struct FormatDetection {
    candidates: Vec<FormatCandidate>,
    lines: usize,
}

#[derive(Clone, Debug)]
struct FormatCandidate {
    name: &'static str,
    format: AccessFormat,
    /// Lines that it reads.
    read: usize,
    /// First error of the format.
    error: Option<LineError>,
}

impl FormatDetection {
    /// Number of lines that are enough.
    pub const LINES: usize = 50;

    /// Choice without a line.
    pub fn new() -> Self {
        let of = |(name, format)| FormatCandidate { name, format, read: 0, error: None };
        Self { candidates: AccessFormat::known().into_iter().map(of).collect(), lines: 0 }
    }

    /// Takes a line.
    pub fn add(&mut self, line: &str) {
        self.lines += 1;
        for candidate in &mut self.candidates {
            match candidate.format.record(line) {
                // A line without a request is read, too.
                Ok(_) | Err(LineError::NoRequest(_)) => candidate.read += 1,
                Err(error) => {
                    candidate.error.get_or_insert(error);
                }
            }
        }
    }

    /// Format with its name; of equals the more special one.
    ///
    /// # Errors
    /// If none reads a line: the reason of the one that is the likeliest.
    pub fn format(self, first_line: &str) -> Result<(&'static str, AccessFormat), LineError> {
        let most = self.candidates.iter().map(|candidate| candidate.read).max().unwrap_or(0);
        let is_json = first_line.trim_start().starts_with('{');
        let mut all = self.candidates.into_iter();
        if most > 0 {
            let chosen = all.find(|candidate| candidate.read == most);
            return chosen.map(|chosen| (chosen.name, chosen.format)).ok_or(LineError::NoTime);
        }
        let likely =
            all.find(|candidate| (candidate.name == "json") == is_json && (is_json || candidate.name == "common"));
        Err(likely.and_then(|candidate| candidate.error).unwrap_or(LineError::NoTime))
    }
}

impl Default for FormatDetection {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detected(lines: &[&str]) -> Result<&'static str, LineError> {
        let mut detection = FormatDetection::new();
        lines.iter().for_each(|line| detection.add(line));
        detection.format(lines[0]).map(|(name, _)| name)
    }

    #[test]
    fn the_format_is_told_from_the_lines() {
        let time = "[10/Oct/2000:13:55:36 -0700]";
        let combined = format!("::1 - - {time} \"GET / HTTP/1.1\" 200 5 \"-\" \"a b\"");
        let common = format!("::1 - - {time} \"GET / HTTP/1.1\" 200 5");
        let vhost = format!("h:80 {combined}");
        let tls = format!("::1 - - {time} \"\\x16\\x03\" 400 5 \"-\" \"-\"");
        let json = r#"{"ts":1646861401,"method":"GET","path":"/"}"#;
        assert_eq!(detected(&[&combined]), Ok("combined"));
        assert_eq!(detected(&["garbage", &tls, &combined]), Ok("combined"));
        assert_eq!(detected(&[&common]), Ok("common"));
        assert_eq!(detected(&[&vhost]), Ok("vhost"));
        assert_eq!(detected(&[json, "{"]), Ok("json"));
        let envoy = "[2016-04-15T20:17:00.310Z] \"GET /x HTTP/2\" 204 - 154 0 226 100 \"x\" \"a\" \"i\" \"h\" \"u\"";
        assert_eq!(detected(&[envoy]), Ok("envoy"));
    }

    #[test]
    fn a_log_that_no_format_reads_has_a_reason() {
        assert_eq!(detected(&["hello world"]), Err(LineError::Literal(" ".to_owned())));
        assert!(matches!(detected(&["{\"a\":1}"]), Err(LineError::NoTime)));
        assert!(matches!(detected(&["{\"a\":"]), Err(LineError::Json(_))));
    }
}
