//! Environments of JetBrains: `http-client.env.json`, and the private file beside it.

use crate::error::Mismatch;
use crate::http_environment::HttpEnvironment;
use crate::omission::OmissionKind;
use crate::placeholder::define;
use crate::session::ImportSession;
use crate::tree::parse_json;

/// Name of the environment that all others share.
const SHARED: &str = "$shared";

/// Reads the environments of a file; which one holds is decided when all files are read.
pub(super) fn read(source: &str, session: &mut ImportSession) -> Result<(), Mismatch> {
    let root = parse_json(source)?;
    let is_private = session.file.contains(".private.");
    let mut is_empty = true;
    for (name, node) in root.members().filter(|(_, node)| node.is_map()) {
        is_empty = false;
        let mut variables = Vec::new();
        for (key, value) in node.members() {
            match value.scalar() {
                Some(text) => variables.push((value.line, key.into_owned(), text)),
                None => session.omit(value.line, OmissionKind::Variable, format!("{key} of the environment {name}")),
            }
        }
        let file = session.file.clone();
        session.environments.push(HttpEnvironment {
            name: name.into_owned(),
            is_private,
            line: node.line,
            file,
            variables,
        });
    }
    if is_empty { Err(Mismatch::new(root.line, "environments with variables", root.noun())) } else { Ok(()) }
}

/// Defines the variables of the first environment: private ones first, then public ones, then what all share.
pub(crate) fn define_all(session: &mut ImportSession) {
    let all = std::mem::take(&mut session.environments);
    let own = || all.iter().filter(|environment| environment.name != SHARED);
    let Some(chosen) = own().find(|environment| !environment.is_private).or_else(|| own().next()) else {
        return define_of(&all, SHARED, session);
    };
    define_of(&all, &chosen.name, session);
    define_of(&all, SHARED, session);
    let mut others: Vec<&str> = Vec::new();
    for other in own().filter(|other| other.name != chosen.name) {
        if !others.contains(&other.name.as_str()) {
            others.push(&other.name);
            session.file.clone_from(&other.file);
            let what = format!("the environment {}; {} is taken", other.name, chosen.name);
            session.omit_quietly(other.line, OmissionKind::Setting, &what);
        }
    }
}

fn define_of(all: &[HttpEnvironment], name: &str, session: &mut ImportSession) {
    for is_private in [true, false] {
        for environment in all.iter().filter(|own| own.name == name && own.is_private == is_private) {
            for (line, key, value) in &environment.variables {
                define(key, value, is_private, *line, session);
            }
        }
    }
}
