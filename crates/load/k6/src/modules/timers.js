// k6/timers, which are global names as well.
import { addTimer, removeTimer } from 'weir:values';

export const setTimeout = (call, wait, ...args) => addTimer(call, wait, args);
export const setInterval = (call, wait, ...args) => addTimer(call, wait, args, Number(wait) || 0);
export const clearTimeout = removeTimer;
export const clearInterval = removeTimer;
export default { setTimeout, setInterval, clearTimeout, clearInterval };
