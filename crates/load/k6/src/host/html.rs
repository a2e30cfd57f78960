//! HTML documents.
#![allow(unsafe_code, reason = "a type without values of the interpreter may be kept in it")]
#![allow(clippy::needless_pass_by_value, reason = "arguments of functions of JavaScript are values")]

use rquickjs::class::{JsClass, Readable, Trace, Tracer};
use rquickjs::function::Constructor;
use rquickjs::module::Exports;
use rquickjs::{Array, Class, Ctx, Exception, Function, IntoJs as _, JsLifetime, Result, Value};
use weir_request::url::HttpUrl;
use weir_scenario::markup::MarkupKind;

use crate::html::{HtmlAxis, HtmlDocument};

/// A document, as a value of the interpreter, which frees it.
struct HtmlHandle(HtmlDocument);

// SAFETY: it holds no value of an interpreter.
unsafe impl JsLifetime<'_> for HtmlHandle {
    type Changed<'to> = HtmlHandle;
}

impl<'js> Trace<'js> for HtmlHandle {
    fn trace<'a>(&self, _: Tracer<'a, 'js>) {}
}

impl<'js> JsClass<'js> for HtmlHandle {
    const NAME: &'static str = "HtmlDocument";
    type Mutable = Readable;

    fn constructor(_: &Ctx<'js>) -> Result<Option<Constructor<'js>>> {
        Ok(None)
    }
}

pub(super) fn export<'js>(ctx: &Ctx<'js>, exports: &Exports<'js>) -> Result<()> {
    exports.export("htmlAttributes", Function::new(ctx.clone(), html_attributes)?)?;
    exports.export("htmlFilter", Function::new(ctx.clone(), html_filter)?)?;
    exports.export("htmlFind", Function::new(ctx.clone(), html_find)?)?;
    exports.export("htmlNode", Function::new(ctx.clone(), html_node)?)?;
    exports.export("htmlParse", Function::new(ctx.clone(), html_parse)?)?;
    exports.export("htmlText", Function::new(ctx.clone(), html_text)?)?;
    exports.export("htmlWalk", Function::new(ctx.clone(), html_walk)?)?;
    exports.export("htmlWrite", Function::new(ctx.clone(), html_write)?)?;
    exports.export("resolveUrl", Function::new(ctx.clone(), resolve_url)?)?;
    Ok(())
}

/// Document of a text.
fn html_parse(ctx: Ctx<'_>, text: String) -> Result<Class<'_, HtmlHandle>> {
    Class::instance(ctx, HtmlHandle(HtmlDocument::parse(&text)))
}

/// Nodes within nodes that a selector selects: `htmlFind(document, nodes, selector)`.
fn html_find<'js>(
    ctx: Ctx<'js>,
    document: Class<'js, HtmlHandle>,
    nodes: Vec<u32>,
    selector: String,
) -> Result<Vec<u32>> {
    let found = document.borrow().0.find(&nodes, &selector);
    found.map_err(|why| Exception::throw_type(&ctx, &why))
}

/// Those of nodes that a selector selects: `htmlFilter(document, nodes, selector)`.
fn html_filter<'js>(
    ctx: Ctx<'js>,
    document: Class<'js, HtmlHandle>,
    nodes: Vec<u32>,
    selector: String,
) -> Result<Vec<u32>> {
    let kept = document.borrow().0.filter(&nodes, &selector);
    kept.map_err(|why| Exception::throw_type(&ctx, &why))
}

/// Nodes in a direction: `htmlWalk(document, node, axis)`.
fn html_walk<'js>(ctx: Ctx<'js>, document: Class<'js, HtmlHandle>, node: u32, axis: String) -> Result<Vec<u32>> {
    let axis = match axis.as_str() {
        "children" => HtmlAxis::Children,
        "contents" => HtmlAxis::Contents,
        "parent" => HtmlAxis::Parent,
        "ancestors" => HtmlAxis::Ancestors,
        "next" => HtmlAxis::Next,
        "previous" => HtmlAxis::Previous,
        "nextNodes" => HtmlAxis::NextNodes,
        "previousNodes" => HtmlAxis::PreviousNodes,
        other => return Err(Exception::throw_type(&ctx, &format!("no direction '{other}'"))),
    };
    Ok(document.borrow().0.walk(node, axis))
}

/// Kind (as the DOM numbers it), name and content of a node: `htmlNode(document, node)`.
fn html_node<'js>(ctx: Ctx<'js>, document: Class<'js, HtmlHandle>, node: u32) -> Result<Array<'js>> {
    let document = document.borrow();
    let tree = document.0.tree();
    let kind = match tree.kind(node) {
        MarkupKind::Document => 9,
        MarkupKind::Element => 1,
        MarkupKind::Text => 3,
        MarkupKind::Comment => 8,
        MarkupKind::Other => 2,
    };
    let facts = Array::new(ctx)?;
    facts.set(0, kind)?;
    facts.set(1, tree.name(node))?;
    facts.set(2, tree.content(node))?;
    Ok(facts)
}

/// Names and values of attributes in turn: `htmlAttributes(document, node)`; the value of one, or `undefined`, with a
/// name.
fn html_attributes<'js>(
    ctx: Ctx<'js>,
    document: Class<'js, HtmlHandle>,
    node: u32,
    name: rquickjs::function::Opt<String>,
) -> Result<Value<'js>> {
    let document = document.borrow();
    let tree = document.0.tree();
    match name.0 {
        Some(name) => match tree.attribute(node, &name.to_lowercase()) {
            Some(value) => value.into_js(&ctx),
            None => Ok(Value::new_undefined(ctx)),
        },
        None => {
            let all: Vec<&str> = tree.attributes(node).flat_map(|(name, value)| [name, value]).collect();
            all.into_js(&ctx)
        }
    }
}

/// Texts within a node: `htmlText(document, node)`.
fn html_text(document: Class<'_, HtmlHandle>, node: u32) -> String {
    document.borrow().0.tree().text_within(node)
}

/// HTML of a node, or of what is within it: `htmlWrite(document, node, isInner)`.
fn html_write(document: Class<'_, HtmlHandle>, node: u32, is_inner: bool) -> String {
    document.borrow().0.html(node, is_inner)
}

/// URL of a reference in a page: `resolveUrl(page, reference)`.
fn resolve_url(ctx: Ctx<'_>, page: String, reference: String) -> Result<String> {
    let invalid = |url: &str, why: String| Exception::throw_type(&ctx, &format!("'{url}': {why}"));
    let url = HttpUrl::parse(page.as_bytes()).map_err(|error| invalid(&page, error.to_string()))?;
    let resolved = url.resolve(reference.as_bytes()).map_err(|error| invalid(&reference, error.to_string()))?;
    Ok(resolved.to_string())
}
