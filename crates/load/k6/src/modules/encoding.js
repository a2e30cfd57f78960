// k6/encoding.
import * as native from 'weir:native';

export const b64encode = (input, encoding) => native.base64Encode(input, encoding || 'std');
export function b64decode(input, encoding, format) {
  const bytes = native.base64Decode(String(input), encoding || 'std');
  return format === 's' ? native.utf8Decode(bytes) : bytes;
}
export default { b64encode, b64decode };
