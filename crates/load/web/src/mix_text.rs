//! A form as a mix file: the same load, to be kept beside the code.

use super::RunForm;
use weir_base::markup::toml_string;
use weir_load::mix_file::LOAD_KEYS;
use weir_request::url_text::UrlText;

/// Options that are keys of `[[scenario]]`, and not of `[load]`.
const SCENARIO_KEYS: [&str; 7] =
    ["data", "data-order", "setup", "teardown", "pacing", "continue-on-error", "keep-cookies"];
/// Options that become the request, where there is no scenario.
const REQUEST_OPTIONS: [&str; 2] = ["method", "body"];
/// Name of the file of the request.
const REQUEST_FILE: &str = "request.hurl";

/// Mix file, and the file of its request.
#[derive(Debug, PartialEq, Eq)]
pub struct MixText {
    /// Text of the mix file.
    pub toml: String,
    /// Text of `request.hurl`; none if the form has a scenario.
    pub request: Option<String>,
}

/// Options of a form by name.
struct FormOptions<'a>(&'a RunForm);

impl<'a> FormOptions<'a> {
    fn all(&self, name: &str) -> Vec<&'a str> {
        let own = self.0.options.iter().filter(move |(known, _)| known == name);
        own.map(|(_, value)| value.as_deref().unwrap_or("true")).collect()
    }

    fn one(&self, name: &str) -> Option<&'a str> {
        self.all(name).last().copied()
    }
}

/// Mix file of a form.
///
/// # Errors
/// One line: why there is none.
pub fn mix_text(form: &RunForm) -> Result<MixText, String> {
    let options = FormOptions(form);
    let mut scenarios = options.all("scenario");
    let is_file = !UrlText::of(&form.url).is_url() && (form.url.ends_with(".hurl") || form.url.ends_with(".toml"));
    scenarios.extend(is_file.then_some(form.url.as_str()));
    if scenarios.iter().any(|path| path.ends_with(".toml")) {
        return Err("the scenario is a TOML file; options of the form override its values".to_owned());
    }
    if let Some(path) = scenarios.iter().find(|path| !path.ends_with(".hurl")) {
        return Err(format!("{path} is named on the command line only"));
    }
    let has_scenario = !scenarios.is_empty();
    let (base_url, request) = match has_scenario {
        true => (if is_file { "" } else { form.url.as_str() }, None),
        false => {
            let (base, path) = split_url(&form.url);
            (base, request_text(&path, &options)?.into())
        }
    };
    let mut left_out = Vec::new();
    let mut load = vec!["[load]".to_owned()];
    load.extend((!base_url.is_empty()).then(|| format!("base_url = {}", toml_string(base_url))));
    let mut of_scenario = Vec::new();
    let (mut variables, mut thresholds) = (Vec::new(), Vec::new());
    let mut seen: Vec<&str> = Vec::new();
    for (name, value) in &form.options {
        if seen.contains(&name.as_str()) {
            continue;
        }
        seen.push(name);
        let (key, values) = (name.replace('-', "_"), options.all(name));
        let last = values.last().copied().unwrap_or_default();
        match name.as_str() {
            "scenario" | "data-order" | "abort-after" => {}
            "data" => of_scenario.push(data(last, options.one("data-order"))),
            "max-redirects" => of_scenario.push(format!("max_redirects = {}", value_text(last))),
            _ if SCENARIO_KEYS.contains(&name.as_str()) => {
                of_scenario.push(format!("{key} = {}", scalar(value.as_deref())));
            }
            _ if !has_scenario && REQUEST_OPTIONS.contains(&name.as_str()) => {}
            "header" => {
                let lines: Vec<String> = values.iter().map(|line| toml_string(line)).collect();
                load.push(format!("header = [{}]", lines.join(", ")));
            }
            "variable" => variables.extend(values.iter().filter_map(|text| {
                let (name, value) = text.split_once('=')?;
                Some(format!("{} = {}", toml_string(name), toml_string(value)))
            })),
            "slo" => thresholds.extend(values.iter().map(|slo| {
                let at = slo.find(['<', '>']).unwrap_or(slo.len());
                format!("{} = {}", toml_string(slo[..at].trim()), toml_string(slo[at..].trim()))
            })),
            "abort" => {
                let after = options.one("abort-after").map(|time| format!(", after = {}", toml_string(time)));
                thresholds.push(format!("abort = {{ when = {}{} }}", toml_string(last), after.unwrap_or_default()));
            }
            _ if LOAD_KEYS.contains(&key.as_str()) => load.push(format!("{key} = {}", scalar(value.as_deref()))),
            _ => left_out.extend(values.iter().map(|_| format!("--{name}"))),
        }
    }
    let mut lines = Vec::new();
    if !left_out.is_empty() {
        left_out.dedup();
        lines.extend([format!("# On the command line, beside -s: {}", left_out.join(" ")), String::new()]);
    }
    lines.extend(load);
    let files = if has_scenario { scenarios } else { vec![REQUEST_FILE] };
    for file in files {
        lines.extend([String::new(), "[[scenario]]".to_owned(), format!("file = {}", toml_string(file))]);
        lines.extend(of_scenario.iter().cloned());
    }
    for (name, members) in [("[variables]", variables), ("[thresholds]", thresholds)] {
        if !members.is_empty() {
            lines.extend([String::new(), name.to_owned()]);
            lines.extend(members);
        }
    }
    Ok(MixText { toml: lines.join("\n") + "\n", request })
}

/// URL before the path, and the path with its query.
fn split_url(url: &str) -> (&str, String) {
    let text = UrlText::of(url);
    let rest = text.after_authority.split('#').next().unwrap_or_default();
    (text.origin, if rest.starts_with('/') { rest.to_owned() } else { format!("/{rest}") })
}

/// The request as a scenario of one step.
fn request_text(path: &str, options: &FormOptions<'_>) -> Result<String, String> {
    let body = options.one("body");
    let method = options.one("method").unwrap_or(if body.is_some() { "POST" } else { "GET" });
    let mut lines = vec![format!("{method} {path}")];
    lines.extend(body.map(hurl_body).transpose()?);
    Ok(lines.join("\n") + "\n")
}

/// Body of a request in a `.hurl` file.
fn hurl_body(text: &str) -> Result<String, String> {
    if let Some(file) = text.strip_prefix('@') {
        return Ok(format!("file,{};", file.replace('\\', r"\\").replace(';', r"\;")));
    }
    if text.contains(['`', '\\', '\r']) || text.starts_with('\n') {
        return Err("the body has characters that a .hurl file cannot hold; upload it as a file".to_owned());
    }
    Ok(match text.strip_suffix('\n') {
        Some(lines) => format!("```\n{lines}\n```"),
        None if text.contains('\n') => {
            return Err("the body does not end with a line break; upload it as a file".to_owned());
        }
        None => format!("`{text}`"),
    })
}

fn data(file: &str, order: Option<&str>) -> String {
    match order {
        Some(order) => format!("data = {{ file = {}, order = {} }}", toml_string(file), toml_string(order)),
        None => format!("data = {}", toml_string(file)),
    }
}

/// Value of an option: a switch is true.
fn scalar(value: Option<&str>) -> String {
    value.map_or_else(|| "true".to_owned(), value_text)
}

/// Number as it is, else text.
fn value_text(value: &str) -> String {
    let is_number = value.parse::<u64>().is_ok_and(|number| number.to_string() == value);
    if is_number { value.to_owned() } else { toml_string(value) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn form(url: &str, options: &[(&str, Option<&str>)]) -> RunForm {
        let options = options.iter().map(|(name, value)| ((*name).to_owned(), value.map(str::to_owned))).collect();
        RunForm { url: url.to_owned(), options, label: String::new() }
    }

    #[test]
    fn a_request_is_a_scenario_of_one_step() {
        let options = [
            ("rate", Some("100")),
            ("duration", Some("30s")),
            ("header", Some("A: \"b\"")),
            ("header", Some("C: d")),
            ("body", Some(r#"{"a":1}"#)),
            ("slo", Some("p99<200ms")),
            ("spin", None),
        ];
        let mix = mix_text(&form("http://h:1/x?a=b#c", &options)).expect("a mix file");
        assert_eq!(mix.request.as_deref(), Some("POST /x?a=b\n`{\"a\":1}`\n"));
        let wanted = "# On the command line, beside -s: --spin\n\n[load]\nbase_url = \"http://h:1\"\nrate = 100\n\
                      duration = \"30s\"\nheader = [\"A: \\\"b\\\"\", \"C: d\"]\n\n[[scenario]]\n\
                      file = \"request.hurl\"\n\n[thresholds]\n\"p99\" = \"<200ms\"\n";
        assert_eq!(mix.toml, wanted);
    }

    #[test]
    fn scenarios_have_their_data_and_others_are_on_the_command_line_only() {
        let options = [
            ("scenario", Some("shop.hurl")),
            ("users", Some("5")),
            ("data", Some("u.csv")),
            ("data-order", Some("unique")),
        ];
        let mix = mix_text(&form("http://h", &options)).expect("a mix file");
        assert_eq!(
            mix.toml,
            "[load]\nbase_url = \"http://h\"\nusers = 5\n\n[[scenario]]\nfile = \"shop.hurl\"\n\
             data = { file = \"u.csv\", order = \"unique\" }\n"
        );
        assert_eq!(mix.request, None);
        for path in ["mix.toml", "a.lua", "a.py"] {
            assert!(mix_text(&form("http://h", &[("scenario", Some(path))])).is_err(), "{path}");
        }
        assert!(mix_text(&form("http://h", &[("body", Some("a`b"))])).is_err());
    }

    proptest! {
        /// Oracle: the parser of TOML.
        #[test]
        fn text_comes_back_from_toml(text in any::<String>()) {
            let read: toml::Table = format!("a = {}", toml_string(&text)).parse().expect("valid TOML");
            prop_assert_eq!(read["a"].as_str(), Some(text.as_str()));
        }
    }
}
