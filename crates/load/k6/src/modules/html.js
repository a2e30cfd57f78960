// k6/html: selections of nodes of a document, which the host keeps.
import * as native from 'weir:native';
import { late, loaded } from 'weir:late';

// Most scripts need no elements, whose module is the larger part.
const element = (doc, node) => loaded('weir:elements', 'element')(doc, node);
const nodeOf = (one) => late.nodeOf?.(one);

const unique = (nodes) => [...new Set(nodes)].sort((one, other) => one - other);

// Value of an attribute data-*, as jQuery reads it.
function converted(text) {
  if (text === 'true' || text === 'false') return text === 'true';
  if (text === 'null') return undefined;
  if (text !== '' && String(Number(text)) === text) return Number(text);
  if (/^[[{]/.test(text)) {
    try {
      return JSON.parse(text);
    } catch {
      return text;
    }
  }
  return text;
}

// As Go's url.QueryEscape.
const escaped = (text) =>
  encodeURIComponent(text)
    .replace(/%20/g, '+')
    .replace(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`);

const UNSENT = ['button', 'file', 'image', 'reset', 'submit'];

class Selection {
  #doc;
  #nodes;
  constructor(doc, nodes) {
    this.#doc = doc;
    this.#nodes = nodes;
  }
  static nodes(selection) { return selection.#nodes; }
  #made(nodes) { return new Selection(this.#doc, nodes); }
  #filtered(nodes, selector) {
    return selector === undefined ? nodes : native.htmlFilter(this.#doc, nodes, String(selector));
  }
  #walked(axis, selector) {
    return this.#made(unique(this.#filtered(this.#nodes.flatMap((node) => native.htmlWalk(this.#doc, node, axis)), selector)));
  }
  // The nearest one in a direction, for each node.
  #nearest(axis, selector) {
    return this.#made(unique(this.#filtered(this.#nodes.flatMap((node) => native.htmlWalk(this.#doc, node, axis).slice(0, 1)), selector)));
  }
  #until(axis, until, selector) {
    const found = this.#nodes.flatMap((node) => {
      const walked = native.htmlWalk(this.#doc, node, axis);
      if (until === undefined) return walked;
      const ends = new Set(this.#kept(walked, until));
      const at = walked.findIndex((one) => ends.has(one));
      return at < 0 ? walked : walked.slice(0, at);
    });
    return this.#made(unique(this.#filtered(found, selector)));
  }
  // Nodes that a selector, a function, a selection or an element keeps.
  #kept(nodes, test) {
    if (typeof test === 'function') return nodes.filter((node, index) => test(index, this.#made([node])));
    if (test instanceof Selection) return nodes.filter((node) => test.#nodes.includes(node));
    const own = nodeOf(test);
    if (own !== undefined) return nodes.filter((node) => node === own);
    return native.htmlFilter(this.#doc, nodes, String(test));
  }
  #attribute(node, name) { return native.htmlAttributes(this.#doc, node, name); }
  #name(node) { return native.htmlNode(this.#doc, node)[1]; }
  #value(node) {
    switch (this.#name(node)) {
      case 'textarea': return native.htmlText(this.#doc, node);
      case 'option': return this.#attribute(node, 'value') ?? native.htmlText(this.#doc, node);
      case 'select': {
        const options = native.htmlFind(this.#doc, [node], 'option');
        const chosen = native.htmlFilter(this.#doc, options, '[selected]');
        if (this.#attribute(node, 'multiple') !== undefined) return chosen.map((option) => this.#value(option));
        const option = chosen[0] ?? options[0];
        return option === undefined ? undefined : this.#value(option);
      }
      default: return this.#attribute(node, 'value');
    }
  }

  attr(name, otherwise) {
    return this.#nodes.length === 0 ? otherwise : (this.#attribute(this.#nodes[0], String(name)) ?? otherwise);
  }
  children(selector) { return this.#walked('children', selector); }
  closest(selector) {
    return this.#made(unique(this.#nodes.flatMap((node) =>
      this.#kept([node, ...native.htmlWalk(this.#doc, node, 'ancestors')], selector).slice(0, 1))));
  }
  contents() { return this.#walked('contents'); }
  data(key) {
    if (this.#nodes.length === 0) return undefined;
    if (key !== undefined) {
      const name = String(key).replace(/[A-Z]/g, (sign) => `-${sign.toLowerCase()}`);
      const value = this.#attribute(this.#nodes[0], `data-${name}`);
      return value === undefined ? undefined : converted(value);
    }
    const all = {};
    const pairs = native.htmlAttributes(this.#doc, this.#nodes[0]);
    for (let at = 0; at < pairs.length; at += 2) {
      if (!pairs[at].startsWith('data-')) continue;
      all[pairs[at].slice(5).replace(/-([a-z])/g, (_, sign) => sign.toUpperCase())] = converted(pairs[at + 1]);
    }
    return all;
  }
  each(handler) {
    this.#nodes.forEach((node, index) => handler(index, element(this.#doc, node)));
    return this;
  }
  eq(index) {
    const node = this.#nodes.at(index);
    return this.#made(node === undefined ? [] : [node]);
  }
  filter(test) { return this.#made(this.#kept(this.#nodes, test)); }
  find(selector) {
    if (selector instanceof Selection || nodeOf(selector) !== undefined) {
      return this.#made(this.#kept(native.htmlFind(this.#doc, this.#nodes, '*'), selector));
    }
    return this.#made(native.htmlFind(this.#doc, this.#nodes, String(selector)));
  }
  first() { return this.eq(0); }
  get(index) {
    if (index === undefined) return this.#nodes.map((node) => element(this.#doc, node));
    const node = this.#nodes.at(index);
    return node === undefined ? undefined : element(this.#doc, node);
  }
  has(selector) {
    return this.#made(this.#nodes.filter((node) =>
      this.#kept(native.htmlFind(this.#doc, [node], '*'), selector).length > 0));
  }
  html() { return this.#nodes.length === 0 ? undefined : native.htmlWrite(this.#doc, this.#nodes[0], true); }
  is(test) { return this.#kept(this.#nodes, test).length > 0; }
  last() { return this.eq(-1); }
  map(mapper) { return this.#nodes.map((node, index) => mapper(index, this.#made([node]))); }
  next(selector) { return this.#nearest('next', selector); }
  nextAll(selector) { return this.#walked('next', selector); }
  nextUntil(until, selector) { return this.#until('next', until, selector); }
  not(test) {
    const out = new Set(this.#kept(this.#nodes, test));
    return this.#made(this.#nodes.filter((node) => !out.has(node)));
  }
  parent(selector) { return this.#nearest('ancestors', selector); }
  parents(selector) { return this.#walked('ancestors', selector); }
  parentsUntil(until, selector) { return this.#until('ancestors', until, selector); }
  prev(selector) { return this.#nearest('previous', selector); }
  prevAll(selector) { return this.#walked('previous', selector); }
  prevUntil(until, selector) { return this.#until('previous', until, selector); }
  siblings(selector) {
    const both = this.#nodes.flatMap((node) =>
      ['next', 'previous'].flatMap((axis) => native.htmlWalk(this.#doc, node, axis)));
    return this.#made(unique(this.#filtered(both, selector)));
  }
  serializeArray() {
    const fields = this.#nodes.flatMap((node) =>
      this.#name(node) === 'form' ? native.htmlFind(this.#doc, [node], 'input, select, textarea, keygen') : [node]);
    const values = [];
    for (const node of fields) {
      const name = this.#attribute(node, 'name');
      if (!name || this.#attribute(node, 'disabled') !== undefined) continue;
      const type = (this.#attribute(node, 'type') ?? '').toLowerCase();
      if (UNSENT.includes(type)) continue;
      const isBox = type === 'checkbox' || type === 'radio';
      if (isBox && this.#attribute(node, 'checked') === undefined) continue;
      const value = this.#value(node) ?? (isBox ? 'on' : '');
      for (const one of Array.isArray(value) ? value : [value]) values.push({ name, value: one });
    }
    return values;
  }
  serialize() {
    return this.serializeArray().map(({ name, value }) => `${escaped(name)}=${escaped(value)}`).join('&');
  }
  serializeObject() {
    return Object.fromEntries(this.serializeArray().map(({ name, value }) => [name, value]));
  }
  size() { return this.#nodes.length; }
  slice(start, end) { return this.#made(this.#nodes.slice(start, end)); }
  text() { return this.#nodes.map((node) => native.htmlText(this.#doc, node)).join(''); }
  toArray() { return this.#nodes.map((node) => this.#made([node])); }
  val() { return this.#nodes.length === 0 ? undefined : this.#value(this.#nodes[0]); }
}

export function parseHTML(html) {
  if (typeof html !== 'string' && !(html instanceof String)) throw new TypeError('parseHTML() needs a text');
  return new Selection(native.htmlParse(String(html)), [0]);
}

export const NodeType = { ElementNode: 1, TextNode: 3, CommentNode: 8, DocumentNode: 9, DoctypeNode: 10 };

late.parseHTML = parseHTML;
export default { parseHTML, NodeType };
