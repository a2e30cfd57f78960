// JSON Schema, as tests of collections use it: what a value must be; references within the schema.
import { equal, shown } from 'weir:postman/compared';

const TYPES = {
  object: (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
  array: Array.isArray,
  string: (value) => typeof value === 'string',
  number: (value) => typeof value === 'number',
  integer: Number.isInteger,
  boolean: (value) => typeof value === 'boolean',
  null: (value) => value === null,
};
// Deepest nesting of references.
const MOST_DEPTH = 200;

// First reason why a value is not as a schema says, or undefined.
export function mismatch(value, schema, root = schema, path = 'data', depth = 0) {
  if (schema === true || schema === undefined || schema === null) return undefined;
  if (schema === false) return `${path} is not allowed`;
  if (depth > MOST_DEPTH) return `${path} is nested too deep`;
  const deeper = (inner, own, at) => mismatch(inner, own, root, at, depth + 1);
  if (typeof schema.$ref === 'string') return deeper(value, target(schema.$ref, root), path);
  if (schema.nullable === true && value === null) return undefined;
  const types = schema.type === undefined ? [] : [schema.type].flat();
  if (types.length > 0 && !types.some((type) => TYPES[type]?.(value))) return `${path} should be ${types.join(',')}`;
  if (schema.enum && !schema.enum.some((one) => equal(one, value))) return `${path} should be equal to one of the allowed values`;
  if ('const' in schema && !equal(schema.const, value)) return `${path} should be equal to ${shown(schema.const)}`;
  const own = [ofNumber, ofText, ofList, ofObject].map((check) => check(value, schema, path, deeper)).find((why) => why !== undefined);
  return own ?? combined(value, schema, path, deeper);
}

function target(reference, root) {
  let found = root;
  for (const part of reference.replace(/^#\/?/, '').split('/').filter((name) => name !== '')) {
    found = found?.[decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~')];
  }
  return found;
}

function ofNumber(value, schema, path) {
  if (typeof value !== 'number') return undefined;
  if (schema.minimum !== undefined && (schema.exclusiveMinimum === true ? value <= schema.minimum : value < schema.minimum)) return `${path} should be >= ${schema.minimum}`;
  if (schema.maximum !== undefined && (schema.exclusiveMaximum === true ? value >= schema.maximum : value > schema.maximum)) return `${path} should be <= ${schema.maximum}`;
  if (typeof schema.exclusiveMinimum === 'number' && value <= schema.exclusiveMinimum) return `${path} should be > ${schema.exclusiveMinimum}`;
  if (typeof schema.exclusiveMaximum === 'number' && value >= schema.exclusiveMaximum) return `${path} should be < ${schema.exclusiveMaximum}`;
  if (schema.multipleOf !== undefined && !Number.isInteger(value / schema.multipleOf)) return `${path} should be multiple of ${schema.multipleOf}`;
  return undefined;
}

const FORMATS = {
  email: /^[^\s@]+@[^\s@]+$/, uri: /^[a-z][a-z0-9+.-]*:\S+$/i, uuid: /^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$/i,
  date: /^\d{4}-\d\d-\d\d$/, 'date-time': /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)$/i, ipv4: /^(\d{1,3}\.){3}\d{1,3}$/,
};

function ofText(value, schema, path) {
  if (typeof value !== 'string') return undefined;
  const { length } = [...value];
  if (length < (schema.minLength ?? 0)) return `${path} should not be shorter than ${schema.minLength} characters`;
  if (length > (schema.maxLength ?? Infinity)) return `${path} should not be longer than ${schema.maxLength} characters`;
  if (schema.pattern !== undefined && !new RegExp(schema.pattern, 'u').test(value)) return `${path} should match pattern "${schema.pattern}"`;
  if (Object.hasOwn(FORMATS, schema.format ?? '') && !FORMATS[schema.format].test(value)) return `${path} should match format "${schema.format}"`;
  return undefined;
}

function ofList(value, schema, path, deeper) {
  if (!Array.isArray(value)) return undefined;
  if (value.length < (schema.minItems ?? 0)) return `${path} should NOT have fewer than ${schema.minItems} items`;
  if (value.length > (schema.maxItems ?? Infinity)) return `${path} should NOT have more than ${schema.maxItems} items`;
  if (schema.uniqueItems && value.some((one, at) => value.slice(0, at).some((other) => equal(one, other)))) return `${path} should NOT have duplicate items`;
  if (schema.contains !== undefined && !value.some((one) => deeper(one, schema.contains, path) === undefined)) return `${path} should contain a valid item`;
  const first = schema.prefixItems ?? (Array.isArray(schema.items) ? schema.items : []);
  const rest = Array.isArray(schema.items) ? schema.additionalItems : schema.items;
  for (const [at, one] of value.entries()) {
    const why = deeper(one, at < first.length ? first[at] : rest, `${path}[${at}]`);
    if (why !== undefined) return why;
  }
  return undefined;
}

function ofObject(value, schema, path, deeper) {
  if (!TYPES.object(value)) return undefined;
  const missing = (Array.isArray(schema.required) ? schema.required : []).find((name) => !Object.hasOwn(value, name));
  if (missing !== undefined) return `${path} should have required property '${missing}'`;
  const names = Object.keys(value);
  if (names.length < (schema.minProperties ?? 0)) return `${path} should NOT have fewer than ${schema.minProperties} properties`;
  if (names.length > (schema.maxProperties ?? Infinity)) return `${path} should NOT have more than ${schema.maxProperties} properties`;
  for (const name of names) {
    const at = `${path}.${name}`;
    const patterns = Object.entries(schema.patternProperties ?? {}).filter(([pattern]) => new RegExp(pattern, 'u').test(name));
    const isKnown = Object.hasOwn(schema.properties ?? {}, name);
    const own = [...(isKnown ? [schema.properties[name]] : []), ...patterns.map(([, inner]) => inner)];
    if (own.length === 0 && schema.additionalProperties === false) return `${path} should NOT have additional properties`;
    const all = own.length === 0 ? [schema.additionalProperties] : own;
    const why = all.map((inner) => deeper(value[name], inner, at)).find((found) => found !== undefined);
    if (why !== undefined) return why;
  }
  return undefined;
}

function combined(value, schema, path, deeper) {
  const holds = (own) => deeper(value, own, path) === undefined;
  for (const own of schema.allOf ?? []) {
    const why = deeper(value, own, path);
    if (why !== undefined) return why;
  }
  if (schema.anyOf && !schema.anyOf.some(holds)) return `${path} should match some schema in anyOf`;
  if (schema.oneOf && schema.oneOf.filter(holds).length !== 1) return `${path} should match exactly one schema in oneOf`;
  if (schema.not !== undefined && holds(schema.not)) return `${path} should NOT be valid`;
  if (schema.if !== undefined) return deeper(value, holds(schema.if) ? schema.then : schema.else, path);
  return undefined;
}
