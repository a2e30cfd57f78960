//! Files of other tools: nothing panics, an error has a line of the file, and what is imported is a scenario that is
//! parsed again and compiled. The first byte names the kind; the rest is the file, or several files between lines `----`.

use weir_hurl::ErrorReport;
use weir_import::{
    ImportFile, ImportKind, ImportSettings, import, to_curl, to_hurl, to_json, to_mix, to_variables_file,
};
use weir_scenario::plan::{ScenarioPlan, ScenarioSettings};
use weir_scenario::value::Value;

crate::target!(|bytes: &[u8]| {
    let Some((first, rest)) = bytes.split_first() else { return };
    let text = String::from_utf8_lossy(rest);
    let kinds = ImportKind::ALL.len();
    // One more: the kind is told from the content.
    let kind = ImportKind::ALL.get(usize::from(*first) % (kinds + 1)).copied();
    let files: Vec<ImportFile<'_>> =
        text.split("\n----\n").map(|text| ImportFile { name: "file", text: text.into(), kind }).collect();
    let settings = ImportSettings { all: first & 0x80 != 0, ..ImportSettings::default() };
    let import = match import(files, &settings) {
        Ok(import) => import,
        Err(error) => {
            let lines = text.split('\n').count() + 1;
            assert!(usize::try_from(error.line).unwrap_or(usize::MAX) <= lines && error.line > 0, "{error}");
            return;
        }
    };
    for omission in &import.omissions {
        assert!(!omission.to_string().contains('\n'), "{omission}");
    }
    for scenario in &import.scenarios {
        let text = to_hurl(scenario);
        let file =
            weir_hurl::parse(&text).unwrap_or_else(|errors| panic!("{}", ErrorReport::new("made", &text, &errors)));
        let active = scenario.steps.iter().filter(|step| !step.is_disabled).count();
        assert_eq!(file.entries.len(), active, "{text}");
        if active == 0 {
            continue;
        }
        // All variables are there: those of the import, and the columns of its data.
        let columns = scenario.load.data.iter().flat_map(|data| data.columns.iter().cloned());
        let columns: Vec<String> =
            columns.chain(import.variables.iter().map(|variable| variable.name.clone())).collect();
        let settings = ScenarioSettings {
            columns,
            variables: vec![("unused".to_owned(), Value::text("x"))],
            ..ScenarioSettings::default()
        };
        let mut files = |_: &str| Ok(Vec::new());
        if let Err(errors) = ScenarioPlan::compile(&file, &settings, &mut files) {
            panic!("{}", ErrorReport::new("made", &text, &errors));
        }
    }
    let names: Vec<String> = import.scenarios.iter().map(|_| "a.hurl".to_owned()).collect();
    assert!(!to_mix(&import, &names).is_empty() && !to_json(&import).is_empty());
    for line in to_variables_file(&import).lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        assert!(line.contains('='), "{line}");
    }
    let _ = to_curl(&import);
});
