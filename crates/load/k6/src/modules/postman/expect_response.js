// What Postman adds to chai: expectations about responses.
import { equal, shown } from 'weir:postman/compared';
import { mismatch } from 'weir:postman/json_schema';

const CLASSES = { info: 1, success: 2, redirection: 3, clientError: 4, serverError: 5 };
// Words that are reasons; where a response has none (HTTP/2), its code counts.
const REASONS = {
  ok: [200, 'OK'], accepted: [202, 'ACCEPTED'], badRequest: [400, 'BAD REQUEST'], unauthorized: [401, 'UNAUTHORIZED'],
  unauthorised: [401, 'UNAUTHORIZED'], forbidden: [403, 'FORBIDDEN'], notFound: [404, 'NOT FOUND'],
  notAcceptable: [406, 'NOT ACCEPTABLE'], rateLimited: [429, 'TOO MANY REQUESTS'],
};

const isResponse = (object) => Object.prototype.toString.call(object) === '[object Response]';

function need(own) {
  if (!isResponse(own.object)) own.fail(`expected ${own.shown} to be a response`);
  return own.object;
}

const codeIs = (own, holds, words) => {
  const { code } = need(own);
  own.assert(holds(code), `expected response to have ${words} but got ${code}`);
};

// A value in JSON by a path with dots and brackets.
function valueAt(value, path) {
  let found = value;
  for (const part of String(path).replace(/\[['"]?([^\]'"]*)['"]?\]/g, '.$1').replace(/^\./, '').split('.')) {
    if (found === null || found === undefined || !(part in Object(found))) return [false, undefined];
    found = found[part];
  }
  return [true, found];
}

function jsonOf(own) {
  try {
    return need(own).json();
  } catch (error) {
    return own.fail(`expected response body to be a valid json but got error ${error.message}`);
  }
}

// Adds the words of Postman to those of chai.
export function addResponseWords(properties, methods) {
  for (const [name, first] of Object.entries(CLASSES)) {
    properties[name] = (own) => codeIs(own, (code) => Math.floor(code / 100) === first, `status code ${first}XX`);
  }
  const { ok } = properties;
  for (const [name, [code, reason]] of Object.entries(REASONS)) {
    properties[name] = (own) => {
      if (name === 'ok' && !isResponse(own.object)) return ok(own);
      const { status } = need(own);
      const holds = status ? status.toUpperCase() === reason : own.object.code === code;
      return own.assert(holds, `expected response to have status reason '${reason}' but got ${shown(status)}`);
    };
  }
  properties.error = (own) => codeIs(own, (code) => code >= 400 && code < 600, 'status code 4XX or 5XX');
  properties.withBody = (own) => own.assert(need(own).text() !== '', 'expected response to have content in body');
  properties.json = (own) => {
    let isJson = true;
    try {
      need(own).json();
    } catch {
      isJson = false;
    }
    own.assert(isJson, 'expected response body to be a valid json');
  };
  Object.assign(methods, {
    status(own, wanted) {
      const response = need(own);
      if (typeof wanted === 'number') own.assert(response.code === wanted, `expected response to have status code ${wanted} but got ${response.code}`);
      else own.assert(response.status === wanted, `expected response to have status reason ${shown(wanted)} but got ${shown(response.status)}`);
    },
    statusCode(own, wanted) { own.assert(need(own).code === Number(wanted), `expected response to have status code ${wanted} but got ${own.object.code}`); },
    statusCodeClass(own, wanted) { own.assert(Math.floor(need(own).code / 100) === Number(wanted), `expected response code to be ${wanted}XX but found ${own.object.code}`); },
    statusReason(own, wanted) { own.assert(need(own).status === wanted, `expected response to have status reason ${shown(wanted)} but got ${shown(own.object.status)}`); },
    header(own, ...args) {
      const [name, wanted] = args;
      const { headers } = own.object;
      if (args.length < 2) own.assert(headers.has(name), `expected response to have header with key ${shown(name)}`);
      else own.assert(headers.get(name) === wanted, `expected response to have header with key ${shown(name)} and value ${shown(wanted)}, but got ${shown(headers.get(name))}`);
    },
    body(own, ...args) {
      const text = need(own).text();
      const [wanted] = args;
      if (args.length === 0) own.assert(text !== '', 'expected response to have content in body');
      else if (wanted instanceof RegExp) own.assert(wanted.test(text), `expected response body text to match ${wanted} but got ${shown(text)}`);
      else if (typeof wanted === 'string') own.assert(text === wanted, `expected response body to equal ${shown(wanted)} but got ${shown(text)}`);
      else own.assert(equal(jsonOf(own), wanted), `expected response body json to equal ${shown(wanted)} but got ${shown(text)}`);
    },
    jsonBody(own, ...args) {
      const json = jsonOf(own);
      const [path, wanted] = args;
      if (args.length === 0) return;
      if (args.length === 1 && typeof path !== 'string') {
        own.assert(equal(json, path), `expected response body json to equal ${shown(path)} but got ${shown(json)}`);
        return;
      }
      const [has, value] = valueAt(json, path);
      if (args.length === 1) own.assert(has, `expected ${shown(json)} in response to contain property ${shown(path)}`);
      else own.assert(has && equal(value, wanted), `expected response body json at ${shown(path)} to equal ${shown(wanted)} but got ${shown(value)}`);
    },
    jsonSchema(own, schema) {
      const value = isResponse(own.object) ? jsonOf(own) : own.object;
      const why = mismatch(value, schema);
      own.assert(why === undefined, `expected data to satisfy schema but found following errors: ${why}`, 'expected data to not satisfy schema');
    },
    responseTime(own, wanted) { own.assert(need(own).responseTime === wanted, `expected response to have response time ${wanted}`); },
  });
}
