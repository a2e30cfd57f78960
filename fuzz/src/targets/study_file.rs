//! Files of studies: nothing panics, diagnostics are ordered and have positions in the text, and a valid study meets the
//! assumptions of its users.

use std::path::Path;

use weir_document::Diagnostic;
use weir_load::Options;
use weir_study::file::{self, LoadSyntax, ParsedLoad};

crate::target!(|text: &str| {
    let flags = ["rate", "connections", "duration"].map(str::to_owned);
    // The last argument is the URL; the command line parses the others.
    let read = |args: &[String], _: &Path| {
        let options = Options { url: args.last().cloned().unwrap_or_default(), ..Options::default() };
        Ok(ParsedLoad { options, warnings: Vec::new() })
    };
    let syntax = LoadSyntax { flags: &flags, parse: &read };
    let lines = text.split('\n').count();
    match file::parse(text, Path::new("/nowhere"), &syntax, true) {
        Ok((definition, warnings)) => {
            assert!(!definition.variants.is_empty() && definition.repeats > 0, "nothing to measure");
            assert!(definition.variants.iter().all(|variant| !variant.program.command.is_empty()), "no command");
            assert!((1..=1000).contains(&definition.points().len()), "points");
            check(&warnings, lines);
        }
        Err(problems) => {
            assert!(!problems.is_empty(), "rejected without a diagnostic");
            check(&problems, lines);
        }
    }
});

fn check(problems: &[Diagnostic], lines: usize) {
    for problem in problems {
        assert!((1..=lines).contains(&problem.line) && problem.column > 0, "{problem}");
        assert!(!problem.to_string().contains('\n'), "{problem}");
    }
    assert!(problems.windows(2).all(|pair| pair[0] <= pair[1]), "not in order");
}
