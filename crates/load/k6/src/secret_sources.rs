//! PURE. Sources of the secrets of `k6/secrets`, as k6's `K6_SECRET_SOURCE` names them.

/// Variable that names the sources, one to a line.
pub(crate) const VARIABLE: &str = "K6_SECRET_SOURCE";
/// What a text shows in place of a secret.
const MASK: &str = "***";

/// Sources of secrets.
#[derive(Debug, Default)]
pub(crate) struct SecretSources {
    sources: Vec<SecretSource>,
    /// Values of all, the longest first.
    values: Vec<String>,
}

#[derive(Debug)]
struct SecretSource {
    name: String,
    is_default: bool,
    secrets: Vec<(String, String)>,
}

impl SecretSources {
    /// Sources that the variable among these names; `read` reads a file.
    ///
    /// # Errors
    /// One line that names the source.
    pub(crate) fn of(
        environment: &[(String, String)],
        read: impl Fn(&str) -> Result<String, String>,
    ) -> Result<Self, String> {
        let mut all = Self::default();
        // The last one wins, as in `__ENV`.
        let Some((_, text)) = environment.iter().rev().find(|(name, _)| name == VARIABLE) else { return Ok(all) };
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let (kind, arguments) = line.split_once('=').unwrap_or((line, ""));
            let source = source(kind, arguments, environment, &read).map_err(|why| format!("{VARIABLE}: {why}"))?;
            if all.sources.iter().any(|known| known.name == source.name) {
                return Err(format!("{VARIABLE}: two sources are '{}'; write name=NAME in one", source.name));
            }
            all.values.extend(source.secrets.iter().map(|(_, value)| value.clone()).filter(|value| !value.is_empty()));
            all.sources.push(source);
        }
        all.values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        all.values.dedup();
        Ok(all)
    }

    /// Whether there is a source of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.sources.iter().any(|source| source.name == name)
    }

    /// A secret of a source; without a name that of the default one.
    ///
    /// # Errors
    /// One line that says what there is not.
    pub(crate) fn get(&self, source: Option<&str>, key: &str) -> Result<&str, String> {
        let source = match (source, &self.sources[..]) {
            (_, []) => return Err(format!("no secret source; name one by -e {VARIABLE}=file=FILE")),
            (Some(name), sources) => sources.iter().find(|source| source.name == name),
            (None, [only]) => Some(only),
            (None, sources) => sources.iter().find(|source| source.is_default),
        };
        let source = source.ok_or("none of the secret sources is the default; write ',default' behind one")?;
        let found = source.secrets.iter().find(|(name, _)| name == key);
        found.map(|(_, value)| value.as_str()).ok_or_else(|| format!("no secret '{key}' in '{}'", source.name))
    }

    /// All secrets.
    pub(crate) fn values(&self) -> &[String] {
        &self.values
    }

    /// A text without the secrets.
    pub(crate) fn masked(&self, text: &str) -> String {
        self.values.iter().fold(text.to_owned(), |text, value| text.replace(value, MASK))
    }
}

fn source(
    kind: &str,
    arguments: &str,
    environment: &[(String, String)],
    read: &impl Fn(&str) -> Result<String, String>,
) -> Result<SecretSource, String> {
    let (mut name, mut is_default, mut own) = (String::new(), false, Vec::new());
    for argument in arguments.split(',').filter(|argument| !argument.is_empty()) {
        match argument.split_once('=') {
            Some(("name", given)) => given.clone_into(&mut name),
            None if argument == "default" => is_default = true,
            _ => own.push(argument),
        }
    }
    let secrets = match (kind, &own[..]) {
        ("file", [path]) => {
            let path = path.strip_prefix("filename=").unwrap_or(path);
            let lines = read(path).map_err(|error| format!("cannot read '{path}': {error}"))?;
            pairs(lines.lines().filter(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#')))
                .ok_or_else(|| format!("'{path}' has a line without a name; write NAME=VALUE"))?
        }
        ("file", _) => return Err("'file' needs one file; write file=FILE".to_owned()),
        ("mock", pairs_of_line) => {
            pairs(pairs_of_line.iter().copied()).ok_or("'mock' needs secrets; write mock=NAME=VALUE,NAME=VALUE")?
        }
        ("env", [prefix]) => of_prefix(environment, prefix),
        ("env", _) => return Err("'env' needs the beginning of names of variables; write env=SHOP_".to_owned()),
        ("url", _) => {
            return Err("'url' is not supported; fetch the secrets into a file, and write file=FILE".to_owned());
        }
        (other, _) => {
            return Err(format!("no secret source '{other}'; choose file=FILE, env=PREFIX or mock=NAME=VALUE"));
        }
    };
    Ok(SecretSource { name: if name.is_empty() { "default".to_owned() } else { name }, is_default, secrets })
}

/// Variables whose names begin with a prefix, without it.
fn of_prefix(environment: &[(String, String)], prefix: &str) -> Vec<(String, String)> {
    let own = environment.iter().rev().filter_map(|(name, value)| Some((name.strip_prefix(prefix)?, value)));
    own.map(|(name, value)| (name.to_owned(), value.clone())).collect()
}

/// Names and values; `None` if there is a text without a name.
fn pairs<'t>(texts: impl Iterator<Item = &'t str>) -> Option<Vec<(String, String)>> {
    let pair = |text: &str| {
        let (name, value) = text.split_once('=').filter(|(name, _)| !name.trim().is_empty())?;
        let value = value.trim();
        let quoted = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
        Some((name.trim().to_owned(), quoted.unwrap_or(value).to_owned()))
    };
    texts.map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(text: &str) -> Result<SecretSources, String> {
        let environment = [("SHOP_TOKEN", "of-env"), (VARIABLE, text)];
        let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned()));
        SecretSources::of(&environment, |path| match path {
            "a.env" => Ok("token=of file\n\n# no secret\nother = two=2 \n".to_owned()),
            "bad.env" => Ok("token\n".to_owned()),
            other => Err(format!("there is no {other}")),
        })
    }

    #[test]
    fn secrets_come_from_files_variables_and_the_line_itself() {
        for (text, key, expected) in [
            ("file=a.env", "token", "of file"),
            ("file=filename=a.env,name=x", "other", "two=2"),
            ("mock=cool=\"a b\",other=1", "cool", "a b"),
            ("env=SHOP_", "TOKEN", "of-env"),
        ] {
            assert_eq!(sources(text).and_then(|all| all.get(None, key).map(str::to_owned)), Ok(expected.to_owned()));
        }
    }

    #[test]
    fn one_of_several_sources_is_the_default_or_named() {
        let all = sources("mock=default,cool=1\nmock=name=another,cool=2").expect("valid");
        assert_eq!((all.get(None, "cool"), all.get(Some("another"), "cool")), (Ok("1"), Ok("2")));
        assert!(all.has("another") && !all.has("third"));
        let all = sources("mock=name=a,cool=1\nmock=name=b,cool=2").expect("valid");
        assert!(all.get(None, "cool").expect_err("none").contains("',default'"));
        assert!(sources("mock=a=1\nmock=b=2").expect_err("twice").contains("two sources are 'default'"));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, named) in [
            ("file=none.env", "cannot read 'none.env': there is no none.env"),
            ("file=bad.env", "'bad.env' has a line without a name"),
            ("file", "write file=FILE"),
            ("mock=x", "write mock=NAME=VALUE"),
            ("url=config=a.json", "'url' is not supported"),
            ("cloud", "no secret source 'cloud'"),
        ] {
            let why = sources(text).map(drop).expect_err(text);
            assert!(why.starts_with("K6_SECRET_SOURCE: ") && why.contains(named), "{why}");
        }
        let none = SecretSources::default();
        assert!(none.get(None, "a").expect_err("none").contains("-e K6_SECRET_SOURCE=file=FILE"));
        let one = sources("mock=a=1").expect("valid");
        assert_eq!(one.get(None, "b"), Err("no secret 'b' in 'default'".to_owned()));
        assert!(one.get(Some("x"), "a").is_err());
    }

    #[test]
    fn texts_show_none_of_them() {
        let all = sources("mock=a=key,b=key-and-more,c=").expect("valid");
        assert_eq!(all.masked("key, key-and-more and ke"), "***, *** and ke");
    }
}
