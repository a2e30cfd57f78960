//! Files of studies: nothing panics, complaints point into the text and come in order, and a study without complaint has
//! what everything behind it takes for granted.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use weir::document::Problem;
use weir::load::Options;
use weir::study::file::{self, LoadWords};

fuzz_target!(|text: &str| {
    let flags = ["rate", "connections", "duration"].map(str::to_owned);
    // As the last of the arguments, the URL; the others are the command line's to read.
    let read = |args: &[String]| Ok(Options { url: args.last().cloned().unwrap_or_default(), ..Options::default() });
    let words = LoadWords { flags: &flags, read: &read };
    let lines = text.split('\n').count();
    match file::parse(text, Path::new("/nowhere"), &words, true) {
        Ok((definition, warnings)) => {
            assert!(!definition.variants.is_empty() && definition.repeats > 0, "nothing to measure");
            assert!(definition.variants.iter().all(|variant| !variant.program.command.is_empty()), "no command");
            assert!((1..=1000).contains(&definition.points().len()), "points");
            check(&warnings, lines);
        }
        Err(problems) => {
            assert!(!problems.is_empty(), "wrong, and nobody says why");
            check(&problems, lines);
        }
    }
});

fn check(problems: &[Problem], lines: usize) {
    for problem in problems {
        assert!((1..=lines).contains(&problem.line) && problem.column > 0, "{problem}");
        assert!(!problem.to_string().contains('\n'), "{problem}");
    }
    assert!(problems.windows(2).all(|pair| pair[0] <= pair[1]), "not in order");
}
