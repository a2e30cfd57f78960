// k6/encoding.
import * as native from 'weir:native';

function kind(encoding) {
  if (encoding === undefined || encoding === null || encoding === '') return 'std';
  if (['std', 'rawstd', 'url', 'rawurl'].includes(encoding)) return encoding;
  throw new TypeError(`invalid encoding '${String(encoding)}'; choose std, rawstd, url or rawurl`);
}

export const b64encode = (input, encoding) => native.base64Encode(input, kind(encoding));
export function b64decode(input, encoding, format) {
  // Ends of lines mean nothing.
  const bytes = native.base64Decode(String(input).replace(/[\r\n]+/g, ''), kind(encoding));
  return format === 's' ? native.utf8Decode(bytes) : bytes;
}
export default { b64encode, b64decode };
