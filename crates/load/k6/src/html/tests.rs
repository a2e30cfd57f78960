//! Selectors, against a naive matcher, and documents.
#![allow(clippy::expect_used, reason = "a failed precondition fails the test")]

use proptest::prelude::*;
use weir_scenario::markup::{MarkupKind, MarkupTree};

use super::HtmlDocument;
use super::selector::{Combinator, ComplexSelector, SimpleSelector};
use super::selector_parser::parse_selector;

const PAGE: &str = "<html><body><ul id=l class='a b'><li>1</li><li class=b data-x='one two'>2</li><li lang=en-GB>3<b>deep</b></li></ul>\
    <form><input name=q value='x&amp;y' checked><select><option value=1>one<option selected>two</select></form><p></p><p>text</p></body></html>";

/// Texts of what a selector finds.
fn found(selector: &str) -> Vec<String> {
    let document = HtmlDocument::parse(PAGE);
    let nodes = document.find(&[0], selector).expect(selector);
    nodes
        .into_iter()
        .map(|node| format!("{}:{}", document.tree().name(node), document.tree().text_within(node)))
        .collect()
}

#[test]
fn selectors_find_what_css_says() {
    for (selector, expected) in [
        ("li", "li:1 li:2 li:3deep"),
        ("LI.b", "li:2"),
        ("#l > li:first-child, p:empty", "li:1 p:"),
        ("ul.a.b li:last-child b", "b:deep"),
        ("li:nth-child(2n+1)", "li:1 li:3deep"),
        ("li:nth-child(even)", "li:2"),
        ("li:nth-last-child(-n+2)", "li:2 li:3deep"),
        ("li + li", "li:2 li:3deep"),
        ("li:first-child ~ li", "li:2 li:3deep"),
        ("li:not(.b)", "li:1 li:3deep"),
        ("li:not(.b, [lang])", "li:1"),
        ("li:contains('2')", "li:2"),
        ("li:contains(deep)", "li:3deep"),
        ("li:has(b)", "li:3deep"),
        ("[data-x~=two]", "li:2"),
        ("[data-x^='one'][data-x$=two][data-x*=' ']", "li:2"),
        ("[lang|=en]", "li:3deep"),
        ("[LANG='EN-gb' i]", "li:3deep"),
        ("li[class!=b]", "li:1 li:3deep"),
        ("option:selected", "option:two"),
        ("form :checked", "input: option:two"),
        ("form > *", "input: select:onetwo"),
        ("p:only-of-type, b:only-child", "b:deep"),
        ("p:nth-of-type(2)", "p:text"),
        (":root > body > p:last-of-type", "p:text"),
        ("li:is(:first-child, .b)", "li:1 li:2"),
        ("a", ""),
    ] {
        assert_eq!(found(selector).join(" "), expected, "{selector}");
    }
}

#[test]
fn wrong_selectors_are_rejected_with_their_mistake() {
    for (selector, part) in [
        ("", "a part is missing"),
        ("li >", "a part is missing"),
        ("li[", "a name is missing"),
        ("li[a=b", "']' is missing"),
        ("li:hover", "':hover' is not supported"),
        ("li::before", "pseudo-elements"),
        ("li:nth-child(x)", "write e.g. 2n+1"),
        ("li)", "unexpected ')'"),
        ("a[b='c]", "' is missing"),
    ] {
        let why = parse_selector(selector).expect_err(selector);
        assert!(why.contains(part) && why.contains(selector), "{selector}: {why}");
    }
    assert!(parse_selector(&":not(".repeat(100)).is_err_and(|why| why.contains("within each other")));
}

#[test]
fn html_is_written_as_it_was() {
    let document = HtmlDocument::parse(PAGE);
    let form = document.find(&[0], "form").expect("valid");
    assert_eq!(
        document.html(form[0], false),
        "<form><input checked=\"\" name=\"q\" value=\"x&amp;y\"><select><option value=\"1\">one</option>\
         <option selected=\"\">two</option></select></form>"
    );
}

/// Whether a node matches the parts up to an index, tried from the last one back, one node after the other.
fn naive(tree: &MarkupTree, complex: &ComplexSelector, part: usize, node: u32) -> bool {
    let (combinator, simple) = &complex.0[part];
    let fits = simple.iter().all(|simple| match simple {
        SimpleSelector::Tag(tag) => tree.name(node) == tag,
        SimpleSelector::Class(class) => tree.attribute(node, "class") == Some(class),
        _ => true,
    });
    if !fits || tree.kind(node) != MarkupKind::Element {
        return false;
    }
    let before = |node: u32| if part == 0 { node == 0 } else { naive(tree, complex, part - 1, node) };
    let Some(parent) = tree.parent(node) else { return false };
    let earlier: Vec<u32> = tree
        .children(parent)
        .iter()
        .copied()
        .filter(|other| *other < node && tree.kind(*other) == MarkupKind::Element)
        .collect();
    match combinator {
        Combinator::Child => before(parent),
        Combinator::Descendant => std::iter::successors(Some(parent), |node| tree.parent(*node)).any(before),
        Combinator::Next => earlier.last().is_some_and(|node| before(*node)),
        Combinator::Later => earlier.into_iter().any(before),
    }
}

proptest! {
    #[test]
    fn selected_nodes_are_those_of_a_naive_matcher(
        tags in proptest::collection::vec((0_usize..3, any::<bool>(), any::<bool>()), 0..30),
        parts in proptest::collection::vec((0_usize..4, 0_usize..4), 1..5),
    ) {
        let names = ["b", "i", "u"];
        let mut text = String::new();
        for (name, is_end, has_class) in tags {
            let name = names[name];
            text += &if is_end { format!("</{name}>x") } else { format!("<{name}{}>", if has_class { " class=c" } else { "" }) };
        }
        let mut selector = String::new();
        for (at, (combinator, part)) in parts.into_iter().enumerate() {
            if at > 0 {
                selector += [" ", " > ", " + ", " ~ "][combinator];
            }
            selector += ["b", "i", "*", ".c"][part];
        }
        let document = HtmlDocument::parse(&text);
        let list = parse_selector(&selector).expect("valid");
        let last = list[0].0.len() - 1;
        let expected: Vec<u32> =
            (0..document.tree().count()).filter(|node| naive(document.tree(), &list[0], last, *node)).collect();
        prop_assert_eq!(document.find(&[0], &selector).expect("valid"), expected, "{} in {}", selector, text);
    }

    #[test]
    fn any_selector_is_read_or_rejected(selector in "[a-z#.:>+~*(),=\"' \\[\\]\\\\0-9n-]{0,24}") {
        let _ = HtmlDocument::parse(PAGE).find(&[0], &selector);
    }
}
