// The object pm of a script.
import http from 'k6/http';
import { expect } from 'weir:postman/expect';
import { PostmanRequest, wire } from 'weir:postman/request';
import { PostmanResponse } from 'weir:postman/response';
import { VariableScope } from 'weir:postman/scopes';
import { SKIPPED, textOf } from 'weir:postman/thrown';

const vault = new Proxy({}, {
  get: (_, name) => (typeof name === 'string' ? () => { throw new Error('pm.vault is not supported; use pm.environment'); } : undefined),
});

// Cookies of an address in the user's jar.
export function cookiesOf(address) {
  const found = http.cookieJar().cookiesForURL(address);
  return Object.keys(found).map((name) => ({ name, value: found[name][0] }));
}

function cookieList(cookies) {
  return {
    get: (name) => cookies.find((cookie) => cookie.name === name)?.value,
    one: (name) => cookies.find((cookie) => cookie.name === name),
    has: (name) => cookies.some((cookie) => cookie.name === name),
    all: () => cookies,
    each: (call) => cookies.forEach((cookie) => call(cookie)),
    count: () => cookies.length,
    toObject: () => Object.fromEntries(cookies.map((cookie) => [cookie.name, cookie.value])),
    jar: () => jar,
  };
}

// Calls back with a result, or returns it as a promise.
function settled(callback, make) {
  let result;
  try {
    result = make();
  } catch (error) {
    if (typeof callback === 'function') return callback(error);
    return Promise.reject(error);
  }
  return typeof callback === 'function' ? callback(null, result) : Promise.resolve(result);
}

const address = (text) => (String(text).includes('://') ? String(text) : `http://${text}`);

const jar = {
  set(url, name, value, callback) {
    const own = typeof name === 'object' ? name : { name, value };
    const done = typeof name === 'object' && typeof value === 'function' ? value : callback;
    return settled(done, () => {
      const { path, domain, secure, httpOnly, expires } = own;
      http.cookieJar().set(address(url), own.name, own.value, { path, domain, secure, http_only: httpOnly, expires });
      return own;
    });
  },
  get: (url, name, callback) => settled(callback, () => cookiesOf(address(url)).find((cookie) => cookie.name === name)?.value),
  getAll: (url, options, callback) => settled(typeof options === 'function' ? options : callback, () => cookiesOf(address(url))),
  unset: (url, name, callback) => settled(callback, () => http.cookieJar().delete(address(url), name)),
  clear: (url, callback) => settled(callback, () => http.cookieJar().clear(address(url))),
};

// The object pm of a script of `run`, and what ends it. `pending` counts requests.
export function makePm(run, pending) {
  const { state, item, event } = run;
  const open = [];
  let index = 0;
  const report = (name, why) => {
    run.tests.push({ name: String(name), passed: why === undefined });
    run.check(String(name), why === undefined);
    if (why !== undefined) run.failures.push({ kind: 'test', text: `${name}: ${textOf(why.error)}` });
  };

  function test(name, call) {
    index += 1;
    if (typeof call !== 'function') {
      report(name);
      return pm;
    }
    let isReported = false;
    const once = (why) => {
      if (isReported) return;
      isReported = true;
      report(name, why);
    };
    try {
      if (call.length > 0) {
        call((error) => once(error ? { error } : undefined));
        return pm;
      }
      const result = call();
      if (result !== null && typeof result === 'object' && typeof result.then === 'function') {
        open.push(Promise.resolve(result).then(() => once(), (error) => once({ error })));
      } else {
        once();
      }
    } catch (error) {
      once({ error });
    }
    return pm;
  }
  test.skip = () => {
    index += 1;
    return pm;
  };
  test.index = () => index;

  function sendRequest(given, callback) {
    const sending = (async () => {
      const request = given instanceof PostmanRequest ? given.clone() : new PostmanRequest(given);
      const args = wire(request, request.auth, { disableBodyPruning: true }, () => undefined);
      const made = await http.asyncRequest(args[0], args[1], args[2], { ...args[3], responseCallback: null });
      if (made.status === 0) throw new Error(made.error);
      return new PostmanResponse(made);
    })();
    if (typeof callback !== 'function') {
      pending.add();
      const ended = () => pending.done();
      sending.then(ended, ended);
      return sending;
    }
    pending.add();
    const call = (error, response) => {
      try {
        callback(error, response);
      } catch (thrown) {
        run.failures.push({ kind: 'script', text: `${event}: ${textOf(thrown)}` });
      }
      pending.done();
    };
    sending.then((response) => call(null, response), (error) => call({ name: error.name, message: error.message }));
    return pm;
  }

  const iterationData = new VariableScope('data');
  iterationData.values = new Map(Object.entries(state.row));
  iterationData.toJSON = () => iterationData.toObject();
  const pm = {
    info: { eventName: event, iteration: state.iteration, iterationCount: state.iterationCount, requestName: item.name, requestId: item.id },
    globals: state.globals,
    environment: state.environment,
    collectionVariables: state.collectionVariables,
    variables: state.variables,
    iterationData,
    request: run.request,
    response: run.response,
    cookies: cookieList(run.cookies),
    visualizer: { set() {}, clear() {} },
    expect,
    test,
    sendRequest,
    require: (name) => { throw new Error(`pm.require('${name}') is not supported; packages of Postman are not fetched`); },
    execution: {
      setNextRequest: (name) => { run.state.next = { name }; },
      skipRequest: () => {
        if (event !== 'prerequest') throw new TypeError('pm.execution.skipRequest is not a function');
        run.state.isSkipped = true;
        throw SKIPPED;
      },
      location: Object.assign([...item.path, item.name], { current: run.owner }),
      runRequest: () => { throw new Error('pm.execution.runRequest() is not supported; use pm.sendRequest()'); },
    },
    vault,
  };
  const finish = async (legacy) => {
    await Promise.all(open);
    for (const name of Object.keys(legacy)) {
      const passed = Boolean(legacy[name]);
      report(name, passed ? undefined : { error: { name: 'AssertionError', message: `expected ${String(legacy[name])} to be truthy` } });
    }
  };
  return { pm, finish };
}
