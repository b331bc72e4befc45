// SPDX-License-Identifier: Apache-2.0
// Sphinx's scores count the best word of a query alone; here, each word that a title has counts.
const SCORE_OF_A_TITLE_WORD = 20;

var Scorer = {
  score: ([, title, , , score]) => {
    const words = (new URLSearchParams(location.search).get("q") || "").toLowerCase().split(/\s+/);
    const stems = words.filter((word) => word.length > 2).map((word) => word.replace(/(s|ing|ed|y)$/, ""));
    return score + SCORE_OF_A_TITLE_WORD * stems.filter((stem) => title.toLowerCase().includes(stem)).length;
  },
  // As in Sphinx.
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
