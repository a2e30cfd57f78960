//! Files that an import writes: scenarios, a mix, variables, rows of data.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use weir_import::{Import, ImportedScenario, to_curl, to_hurl, to_json, to_mix, to_variables_file};
use weir_machine::input_file::FileIdentity;
use weir_machine::private_file::PRIVATE_MODE;

use crate::data_rows::{columns, with_header};
use crate::import_input::ImportInput;
use crate::variables_file::read_variables;
use weir_command::Messages;
use weir_command::stdout::print;
use weir_load::steps::Value;

/// Format that an import is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportFormat {
    /// Scenario, with a mix, variables and rows of data beside it.
    Hurl,
    /// Commands of cURL.
    Curl,
    /// JSON.
    Json,
}

/// Rejects a file that is there, unless it may be replaced: a user may have edited it.
///
/// # Errors
/// One line with the file.
pub fn ensure_free(file: &Path, may_replace: bool) -> Result<(), String> {
    if file.exists() && !may_replace {
        let file = file.display();
        return Err(format!("{file} is there already; add --force to write over it, or choose another name"));
    }
    Ok(())
}

/// Destination and options of an import's output.
#[derive(Debug)]
pub struct ImportOutput<'a> {
    /// File of the scenario; stdout without one.
    pub path: Option<&'a Path>,
    /// Format of the text.
    pub format: ImportFormat,
    /// Files that were imported.
    pub input: &'a ImportInput,
    /// Whether values and other lines in a file of variables that is there stay.
    pub keeps_values: bool,
    /// Whether scenarios that are there are replaced.
    pub overwrites: bool,
    /// Flags that the load needs, too, each after a space.
    pub load_flags: &'a str,
}

/// Writes a script that an import has made to a file, or to stdout.
///
/// # Errors
/// One line, if the file is there already or cannot be written.
pub fn write_script(path: Option<&Path>, text: &str, overwrites: bool, messages: &Messages) -> Result<(), String> {
    let Some(path) = path.filter(|path| path.as_os_str() != "-") else { return print(text, false) };
    if FileIdentity::of_path(path).is_some_and(FileIdentity::is_input) {
        return Err(format!("-o would write over {}, which is an input; give another file", path.display()));
    }
    ensure_free(path, overwrites)?;
    write(path, text)?;
    messages.note(&format!("next: weir run {0}; weir load -s {0} -c 10 -d 30s", path.display()));
    Ok(())
}

impl ImportOutput<'_> {
    /// Writes an import; returns it with the names that its files have now.
    ///
    /// # Errors
    /// One line, if a file cannot be written.
    pub fn write(&self, mut import: Import, messages: &Messages) -> Result<Import, String> {
        let path = self.path.filter(|path| path.as_os_str() != "-");
        let folder = path.and_then(Path::parent).unwrap_or(Path::new(""));
        let mut read: Vec<String> = Vec::new();
        import.read_columns(&mut |file, data| columns(&self.input.path_of(file, &data.file), data));
        import.map_files(&mut |file, name| {
            let found = self.input.path_of(file, name);
            let name = found.is_file().then(|| relative(&found, folder))?;
            if !read.contains(&name) {
                read.push(name.clone());
            }
            Some(name)
        });
        if !read.is_empty() {
            messages.note(&format!("reads local files: {}", read.join(", ")));
        }
        let Some(path) = path else {
            print(&self.text(&import), false)?;
            if self.format == ImportFormat::Hurl {
                self.hint_of_stdout(&import, messages);
            }
            return Ok(import);
        };
        self.check_targets(&import, path, &read)?;
        match self.format {
            ImportFormat::Curl | ImportFormat::Json => {
                write(path, &self.text(&import))?;
                if self.format == ImportFormat::Curl {
                    self.variables(&import, path, messages)?;
                }
            }
            ImportFormat::Hurl => self.scenarios(&mut import, path, messages)?,
        }
        Ok(import)
    }

    /// Rejects scenarios and mixes that are there, and inputs in any case: a user may have edited them.
    fn check_targets(&self, import: &Import, path: &Path, named: &[String]) -> Result<(), String> {
        let folder = path.parent().unwrap_or(Path::new(""));
        let mut targets = vec![path.to_owned()];
        if self.format == ImportFormat::Hurl {
            let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
            let names = file_names(&stem, &import.scenarios);
            targets = names.iter().map(|name| path.with_file_name(name)).collect();
            if import.has_load() {
                targets.push(path.with_file_name(format!("{stem}.toml")));
            }
        }
        for target in targets.iter().filter(|target| target.exists()) {
            // Also one that an imported file names: the scenario sends it.
            let is_named = |name: &String| is_same_file(&folder.join(name), target);
            if FileIdentity::of_path(target).is_some_and(FileIdentity::is_input) || named.iter().any(is_named) {
                return Err(format!("-o would write over {}, which is an input; give another file", target.display()));
            }
            ensure_free(target, self.overwrites)?;
        }
        Ok(())
    }

    fn text(&self, import: &Import) -> String {
        match self.format {
            ImportFormat::Curl => to_curl(import),
            ImportFormat::Json => to_json(import),
            ImportFormat::Hurl => import.scenarios.iter().map(to_hurl).collect::<Vec<_>>().join("\n"),
        }
    }

    fn hint_of_stdout(&self, import: &Import, messages: &Messages) {
        if import.has_load() {
            messages.note("users, think times and data are in a mix file, which -o FILE.hurl writes");
        }
        let names: Vec<&str> = import.variables.iter().map(|variable| variable.name.as_str()).collect();
        if !names.is_empty() {
            messages.note(&format!("variables: {}; -o FILE.hurl writes their values beside it", names.join(", ")));
        }
    }

    fn scenarios(&self, import: &mut Import, path: &Path, messages: &Messages) -> Result<(), String> {
        let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        let names = file_names(&stem, &import.scenarios);
        self.data(import, path, &stem, messages)?;
        for (scenario, name) in import.scenarios.iter().zip(&names) {
            write(&path.with_file_name(name), &to_hurl(scenario))?;
            let steps = scenario.steps.iter().filter(|step| !step.is_disabled).count();
            let shown = path.with_file_name(name);
            messages.note(&format!(
                "{}: {} of {}",
                shown.display(),
                count(steps, "request"),
                self.input.names().join(", ")
            ));
        }
        let mut play = path.with_file_name(names.first().map_or("", String::as_str));
        if import.has_load() {
            let mix = path.with_file_name(format!("{stem}.toml"));
            write(&mix, &to_mix(import, &names))?;
            messages.note(&format!("{}: users, think times and data", mix.display()));
            play = mix;
        }
        let variables = self.variables(import, path, messages)?;
        let variables = variables.map(|file| format!(" --variables-file {}", file.display())).unwrap_or_default();
        if import.active_steps() > 0 {
            messages.note(&format!("next: weir load -s {}{variables}{}", play.display(), self.load_flags));
        }
        Ok(())
    }

    /// Writes rows of data that need a line of names.
    fn data(&self, import: &mut Import, path: &Path, stem: &str, messages: &Messages) -> Result<(), String> {
        let folder = path.parent().unwrap_or(Path::new(""));
        let mut made: BTreeMap<String, String> = BTreeMap::new();
        for scenario in &mut import.scenarios {
            let Some(data) = &mut scenario.load.data else { continue };
            if let Some(name) = made.get(&data.file) {
                data.file.clone_from(name);
                continue;
            }
            let source = folder.join(&data.file);
            let content = fs::read(&source).map_err(|error| format!("cannot read {}: {error}", source.display()))?;
            if let Some(content) = with_header(data, &content)? {
                let number = if made.is_empty() { String::new() } else { format!("-{}", made.len() + 1) };
                let name = format!("{stem}{number}.csv");
                let target = path.with_file_name(&name);
                if is_same_file(&target, &source) {
                    return Err(format!(
                        "{}: rows of the plan, which need a line of names; choose another -o",
                        target.display()
                    ));
                }
                let is_input = FileIdentity::of_path(&target).is_some_and(FileIdentity::is_input);
                ensure_free(&target, self.overwrites && !is_input)?;
                fs::write(&target, content).map_err(|error| format!("cannot write {}: {error}", target.display()))?;
                messages.note(&format!("{}: rows of {}, with the names of the columns", target.display(), data.file));
                made.insert(std::mem::replace(&mut data.file, name.clone()), name);
            }
        }
        Ok(())
    }

    /// Writes the values of variables, if there are any; values that someone has filled in stay.
    fn variables(&self, import: &Import, path: &Path, messages: &Messages) -> Result<Option<PathBuf>, String> {
        if import.variables.is_empty() {
            return Ok(None);
        }
        let file = path.with_extension("env");
        let mut import = import.clone();
        let there = match self.keeps_values && file.exists() {
            true => fs::read_to_string(&file).map_err(|error| format!("cannot read {}: {error}", file.display()))?,
            false => String::new(),
        };
        // A file of another notation is one of nothing that is known.
        let known = if there.is_empty() { Vec::new() } else { read_variables(&file).unwrap_or_default() };
        let known: HashMap<String, String> = known.into_iter().filter(|(_, value)| !value.is_empty()).collect();
        for variable in &mut import.variables {
            if let Some(value) = known.get(&variable.name) {
                variable.value = Value::of_text(value).template_text();
            }
        }
        write_private(&file, &with_lines_of(&there, &to_variables_file(&import)))?;
        let missing: Vec<&str> = import.undefined().map(|variable| variable.name.as_str()).collect();
        let missing = match missing.is_empty() {
            true => String::new(),
            false => format!("; fill in {}", missing.join(", ")),
        };
        messages.note(&format!("{}: {}{missing}", file.display(), count(import.variables.len(), "variable")));
        Ok(Some(file))
    }
}

/// A file of variables that is there with the lines of a new one: those of its variables that have no value are
/// replaced, those of other variables are added, and all else stays as it is.
fn with_lines_of(there: &str, new: &str) -> String {
    if there.trim().is_empty() {
        return new.to_owned();
    }
    let mut lines: HashMap<&str, &str> = HashMap::new();
    for (name, line, _) in new.lines().filter_map(variable_line) {
        lines.entry(name).or_insert(line);
    }
    let mut text = String::with_capacity(there.len() + new.len());
    let mut has: HashSet<&str> = HashSet::new();
    for line in there.lines() {
        let found = variable_line(line);
        has.extend(found.map(|(name, ..)| name));
        let empty = found.filter(|(.., value)| value.is_empty());
        let replaced = empty.and_then(|(name, ..)| lines.get(name));
        text.extend([replaced.map_or(line, |line| *line), "\n"]);
    }
    let mut title = None;
    for line in new.lines() {
        match variable_line(line) {
            Some((name, ..)) if !has.contains(name) => {
                if let Some(title) = title.take() {
                    text.extend(["\n", title, "\n"]);
                }
                text.extend([line, "\n"]);
            }
            None if !line.is_empty() => title = Some(line),
            _ => {}
        }
    }
    text
}

/// Name of the variable of a line, the line and the value as it is written.
fn variable_line(line: &str) -> Option<(&str, &str, &str)> {
    let (name, value) = line.trim_start_matches('\u{feff}').trim().split_once('=')?;
    (!name.starts_with('#')).then_some((name.trim(), line, value.trim()))
}

fn is_same_file(one: &Path, other: &Path) -> bool {
    FileIdentity::of_path(one).is_some_and(|one| FileIdentity::of_path(other) == Some(one))
}

fn count(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// Names of the files of scenarios: that of the output, with the name of the thread group if there are several.
fn file_names(stem: &str, scenarios: &[ImportedScenario]) -> Vec<String> {
    if scenarios.len() <= 1 {
        return scenarios.iter().map(|_| format!("{stem}.hurl")).collect();
    }
    let mut names: Vec<String> = Vec::new();
    for (index, scenario) in scenarios.iter().enumerate() {
        let own: String = scenario
            .name
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' })
            .collect();
        let own = own.split('-').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-");
        let own: String = own.chars().take(40).collect();
        let name = format!("{stem}-{own}.hurl");
        let is_new = !own.is_empty() && !names.contains(&name);
        names.push(if is_new { name } else { format!("{stem}-{}.hurl", index + 1) });
    }
    names
}

/// Path of a file as seen from a folder: its name alone in the same folder, otherwise its whole path.
fn relative(file: &Path, folder: &Path) -> String {
    let here = Path::new(".");
    let folder = if folder.as_os_str().is_empty() { here } else { folder };
    let whole = fs::canonicalize(file).unwrap_or_else(|_| file.to_path_buf());
    let folder = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_path_buf());
    whole.strip_prefix(&folder).unwrap_or(&whole).display().to_string()
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))
}

fn write_private(path: &Path, text: &str) -> Result<(), String> {
    let mut options = File::options();
    let opened = options.write(true).create(true).truncate(true).mode(PRIVATE_MODE).open(path);
    let written = opened.and_then(|mut file| {
        // The mode of a file that was there before is another one.
        file.set_permissions(fs::Permissions::from_mode(PRIVATE_MODE))?;
        file.write_all(text.as_bytes())
    });
    written.map_err(|error| format!("cannot write {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_others_stay_in_a_file_of_variables() {
        let there = "# mine\nother=1\n\nhost = h # x\npassword=\nno line of a variable";
        let new = "# needed\nhost=\n\n# values\npage=2\n\n# secrets\npassword=S\n";
        assert_eq!(with_lines_of("\n", new), new);
        let merged = with_lines_of(there, new);
        let lines = "# mine\nother=1\n\nhost = h # x\npassword=S\nno line of a variable\n";
        assert_eq!(merged, format!("{lines}\n# values\npage=2\n"));
        assert_eq!(with_lines_of(&merged, new), merged);
    }
}
