// What scripts throw, as texts.

// Ends a script at once: pm.execution.skipRequest().
export const SKIPPED = Symbol('skipped');

// Text of a thrown value: 'TypeError: x is not a function'.
export const textOf = (error) => {
  if (error === null || typeof error !== 'object') return String(error);
  const { name = 'Error', message = '' } = error;
  return message === '' ? String(name) : `${name}: ${message}`;
};
