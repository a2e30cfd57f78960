// Order of search results: guides before references, and both before what is made, measured or decided. The numbers of
// matches are Sphinx's own.
const WEIGHTS = [
  [/^how-to\//, 12], [/^(start|scenarios|ci|pytest|import|record|live|html-report|agents|coming-from)$/, 8],
  [/^(changelog|contributing|conduct)$/, -9], [/^(design|benchmarks|studies|source)(\/|$)/, -5], [/^coming-from\//, -1],
  [/^(index|glossary|importers)$/, -2], [/^python-api\//, -2], [/^commands\//, 0],
];
const weightOf = (page) => (WEIGHTS.find(([pattern]) => pattern.test(page)) || [null, 3])[1];

var Scorer = {
  score: ([page, , , , score]) => score + weightOf(page),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
