//! Trees, by what XPath finds in them.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

use proptest::prelude::*;
use xpath_eval::{EvaluationContext, Value, evaluate, parse};

use super::MarkupTree;

/// Text of the string-values of the nodes, or of the value.
fn found(tree: &MarkupTree, path: &str) -> String {
    match evaluate(&parse(path).unwrap(), &EvaluationContext::new(tree.root())).unwrap() {
        Value::NodeSet(nodes) => {
            nodes.iter().map(|node| xpath_eval::Node::string_value(*node)).collect::<Vec<_>>().join("|")
        }
        other => other.to_xpath_string(),
    }
}

#[test]
fn html_with_tags_left_out_is_a_tree() {
    let tree = MarkupTree::of_html("<title>T</title><ul><li>a<li>b<b>c</ul><p>x<p>y<div>z</div><br>end");
    for (path, expected) in [
        ("/html/head/title", "T"),
        ("/html/body/ul/li", "a|bc"),
        ("//p", "x|y"),
        ("//body/div", "z"),
        ("count(//br/node())", "0"),
        ("string(//ul/following-sibling::p[1])", "x"),
    ] {
        assert_eq!(found(&tree, path), expected, "{path}");
    }
}

#[test]
fn rows_and_cells_end_where_the_next_begin() {
    let tree = MarkupTree::of_html("<table><tr><td>1<td>2<tr><td>3<table><tr><td>in</table></table>");
    assert_eq!(found(&tree, "count(/html/body/table/tr)"), "2");
    assert_eq!(found(&tree, "/html/body/table/tr[1]/td"), "1|2");
    assert_eq!(found(&tree, "//table//table//td"), "in");
}

#[test]
fn scripts_are_text_and_entities_are_characters() {
    let tree = MarkupTree::of_html("<script>if (a<b) {}</script><a href='?a=1&amp;b=2' HREF=x>&eacute;</a>");
    assert_eq!(found(&tree, "//script"), "if (a<b) {}");
    assert_eq!((found(&tree, "//a/@href"), found(&tree, "//a")), ("?a=1&b=2".to_owned(), "é".to_owned()));
}

#[test]
fn xml_has_namespaces_and_is_well_formed() {
    let tree =
        MarkupTree::of_xml("<a xmlns='urn:d' xmlns:x='urn:x'><x:b k='v'>1</x:b><!--c--><![CDATA[<2>]]></a>").unwrap();
    assert_eq!((tree.namespace("x"), tree.namespace("_")), (Some("urn:x"), Some("urn:d")));
    assert_eq!(found(&tree, "string(/*)"), "1<2>");
    assert_eq!(found(&tree, "//*[@k='v']"), "1");
    assert!(MarkupTree::of_xml("<a><b></a>").is_err());
}

#[test]
fn deep_trees_end_in_an_error_or_are_flat() {
    assert!(MarkupTree::of_xml(&("<a>".repeat(5000) + &"</a>".repeat(5000))).is_err());
    assert_eq!(found(&MarkupTree::of_html(&"<b>".repeat(5000)), "count(//b)"), "5000");
}

proptest! {
    #[test]
    fn every_text_is_html_and_its_nodes_are_in_order(text in "(<[a-z/ ]{0,6}>|[a-z &;]{0,4}){0,40}") {
        let tree = MarkupTree::of_html(&text);
        for (index, node) in tree.nodes.iter().enumerate() {
            prop_assert!(node.parent.is_none_or(|parent| (parent as usize) < index));
        }
    }
}
