// Elements of k6/html: nodes with the names of the DOM, as functions.
import * as native from 'weir:native';
import { late } from 'weir:late';

const own = new WeakMap();

// Document and node of an element.
const at = (one) => own.get(one);
const nodeOf = (one) => own.get(one)?.[1];

function element(doc, node) {
  if (node === undefined) return undefined;
  const [kind, name] = native.htmlNode(doc, node);
  const made = Object.create(kind === 1 ? prototypeOf(name) : Element.prototype);
  own.set(made, [doc, node]);
  return made;
}

const all = (doc, nodes) => nodes.map((node) => element(doc, node));
const walked = (one, axis) => native.htmlWalk(...at(one), axis);
const to = (one, axis) => element(at(one)[0], walked(one, axis)[0]);
const facts = (one) => native.htmlNode(...at(one));
const attribute = (one, name) => native.htmlAttributes(...at(one), name);
const find = (one, selector) => native.htmlFind(at(one)[0], [at(one)[1]], selector);
const found = (one, selector) => all(at(one)[0], find(one, selector));
const text = (one) => native.htmlText(...at(one));

class Attribute {
  constructor(ownerElement, name, value) {
    this.ownerElement = ownerElement;
    this.name = name;
    this.value = value;
  }
  localName() { return this.name.slice(this.name.indexOf(':') + 1); }
  namespaceURI() { return ''; }
  prefix() { return this.name.includes(':') ? this.name.slice(0, this.name.indexOf(':')) : ''; }
}

class Element {
  attributes() {
    const pairs = native.htmlAttributes(...at(this));
    const made = {};
    for (let index = 0; index < pairs.length; index += 2) made[pairs[index]] = new Attribute(this, pairs[index], pairs[index + 1]);
    return made;
  }
  childElementCount() { return walked(this, 'children').length; }
  childNodes() { return all(at(this)[0], walked(this, 'contents')); }
  children() { return all(at(this)[0], walked(this, 'children')); }
  classList() { return (attribute(this, 'class') ?? '').split(/\s+/).filter(Boolean); }
  className() { return attribute(this, 'class'); }
  contains(other) { return find(this, '*').includes(nodeOf(other)); }
  firstChild() { return to(this, 'contents'); }
  firstElementChild() { return to(this, 'children'); }
  getAttribute(name) { return attribute(this, String(name)); }
  getAttributeNode(name) {
    const value = attribute(this, String(name));
    return value === undefined ? undefined : new Attribute(this, String(name), value);
  }
  getElementsByClassName(name) {
    const wanted = String(name).split(/\s+/).filter(Boolean);
    return found(this, '[class]').filter((one) => wanted.every((part) => one.classList().includes(part)));
  }
  getElementsByTagName(name) { return found(this, String(name)); }
  hasAttribute(name) { return attribute(this, String(name)) !== undefined; }
  hasAttributes() { return native.htmlAttributes(...at(this)).length > 0; }
  hasChildNodes() { return walked(this, 'contents').length > 0; }
  id() { return attribute(this, 'id') ?? ''; }
  innerHTML() { return native.htmlWrite(...at(this), true); }
  isDefaultNamespace() { return true; }
  isEqualNode(other) { return nodeOf(other) !== undefined && native.htmlWrite(...at(this), false) === native.htmlWrite(...at(other), false); }
  isSameNode(other) { return nodeOf(other) === nodeOf(this) && at(other)[0] === at(this)[0]; }
  lang() { return attribute(this, 'lang'); }
  lastChild() { return this.childNodes().at(-1); }
  lastElementChild() { return this.children().at(-1); }
  matches(selector) { return native.htmlFilter(at(this)[0], [at(this)[1]], String(selector)).length > 0; }
  namespaceURI() { return ''; }
  nextElementSibling() { return to(this, 'next'); }
  nextSibling() { return to(this, 'nextNodes'); }
  nodeName() {
    const [kind, name] = facts(this);
    return { 3: '#text', 8: '#comment', 9: '#document' }[kind] ?? name;
  }
  nodeType() { return facts(this)[0]; }
  nodeValue() {
    const [kind, , content] = facts(this);
    return kind === 3 || kind === 8 ? content : undefined;
  }
  ownerDocument() { return element(at(this)[0], 0); }
  parentElement() { return to(this, 'ancestors'); }
  parentNode() { return to(this, 'parent'); }
  previousElementSibling() { return to(this, 'previous'); }
  previousSibling() { return to(this, 'previousNodes'); }
  querySelector(selector) { return element(at(this)[0], find(this, String(selector))[0]); }
  querySelectorAll(selector) { return found(this, String(selector)); }
  textContent() { return text(this); }
  toString() { return this.nodeName(); }
}

const closest = (one, selector) => element(at(one)[0], native.htmlFilter(at(one)[0], walked(one, 'ancestors'), selector)[0]);
const form = (one) => closest(one, 'form');
const inDocument = (one, test) => all(at(one)[0], native.htmlFind(at(one)[0], [0], '*')).filter(test);
const labels = (one) => inDocument(one, (label) =>
  label.nodeName() === 'label' && (label.contains(one) || (one.id() !== '' && attribute(label, 'for') === one.id())));
const reflect = (...names) => Object.fromEntries(names.map((name) => [name, function () { return attribute(this, name) ?? ''; }]));
const number = (name, otherwise) => function () { return Number(attribute(this, name) ?? otherwise); };

// Parts of the URL in `href`.
function parts(one) {
  const href = attribute(one, 'href') ?? '';
  const [, protocol = '', , user = '', host = '', path = '', search = '', hash = ''] =
    href.match(/^([a-z][a-z0-9+.-]*:)?(\/\/(?:([^@/?#]*)@)?([^/?#]*))?([^?#]*)(\?[^#]*)?(#.*)?$/i) ?? [];
  const [hostname, port = ''] = host.split(/:(?=\d*$)/);
  const [username, password = ''] = user.split(':');
  return { protocol, host, hostname, port, username, password, pathname: path || (host ? '/' : ''), search, hash, origin: host ? `${protocol}//${host}` : '' };
}
const href = {
  ...Object.fromEntries(['hash', 'host', 'hostname', 'origin', 'password', 'pathname', 'port', 'protocol', 'search', 'username']
    .map((name) => [name, function () { return parts(this)[name]; }])),
  relList() { return (attribute(this, 'rel') ?? '').split(/\s+/).filter(Boolean); },
  text() { return text(this); },
  toString() { return attribute(this, 'href') ?? ''; },
};
const inForm = { form() { return form(this); } };
const labelled = { labels() { return labels(this); } };
const field = {
  ...inForm, ...labelled, ...reflect('name'),
  formAction() { return attribute(this, 'formaction') ?? (form(this)?.getAttribute('action') ?? ''); },
  formEnctype() { return attribute(this, 'formenctype') ?? form(this)?.getAttribute('enctype') ?? 'application/x-www-form-urlencoded'; },
  formMethod() { return (attribute(this, 'formmethod') ?? form(this)?.getAttribute('method') ?? 'get').toLowerCase(); },
  formNoValidate() { return attribute(this, 'formnovalidate') !== undefined; },
  formTarget() { return attribute(this, 'formtarget') ?? form(this)?.getAttribute('target') ?? ''; },
};
const media = { textTracks() { return found(this, 'track'); } };
const titled = { text() { return text(this); } };
const cell = { cellIndex() { return walked(this, 'previous').length; } };
const section = { rows() { return found(this, 'tr'); } };
const options = (one) => found(one, 'option');
const chosen = (one) => {
  const list = options(one);
  const marked = list.filter((option) => option.hasAttribute('selected'));
  return marked.length > 0 || one.hasAttribute('multiple') ? marked : list.slice(0, 1);
};

const SPECIAL = {
  a: href, area: href, audio: media, video: media,
  button: { ...field, ...reflect('value') },
  canvas: { height: number('height', 150), width: number('width', 300) },
  datalist: { options() { return options(this); } },
  fieldset: { ...inForm, type: () => 'fieldset', validity: () => undefined, elements() { return found(this, 'button, fieldset, input, keygen, object, output, select, textarea'); } },
  form: {
    elements() { return found(this, 'button, fieldset, input, keygen, object, output, select, textarea'); },
    length() { return this.elements().length; },
    method() { return (attribute(this, 'method') ?? 'get').toLowerCase(); },
  },
  input: { ...field, ...reflect('value', 'type') },
  keygen: { ...inForm, ...labelled },
  label: {
    ...inForm,
    control() {
      const id = attribute(this, 'for');
      if (id !== undefined) return inDocument(this, (one) => one.id() === id)[0];
      return this.querySelector('button, input, keygen, meter, output, progress, select, textarea');
    },
  },
  legend: inForm, object: inForm,
  link: { relList: href.relList },
  map: { areas() { return found(this, 'area'); }, images() { return inDocument(this, (one) => one.nodeName() === 'img' && attribute(one, 'usemap') === `#${attribute(this, 'name')}`); } },
  meter: labelled,
  option: {
    ...inForm, ...titled,
    disabled() { return attribute(this, 'disabled') !== undefined; },
    index() { return options(closest(this, 'select, datalist') ?? this).findIndex((one) => one.isSameNode(this)); },
    label() { return attribute(this, 'label') ?? text(this); },
    value() { return attribute(this, 'value') ?? text(this); },
  },
  output: { ...inForm, ...labelled, defaultValue() { return text(this); }, value() { return text(this); } },
  progress: {
    ...labelled, max: number('max', 1), value: number('value', 0),
    position() { return this.hasAttribute('value') ? this.value() / this.max() : -1; },
  },
  script: titled, title: titled,
  select: {
    ...inForm, ...labelled, ...reflect('name'), size: number('size', 0),
    length() { return options(this).length; },
    options() { return options(this); },
    selectedIndex() { return chosen(this)[0]?.index() ?? -1; },
    selectedOptions() { return chosen(this); },
    type() { return this.hasAttribute('multiple') ? 'select-multiple' : 'select-one'; },
    value() { return chosen(this)[0]?.value() ?? ''; },
  },
  style: reflect('type'),
  td: cell, th: cell, col: { span: number('span', 1) }, colgroup: { span: number('span', 1) },
  table: {
    caption() { return this.querySelector('caption'); },
    rows() { return found(this, 'tr'); },
    tBodies() { return found(this, 'tbody'); },
    tFoot() { return this.querySelector('tfoot'); },
    tHead() { return this.querySelector('thead'); },
  },
  tbody: section, tfoot: section, thead: section,
  textarea: { ...inForm, ...labelled, ...reflect('name'), length() { return text(this).length; }, value() { return text(this); } },
  tr: {
    cells() { return found(this, 'td, th'); },
    rowIndex() { return (closest(this, 'table')?.rows() ?? []).findIndex((row) => row.isSameNode(this)); },
    sectionRowIndex() { return walked(this, 'previous').length; },
  },
};

const prototypes = {};

function prototypeOf(name) {
  const special = Object.hasOwn(SPECIAL, name) ? SPECIAL[name] : undefined;
  if (special === undefined) return Element.prototype;
  return (prototypes[name] ??= Object.assign(Object.create(Element.prototype), special));
}

late.element = element;
late.nodeOf = nodeOf;
