// Rows of data of a file, in CSV or JSON.

// A value without quotes is a number, a boolean or null if it looks like one.
function typed(text) {
  if (text === 'true') return true;
  if (text === 'false') return false;
  if (text === 'null') return null;
  return text.trim() !== '' && /^-?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text.trim()) ? Number(text) : text;
}

// Fields of all lines: [text, whether it has quotes].
function fieldsOf(text) {
  const lines = [];
  let line = [];
  const pattern = /(?:"((?:[^"]|"")*)"|([^,\r\n]*))(,|\r\n|\n|\r|$)/y;
  while (pattern.lastIndex < text.length) {
    const found = pattern.exec(text);
    if (found === null) throw new SyntaxError('a field of the data has a quote inside; double it');
    const [, quoted, plain, end] = found;
    line.push(quoted === undefined ? [plain.trim(), false] : [quoted.replaceAll('""', '"'), true]);
    if (end !== ',') {
      lines.push(line);
      line = [];
    } else if (pattern.lastIndex === text.length) {
      line.push(['', false]);
    }
  }
  if (line.length > 0) lines.push(line);
  return lines.filter((fields) => fields.length > 1 || fields[0][0] !== '');
}

export function rowsOf(path, content) {
  const text = content.startsWith('\ufeff') ? content.slice(1) : content;
  if (path.toLowerCase().endsWith('.jsonl')) return text.split('\n').filter((line) => line.trim() !== '').map((line) => JSON.parse(line));
  if (path.toLowerCase().endsWith('.json')) return [JSON.parse(text)].flat();
  const [head, ...lines] = fieldsOf(text);
  const names = (head ?? []).map(([name]) => name);
  return lines.map((fields) => Object.fromEntries(names.map((name, at) => {
    const [value, isQuoted] = fields[at] ?? ['', false];
    return [name, isQuoted ? value : typed(value)];
  })));
}
