//! TypeScript to JavaScript: types become spaces, so that lines and columns of errors are those of the file.
//!
//! - [`edits`]: changes of a text; [`eraser`]: types of expressions, functions and classes
//! - [`declarations`]: statements that are types alone, imports and exports; [`enums`]: enums as objects

mod declarations;
mod edits;
mod enums;
mod eraser;
mod members;

#[cfg(test)]
mod tests;

use std::thread;

use oxc_allocator::Allocator;
use oxc_parser::Parser;
use oxc_span::SourceType;

use self::eraser::Eraser;

/// Stack of the parser, which is recursive. What it does not touch takes no memory.
const STACK_BYTES: usize = 256 * 1024 * 1024;
/// Most brackets within each other.
const MAX_DEPTH: usize = 1000;

/// JavaScript of a TypeScript file, with all code where it was.
///
/// # Errors
/// One line with its place: a syntax error, or what is not supported.
pub fn without_types(name: &str, text: &str) -> Result<String, String> {
    if depth(text) > MAX_DEPTH {
        return Err(format!("{name}: more than {MAX_DEPTH} brackets within each other"));
    }
    // The parser needs more stack than users have; a file is parsed once for all.
    let erased = thread::scope(|scope| {
        let thread = thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, || erased(text));
        thread.map(thread::ScopedJoinHandle::join)
    });
    match erased {
        Ok(Ok(Ok(text))) => Ok(text),
        Ok(Ok(Err(mistake))) => Err(mistake.line(name, text)),
        Ok(Err(_)) => Err(format!("{name}: the types cannot be removed; compile the file to JavaScript")),
        Err(error) => Err(format!("{name}: no thread to remove types: {error}")),
    }
}

/// Mistake at a place of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
struct TypeScriptError {
    /// Offset in bytes.
    at: u32,
    message: String,
}

impl TypeScriptError {
    /// As one line with the place.
    fn line(&self, name: &str, text: &str) -> String {
        let before = text.get(..self.at as usize).unwrap_or(text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
        format!("{name}:{line}:{column}: {}", self.message.replace('\n', " "))
    }
}

fn erased(text: &str) -> Result<String, TypeScriptError> {
    let allocator = Allocator::default();
    let parsed = Parser::new(&allocator, text, SourceType::ts().with_module(true)).parse();
    if let Some(error) = parsed.errors.first() {
        let at = error.labels.iter().flatten().next().map_or(0, |label| u32::try_from(label.offset()).unwrap_or(0));
        return Err(TypeScriptError { at, message: error.message.to_string() });
    }
    Eraser::new(text).run(&parsed.program)
}

/// Most brackets of a text within each other, whether they are code or not.
fn depth(text: &str) -> usize {
    let (mut open, mut most) = (0_usize, 0);
    for byte in text.bytes() {
        match byte {
            b'(' | b'[' | b'{' => open += 1,
            b')' | b']' | b'}' => open = open.saturating_sub(1),
            _ => {}
        }
        most = most.max(open);
    }
    most
}
