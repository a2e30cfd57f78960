// k6/websockets, which has an experimental name as well.
import { Blob, WebSocket } from 'weir:websockets';

export { Blob, WebSocket };
export default { Blob, WebSocket };
