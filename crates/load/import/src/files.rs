//! Files that the steps of an import name.

use weir_hurl::MultipartValue;

use crate::collection::{Import, ImportedData};
use crate::omission::OmissionKind;
use crate::passes;
use crate::request::ImportedBody;

impl Import {
    /// Gives rows of data the columns that their files have in the first line, where the import names none. `read` gets the
    /// imported file and the data.
    pub fn read_columns(&mut self, read: &mut dyn FnMut(&str, &ImportedData) -> Option<Vec<String>>) {
        for scenario in &mut self.scenarios {
            let file = scenario.steps.first().map(|step| step.file.clone()).unwrap_or_default();
            if let Some(data) = scenario.load.data.as_mut().filter(|data| data.columns.is_empty()) {
                data.columns = read(&file, data).unwrap_or_default();
            }
        }
        passes::find_undefined(self);
    }

    /// Gives the files that steps and data name other names, by the imported file and the name in it. A file without one
    /// (`None`) is not there: its part is left out.
    pub fn map_files(&mut self, map: &mut dyn FnMut(&str, &str) -> Option<String>) {
        for scenario in &mut self.scenarios {
            for step in &mut scenario.steps {
                let file = step.file.clone();
                let mut missing = Vec::new();
                let mut mapped = |name: &str| {
                    let found = map(&file, name);
                    if found.is_none() {
                        missing.push(name.to_owned());
                    }
                    found
                };
                match &mut step.request.body {
                    ImportedBody::File(name) => match mapped(name) {
                        Some(found) => *name = found,
                        None => step.request.body = ImportedBody::None,
                    },
                    ImportedBody::Multipart(parts) => {
                        parts.retain_mut(|part| match &mut part.value {
                            MultipartValue::File { name, .. } => match mapped(&crate::text::source(name)) {
                                Some(found) => {
                                    *name = weir_hurl::Template::text(found);
                                    true
                                }
                                None => false,
                            },
                            MultipartValue::Text(_) => true,
                        });
                        if parts.is_empty() {
                            step.request.body = ImportedBody::None;
                        }
                    }
                    _ => {}
                }
                for name in missing {
                    Self::omit(
                        &mut self.omissions,
                        step,
                        OmissionKind::File,
                        format!("the file {name}, which is not there"),
                    );
                }
            }
            if let Some(data) = &mut scenario.load.data {
                let file = scenario.steps.first().map(|step| step.file.clone()).unwrap_or_default();
                match map(&file, &data.file) {
                    Some(found) => data.file = found,
                    None => {
                        let what = format!("the rows of {}, which is not there", data.file);
                        scenario.notes.push(format!("left out: {what}"));
                        self.omissions.push(crate::Omission { file, line: 1, kind: OmissionKind::File, what });
                        scenario.load.data = None;
                    }
                }
            }
        }
        passes::find_undefined(self);
    }
}
