// Parts of JSON by paths as gjson has them.

// A value of JSON by a path: names and numbers with dots, `#` for all or the length.
export function picked(value, path) {
  const parts = path.split(/(?<!\\)\./).map((part) => part.replace(/\\(.)/g, '$1'));
  return parts.length > 0 ? walk(value, parts, 0) : value;
}

function walk(value, parts, at) {
  if (at === parts.length) return value;
  if (value === undefined || value === null) return undefined;
  const part = parts[at];
  if (Array.isArray(value) && part === '#') {
    if (at === parts.length - 1) return value.length;
    return value.map((one) => walk(one, parts, at + 1)).filter((one) => one !== undefined);
  }
  const query = Array.isArray(value) ? part.match(/^#\((.+?)(==|!=|<=|>=|<|>|%)(.*)\)(#?)$/) : null;
  if (query) {
    const [, name, sign, text, all] = query;
    let wanted = text;
    try {
      wanted = JSON.parse(text);
    } catch {
      // A word without quotes.
    }
    const holds = (one) => compared(walk(one, name.split('.'), 0), sign, wanted);
    if (all) return value.filter(holds).map((one) => walk(one, parts, at + 1)).filter((one) => one !== undefined);
    return walk(value.find(holds), parts, at + 1);
  }
  if (typeof value !== 'object') return undefined;
  return walk(Object.hasOwn(value, part) ? value[part] : undefined, parts, at + 1);
}

function compared(value, sign, wanted) {
  switch (sign) {
    case '==': return value === wanted;
    case '!=': return value !== wanted;
    case '<': return value < wanted;
    case '<=': return value <= wanted;
    case '>': return value > wanted;
    case '>=': return value >= wanted;
    default: return new RegExp(`^${String(wanted).replace(/[.+^${}()|[\]\\]/g, '\\$&').replace(/\*/g, '.*').replace(/\?/g, '.')}$`).test(String(value));
  }
}
