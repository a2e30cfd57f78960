//! Files that are read in parts, and those of CSV.
#![allow(clippy::needless_pass_by_value, reason = "arguments of functions of JavaScript are values")]

use rquickjs::module::Exports;
use rquickjs::{ArrayBuffer, Ctx, Exception, Function, Object, Result};

use super::state::Phase;
use super::user_of;
use crate::csv_rows::{CsvSettings, csv_rows};
use crate::engine::module_files::beside;

pub(super) fn export<'js>(ctx: &Ctx<'js>, exports: &Exports<'js>) -> Result<()> {
    exports.export("csvMake", Function::new(ctx.clone(), csv_make)?)?;
    exports.export("fileOpen", Function::new(ctx.clone(), file_open)?)?;
    exports.export("fileRead", Function::new(ctx.clone(), file_read)?)?;
    Ok(())
}

/// Number and length of a file, in the init context: `fileOpen(path)`.
fn file_open(ctx: Ctx<'_>, path: String) -> Result<Vec<usize>> {
    let user = user_of(&ctx)?;
    if user.phase.get() != Phase::Init {
        let why = format!("open('{path}') is for the init context: call it outside of functions");
        return Err(Exception::throw_type(&ctx, &why));
    }
    let file = &user.script.file;
    let opened = file.files.open(&beside(&file.main, &path));
    opened.map(|(number, length)| vec![number, length]).map_err(|why| Exception::throw_type(&ctx, &why))
}

/// Bytes of a file: `fileRead(number, offset, length)`.
fn file_read(ctx: Ctx<'_>, number: usize, offset: usize, length: usize) -> Result<ArrayBuffer<'_>> {
    let content = user_of(&ctx)?.script.file.files.content(number).unwrap_or_default();
    let end = offset.saturating_add(length).min(content.len());
    ArrayBuffer::new(ctx, content.get(offset..end).unwrap_or_default().to_vec())
}

/// Makes a shared array of the rows of a file, unless it is there: `csvMake(name, number, settings)`.
fn csv_make<'js>(ctx: Ctx<'js>, name: String, number: usize, settings: Object<'js>) -> Result<()> {
    let user = user_of(&ctx)?;
    let thrown = |why: String| Exception::throw_type(&ctx, &why);
    if user.phase.get() != Phase::Init {
        return Err(thrown("CSV is read in the init context: call it outside of functions".to_owned()));
    }
    let file = &user.script.file;
    if file.arrays.find(&name).is_some() {
        return Ok(());
    }
    let delimiter: String = settings.get("delimiter")?;
    let [delimiter] = delimiter.as_bytes() else {
        return Err(thrown(format!("invalid delimiter '{delimiter}'; write one ASCII character")));
    };
    let settings = CsvSettings {
        delimiter: *delimiter,
        from: settings.get("from")?,
        to: settings.get("to")?,
        as_objects: settings.get("asObjects")?,
    };
    let rows = csv_rows(&file.files.content(number).unwrap_or_default(), &settings).map_err(thrown)?;
    file.arrays.add(&name, rows);
    Ok(())
}
