//! Names of variables: those of a file become names that a `.hurl` file can have.

use std::collections::{BTreeMap, BTreeSet};

use weir_hurl::TemplateFunction;

/// Number of the iteration in scenarios of weir, which a variable of a file must not hide by chance.
const SEQUENCE: &str = "seq";

/// Names of the variables of a scenario, by those of the files.
#[derive(Debug, Default)]
pub(crate) struct VariableNameTable {
    names: BTreeMap<String, String>,
    taken: BTreeSet<String>,
    /// Numbers from which on names with a number may be free.
    numbers: BTreeMap<String, usize>,
}

impl VariableNameTable {
    /// Name of a variable of a file: the same one where it is possible, and always the same for the same variable.
    pub(crate) fn name(&mut self, original: &str) -> String {
        if let Some(name) = self.names.get(original) {
            return name.clone();
        }
        let name = self.unique(original);
        self.names.insert(original.to_owned(), name.clone());
        name
    }

    /// Name for a new variable, like the proposed one.
    pub(crate) fn unique(&mut self, proposed: &str) -> String {
        let base = identifier(proposed);
        let mut name = base.clone();
        if self.taken.contains(&name) {
            let number = self.numbers.entry(base.clone()).or_insert(2);
            while self.taken.contains(&name) {
                name = format!("{base}_{number}");
                *number += 1;
            }
        }
        self.taken.insert(name.clone());
        name
    }
}

/// Letters, digits, `-` and `_` of a text, as the name of a variable.
pub(crate) fn identifier(text: &str) -> String {
    let mut name = String::new();
    for c in text.trim().chars().take(64) {
        match c {
            c if c.is_ascii_alphanumeric() || c == '_' || c == '-' => name.push(c),
            _ if name.ends_with('_') => {}
            _ => name.push('_'),
        }
    }
    let name = name.trim_matches('_').to_owned();
    let is_function = name == SEQUENCE || TemplateFunction::names().any(|function| function == name);
    match name {
        name if name.is_empty() => "value".to_owned(),
        name if is_function || name.starts_with(|c: char| !c.is_ascii_alphabetic()) => format!("v_{name}"),
        name => name,
    }
}

/// Snake case of a name: `X-CSRF-Token` is `x_csrf_token`.
pub(crate) fn snake_case(text: &str) -> String {
    let mut name = String::new();
    let mut before = '_';
    for c in text.chars() {
        if c.is_ascii_uppercase() && before.is_ascii_lowercase() {
            name.push('_');
        }
        name.push(if c == '-' { '_' } else { c.to_ascii_lowercase() });
        before = c;
    }
    identifier(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_file_where_it_is_possible() {
        let mut names = VariableNameTable::default();
        assert_eq!(names.name("baseUrl"), "baseUrl");
        assert_eq!(names.name("base url"), "base_url");
        assert_eq!(names.name("base.url"), "base_url_2");
        assert_eq!(names.name("base url"), "base_url");
        assert_eq!(names.name("newUuid"), "v_newUuid");
        assert_eq!(names.name("seq"), "v_seq");
        assert_eq!(names.name("ü"), "value");
        assert_eq!(snake_case("X-CSRF-Token"), "x_csrf_token");
        assert_eq!(snake_case("accessToken"), "access_token");
    }
}
