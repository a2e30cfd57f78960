// Methods of responses to pages: loaded when one is called.
import { formText } from 'weir:forms';
import { resolveUrl } from 'weir:native';
import { parseHTML } from 'k6/html';
import { request } from 'weir:http';

export function html(response, selector) {
  if (typeof response.body !== 'string') throw new TypeError('html() needs a body that is text');
  const page = parseHTML(response.body);
  return selector === undefined ? page : page.find(selector);
}

export function submitForm(response, { formSelector = 'form', fields = {}, submitSelector = '[type="submit"]', params } = {}) {
  const form = html(response, formSelector).first();
  if (form.size() === 0) throw new Error(`no form '${formSelector}' in the response of '${response.url}'`);
  const method = (form.attr('method') || 'GET').toUpperCase();
  const target = resolveUrl(response.url, form.attr('action') ?? response.url);
  const values = form.serializeObject();
  // The button counts as pressed, if there is one.
  const button = form.find(submitSelector).first();
  const name = button.attr('name');
  if (name) values[name] = button.attr('value') ?? '';
  Object.assign(values, fields);
  if (method !== 'GET') return request(method, target, values, params);
  const query = formText(values);
  const [page] = target.split(/[?#]/, 1);
  return request('GET', query === '' ? page : `${page}?${query}`, undefined, params);
}

export function clickLink(response, { selector = 'a[href]', params } = {}) {
  const link = html(response, selector).first();
  const href = link.attr('href');
  if (href === undefined) throw new Error(`no link '${selector}' in the response of '${response.url}'`);
  return request('GET', resolveUrl(response.url, href), undefined, params);
}
