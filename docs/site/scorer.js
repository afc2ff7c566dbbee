// What comes first where the site is searched: public names and pages of the documentation, then notebooks; tables of
// benchmarks and the changelog come last. Sphinx asks for a score of every result; a word in the text gives 5, one in
// a title 15.
var Scorer = {
  score: ([page, title, anchor, about, score, file, kind]) => {
    const rooms = [
      [/^docs\/reference\/generated\/qdsim\/(Options|Model|step|load)$/, 30],
      [/^docs\/reference\/generated\//, 25],
      [/^docs\/(?!index|api|architecture|contributing|what_works|gallery|speed)/, 28],
      [/^docs\//, 10],
      [/^notebooks\//, 22],
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
