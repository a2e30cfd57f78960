//! `.hurl` files: nothing panics, errors are ordered and have positions in the text, and a valid file is printed and
//! read again without a change.

use weir_hurl::{Assertion, ErrorReport, JsonText};

crate::target!(|text: &str| {
    let _ = Assertion::parse(text);
    let _ = JsonText::parse(text);
    match weir_hurl::parse(text) {
        Ok(file) => {
            let printed = file.to_string();
            match weir_hurl::parse(&printed) {
                Ok(again) => assert_eq!(again.to_string(), printed, "{file:?}"),
                Err(errors) => panic!("{}", ErrorReport::new("printed", &printed, &errors)),
            }
        }
        Err(errors) => {
            assert!((1..=100).contains(&errors.len()), "{} errors", errors.len());
            let lines = text.split('\n').count();
            for error in &errors {
                let line = usize::try_from(error.position.line).unwrap_or_default();
                assert!((1..=lines).contains(&line) && error.position.column > 0, "{error}");
                assert!(!error.to_string().contains('\n'), "{error}");
            }
            assert!(errors.windows(2).all(|pair| pair[0].position <= pair[1].position), "not in order");
            assert!(!ErrorReport::new("file", text, &errors).to_string().is_empty());
        }
    }
});
