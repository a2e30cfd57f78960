// Collections of Postman as the iterations of a user: requests in their order, with their scripts.
import http from 'k6/http';
import { SharedArray } from 'k6/data';
import exec from 'k6/execution';
import * as native from 'weir:native';
import { filesOf } from 'weir:postman/body';
import { missingAuth } from 'weir:postman/auth';
import { cookiesOf } from 'weir:postman/pm';
import { PostmanRequest, wire } from 'weir:postman/request';
import { PostmanResponse } from 'weir:postman/response';
import { missingModules, runScript } from 'weir:postman/sandbox';
import { VariableScope } from 'weir:postman/scopes';
import { rowsOf } from 'weir:postman/rows';

// Most failures of an iteration that its message has.
const MOST_FAILURES = 3;

// Its text, without the line break with which a text of several lines begins.
const codeOf = (event) => [event.script?.exec ?? event.script ?? []].flat().filter((line) => typeof line === 'string').join('\n').replace(/^\n/, '');
const hasCode = (code) => code.replace(/\/\*[\s\S]*?\*\/|\/\/.*/g, '').trim() !== '';

// Scripts of a collection, a folder or a request, by their events.
function scriptsOf(owner, name) {
  const listed = (owner.event ?? []).filter((event) => event && event.disabled !== true);
  return listed.map((event) => ({ event: event.listen, code: codeOf(event), owner: name })).filter(({ code }) => hasCode(code));
}

// Requests of a collection in their order, with what folders give them.
function flattened(list, above) {
  return list.filter((entry) => entry !== null && typeof entry === 'object').flatMap((entry) => {
    const scripts = [...above.scripts, ...scriptsOf(entry, entry.name)];
    const auth = [entry.request?.auth, entry.auth].find((own) => own && own.type !== undefined) ?? above.auth;
    const behavior = { ...above.behavior, ...entry.protocolProfileBehavior };
    if (Array.isArray(entry.item)) return flattened(entry.item, { path: [...above.path, entry.name], scripts, auth, behavior });
    if (entry.request === undefined || entry.request === null) return [];
    const request = typeof entry.request === 'string' ? { url: entry.request } : entry.request;
    return [{ name: String(entry.name ?? ''), id: entry.id ?? entry._postman_id, path: above.path, request, scripts, auth, behavior }];
  });
}

// Rejects what weir does not have by its name, before anything is sent.
function checked(items) {
  for (const item of items) {
    const kind = missingAuth(item.auth);
    if (kind !== undefined) throw new Error(`'${item.name}': authentication of the kind '${kind}' is not supported; use basic, bearer, apikey or oauth2`);
    for (const script of item.scripts) {
      const [name] = missingModules(script.code);
      if (name !== undefined) throw new Error(`'${item.name}': require('${name}') is not supported; crypto-js, chai, uuid, atob and btoa are`);
    }
  }
  return items;
}

// Contents of the files that requests name; one that is missing is left out, as newman does.
function opened(items) {
  const files = new Map();
  for (const path of items.flatMap((item) => filesOf(item.request.body))) {
    if (path.startsWith('/') || path.includes('..')) throw new Error(`the file '${path}' is outside of the folder of the collection; copy it there`);
    try {
      files.set(path, open(path, 'b'));
    } catch (error) {
      console.warn(`${error.message}; its part is left out`);
    }
  }
  return (path) => files.get(path);
}

const groupName = (item) => [...item.path, item.name].map((name) => String(name).replaceAll('::', ': '));

// Variables of an environment, or a list of them.
const listed = (given) => (Array.isArray(given) ? given : given?.values ?? []);

// Function of an iteration that sends the requests of a collection; `settings` are variables and rows of data.
export function collection(given, settings = {}) {
  const whole = given.collection?.item === undefined ? given : given.collection;
  const name = whole.info?.name ?? '';
  const above = { path: [], scripts: scriptsOf(whole, name), auth: whole.auth?.type === undefined ? undefined : whole.auth, behavior: whole.protocolProfileBehavior ?? {} };
  const items = checked(flattened(whole.item ?? [], above));
  const file = opened(items);
  const input = { ...settings, ...JSON.parse(native.collectionInput()) };
  const rows = input.data === undefined ? [] : new SharedArray('weir:rows', () => rowsOf(input.data, open(input.data)));
  const places = new Map();
  for (const [at, item] of items.entries()) places.set(item.name, at);
  for (const [at, item] of items.entries()) if (item.id !== undefined) places.set(item.id, at);

  const environment = new VariableScope('environment', [...listed(settings.environment), ...(input.variables ?? [])]);
  const state = {
    globals: new VariableScope('globals', listed(settings.globals)),
    environment,
    collectionVariables: new VariableScope(name, whole.variable),
    row: {},
    iteration: 0,
    iterationCount: 1,
  };
  const data = new VariableScope('data');
  const scopes = [data, state.environment, state.collectionVariables, state.globals];
  state.variables = new VariableScope('variables', [], scopes);

  return async () => {
    state.iteration = exec.vu.iterationInInstance;
    state.row = rows.length === 0 ? {} : rows[exec.scenario.iterationInTest % rows.length];
    data.values = new Map(Object.entries(state.row));
    const failures = [];
    for (let at = 0; at < items.length; at += 1) {
      state.next = undefined;
      await played(items[at], { state, scopes: [state.variables, ...scopes], file, failures });
      if (state.next !== undefined) {
        const place = state.next.name === null ? undefined : places.get(state.next.name);
        if (place === undefined) break;
        at = place - 1;
      }
    }
    if (failures.length > 0) throw failed(failures);
  };
}

// Error of an iteration without a place of its own: its message names tests and scripts.
function failed(failures) {
  const shown = failures.slice(0, MOST_FAILURES).join('; ');
  const more = failures.length > MOST_FAILURES ? `; and ${failures.length - MOST_FAILURES} more` : '';
  return { name: '', message: `${shown}${more}`, stack: '' };
}

// Plays a request with its scripts.
async function played(item, { state, scopes, file, failures }) {
  const groups = groupName(item);
  const outer = groups.map((name) => native.groupEnter(name));
  const begun = native.now();
  const run = {
    item, state, tests: [], failures: [], cookies: [], request: new PostmanRequest(item.request), response: undefined,
    check: (name, passed) => native.countCheck(name, passed),
  };
  run.request.name = item.name;
  state.isSkipped = false;
  const scripts = async (event) => {
    run.event = event;
    for (const script of item.scripts) {
      if (script.event !== event || state.isSkipped) continue;
      run.owner = script.owner;
      await runScript(script.code, `${item.name}, ${event}`, run);
    }
  };
  try {
    await scripts('prerequest');
    if (state.isSkipped) return;
    const sent = run.request.resolved(scopes);
    // A script may have given the request another authentication.
    const auth = item.request.auth === run.request.auth || run.request.auth === undefined ? item.auth : run.request.auth;
    const hasTests = item.scripts.some((script) => script.event === 'test');
    send(sent, state.variables.replaceIn(auth), run, { behavior: item.behavior, file, hasTests, name: groups.join(' / ') });
    run.request = sent;
    await scripts('test');
  } finally {
    failures.push(...run.failures.map((failure) => `${item.name}: ${failure.text}`));
    for (const name of outer.reverse()) native.groupLeave(name, native.now() - begun);
  }
}

function send(request, auth, run, { behavior, file, hasTests, name }) {
  try {
    const [method, address, body, params] = wire(request, auth, behavior, file);
    // Where there are tests, they say whether a status is a success.
    const expected = hasTests ? { responseCallback: null } : {};
    request.url = address;
    const made = http.request(method, address, body, { ...params, ...expected, tags: { name } });
    if (made.status === 0) throw new Error(made.error);
    run.response = new PostmanResponse(made);
    run.cookies = cookiesOf(address);
  } catch (error) {
    run.response = new PostmanResponse();
    run.failures.push({ kind: 'request', text: error.message });
  }
}

// Cookies and variables of a user stay, as in all iterations of newman.
export const options = { noCookiesReset: true };
