//! Modules as byte code: compiled by the first interpreter that imports them, and loaded by the others.
#![allow(unsafe_code, reason = "byte code is loaded as its writer has left it")]

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use rquickjs::loader::{ImportAttributes, Loader};
use rquickjs::module::{Declared, WriteOptions};
use rquickjs::{Ctx, Exception, Function, Module, Result};
use weir_machine::input_file;
use weir_machine::lock::lock;

use super::module_files::ModuleFiles;
use crate::{host, modules, source_text};

/// Modules of a script, shared by all users.
#[derive(Clone, Debug, Default)]
pub(crate) struct CompiledModules {
    files: Arc<ModuleFiles>,
    /// Byte code by names.
    byte_code: Arc<Mutex<HashMap<String, Arc<[u8]>>>>,
}

impl CompiledModules {
    /// Modules of these files; none is compiled yet.
    pub(crate) fn new(files: ModuleFiles) -> Self {
        Self { files: Arc::new(files), byte_code: Arc::default() }
    }

    /// Where modules come from.
    pub(crate) fn files(&self) -> Arc<ModuleFiles> {
        Arc::clone(&self.files)
    }

    /// Whether an interpreter has imported a module.
    pub(crate) fn has_loaded(&self, name: &str) -> bool {
        lock(&self.byte_code).contains_key(name)
    }

    /// Paths of the files among those that interpreters have imported.
    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        let byte_code = lock(&self.byte_code);
        let files = byte_code.iter().filter(|(name, bytes)| !bytes.is_empty() && modules::source(name).is_none());
        files.map(|(name, _)| PathBuf::from(name)).collect()
    }

    fn load<'js>(&self, ctx: &Ctx<'js>, name: &str) -> Result<Module<'js, Declared>> {
        if let Some(module) = host::declared(ctx, name) {
            // It has none, and is there.
            lock(&self.byte_code).entry(name.to_owned()).or_insert_with(|| Arc::from([]));
            return module;
        }
        let known = lock(&self.byte_code).get(name).cloned();
        if let Some(bytes) = known {
            // SAFETY: they are what `Module::write` has returned, in this process.
            let module = unsafe { Module::load(ctx.clone(), &bytes) }?;
            self.describe(&module, name)?;
            return Ok(module);
        }
        let text = match modules::source(name) {
            Some(text) => text.to_owned(),
            None => {
                let read = input_file::read(name);
                let bytes = read.map_err(|error| Exception::throw_reference(ctx, &format!("{name}: {error}")))?;
                let made = match self.files.collection.as_deref() == Some(name) {
                    true => source_text::collection(name, bytes),
                    false => source_text::prepared(name, bytes),
                };
                made.map_err(|why| Exception::throw_syntax(ctx, &why))?
            }
        };
        let module = Module::declare(ctx.clone(), name, text)?;
        let bytes = module.write(WriteOptions { strip_source: true, ..WriteOptions::default() })?;
        lock(&self.byte_code).insert(name.to_owned(), bytes.into());
        self.describe(&module, name)?;
        Ok(module)
    }

    /// Sets `import.meta.resolve` of a file.
    fn describe(&self, module: &Module<'_, Declared>, name: &str) -> Result<()> {
        if modules::is_own(name) {
            return Ok(());
        }
        let (files, base) = (Arc::clone(&self.files), name.to_owned());
        let meta = module.meta()?;
        let resolve = Function::new(meta.ctx().clone(), move |ctx: Ctx<'_>, name: String| {
            let found = files.resolve(&base, &name).map_err(|why| Exception::throw_reference(&ctx, &why))?;
            Ok::<_, rquickjs::Error>(if found.starts_with('/') { format!("file://{found}") } else { found })
        })?;
        meta.set("resolve", resolve)
    }
}

/// Loader of an interpreter.
#[derive(Debug)]
pub(crate) struct ModuleLoader(CompiledModules);

impl ModuleLoader {
    /// Loader of these modules.
    pub(crate) fn new(modules: &CompiledModules) -> Self {
        Self(modules.clone())
    }
}

impl Loader for ModuleLoader {
    fn load<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        name: &str,
        _attributes: Option<ImportAttributes<'js>>,
    ) -> Result<Module<'js, Declared>> {
        self.0.load(ctx, name)
    }
}
