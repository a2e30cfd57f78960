// Names of older scripts: tests, responseBody, postman and the like.

const textOf = (value) => ((value === false || value) && typeof value?.toString === 'function' ? value.toString() : value);

// A copy of the values, which scripts read as globals.
const copyOf = (scope) => Object.fromEntries(scope.values);

// Their names.
export const LEGACY = [
  'tests', 'globals', 'environment', 'data', 'iteration', 'request', 'postman', 'responseBody', 'responseCode', 'responseHeaders',
  'responseTime', 'responseCookies',
];

// Globals of a script beside `pm`.
export function legacyNames({ pm, state, isTest, cookies }) {
  const { response, request } = pm;
  const setter = (scope) => (name, value) => scope.set(name, textOf(value));
  const names = {
    tests: {},
    globals: copyOf(state.globals),
    environment: copyOf(state.environment),
    data: pm.iterationData.toObject(),
    iteration: pm.info.iteration,
    request: {
      id: pm.info.requestId,
      name: pm.info.requestName,
      method: request.method,
      url: request.url.toString(),
      headers: request.headers.toObject(true),
      data: dataOf(request.body),
    },
    postman: {
      setEnvironmentVariable: setter(state.environment),
      getEnvironmentVariable: (name) => state.environment.get(name),
      clearEnvironmentVariable: (name) => state.environment.unset(name),
      clearEnvironmentVariables: () => state.environment.clear(),
      setGlobalVariable: setter(state.globals),
      getGlobalVariable: (name) => state.globals.get(name),
      clearGlobalVariable: (name) => state.globals.unset(name),
      clearGlobalVariables: () => state.globals.clear(),
      setNextRequest: (name) => pm.execution.setNextRequest(name),
      getResponseHeader: (name) => response?.headers.get(name),
      getResponseCookie: (name) => cookies.find((cookie) => cookie.name === String(name)),
    },
  };
  if (!isTest) return { ...names, responseBody: undefined, responseCode: undefined, responseHeaders: undefined, responseTime: undefined, responseCookies: undefined };
  return {
    ...names,
    responseCookies: cookies,
    responseHeaders: response?.headers.toObject() ?? {},
    responseTime: response?.responseTime ?? Number.NaN,
    responseCode: response?.details() ?? { code: Number.NaN, name: '', details: '' },
    responseBody: response?.text(),
  };
}

function dataOf(body) {
  if (body === undefined || body.isEmpty()) return {};
  if (body.mode === 'raw') return body.raw;
  return body.mode === 'urlencoded' || body.mode === 'formdata' ? body[body.mode].toObject(true) : {};
}
