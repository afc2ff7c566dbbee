// What comes first where the site is searched: public names, then pages of the documentation and notebooks; tables of
// benchmarks and the changelog come last. Sphinx asks for a score of every result.
var Scorer = {
  score: ([page, title, anchor, about, score, file, kind]) => {
    const rooms = [
      [/^docs\/reference\/generated\//, 30],
      [/^docs\/(?!index|api|architecture|contributing|what_works|gallery)/, 25],
      [/^docs\//, 10],
      [/^notebooks\//, 10],
      [/^benchmarks\//, -40],
      [/^(CHANGELOG|STYLE)/, -60],
    ];
    const room = rooms.find(([pattern]) => pattern.test(page));
    return score + (room ? room[1] : 0);
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
