// k6/timers, which are global names as well.
export const { setTimeout, setInterval, clearTimeout, clearInterval } = globalThis;
export default { setTimeout, setInterval, clearTimeout, clearInterval };
