// Documents: source, reference and translations side by side, sentence by sentence.

const NOTHING = { order: () => 0 };

/** The cell of a run at a sentence; where it belongs to a block, that of the block's first sentence. */
function cellAt(cells, sentence) {
  while (sentence > 0 && cells[sentence] === null) sentence -= 1;
  return cells[sentence];
}

const scoreAt = (document, run, sentence) => (run < 0 ? NaN : cellAt(document.runs[run], sentence)[1]);

const documentScore = (document, run) => (run < 0 ? NaN : mean(document.runs[run].filter((cell) => cell).map(([, score]) => score)));

/** Mean change of chrF from A to B; NaN where a block is beside sentences everywhere. */
const documentChange = (document) => mean(unitsOf(document).map(({ change }) => change).filter((change) => !Number.isNaN(change)));

/** Numbers to sort by, from scores of a run and changes from A to B: the smallest comes first, NaN last. */
function sortKeys(score, change) {
  const [a] = pair();
  return {
    ...NOTHING,
    worst: (thing) => score(thing, a),
    best: (thing) => -score(thing, a),
    difference: (thing) => -Math.abs(change(thing)),
  };
}

/** How often the search is found in what is shown of a document. */
function hitsIn(document, search) {
  const translations = shownRuns().flatMap((run) => document.runs[run].filter((cell) => cell).map(([text]) => text));
  return [...document.src, ...document.ref, ...translations].reduce((sum, text) => sum + found(text, search).length, 0);
}

function documentEntries() {
  const search = searchFor(state.q);
  const [a, b] = pair();
  return sortedBy(members(), sortKeys(documentScore, documentChange)[state.list]).flatMap((document) => {
    const hits = search ? hitsIn(document, search) : 0;
    if (search && !hits) return [];
    const scores = [a, b].filter((run, i) => run >= 0 && (i === 0 || run !== a)).map((run) => formatNumber(documentScore(document, run)));
    const notes = [`${document.src.length} sentences`, `chrF ${scores.join(" / ")}`];
    return [{ id: document.id, notes: search ? [...notes, `${hits} hits`] : notes }];
  });
}

function showDocument(document) {
  const runs = shownRuns();
  const [a, b] = pair();
  const units = unitsOf(document);
  const keys = sortKeys(
    (sentence, run) => scoreAt(document, run, sentence),
    (sentence) => units.findLast(({ first }) => first <= sentence)?.change ?? NaN,
  );
  const sentences = sortedBy(document.src.map((_, i) => i), keys[state.sort]);
  const letter = (run) => (state.a === state.b ? "" : run === a ? " (A)" : run === b ? " (B)" : "");
  const heads = [["source"], ["reference"], ...runs.map((run) => [...named(run), letter(run)])];
  const head = make("tr", {}, make("th", {}, "#"), heads.map((name) => make("th", { scope: "col" }, name)));
  const body = make("tbody");
  const table = make("table", { class: "sentences", style: `--columns: ${heads.length}` }, make("thead", {}, head), body);
  const here = sentences.indexOf(Number(state.sentence || NaN));
  inSteps(body, sentences, Math.max(200, here + 50), (sentence) => sentenceRow(document, sentence, runs));
  return [
    make("h2", {}, document.id),
    make("p", { class: "caption" }, about(document)),
    make("div", { class: "scroll", tabindex: "0" }, table),
    ...Object.entries(document.trees).map(([name, edus]) => treePart(name, edus)),
  ];
}

function about(document) {
  const blocks = shownRuns().filter((run) => document.runs[run].includes(null)).map(label);
  const remark = `Mean chrF of sentences: ${shownRuns().map((run) => `${label(run)} ${formatNumber(documentScore(document, run))}`).join(", ") || "–"}.`;
  return blocks.length
    ? `${remark} ${blocks.join(", ")}: where the number of sentences differs from the source, the translation of several sentences is one block.`
    : remark;
}

function sentenceRow(document, sentence, runs) {
  const search = searchFor(state.q);
  const [src, tgt] = part().languages;
  const reference = document.ref[sentence];
  const only = state.marks === "reference" && runs.length === 1 ? cellAt(document.runs[runs[0]], sentence)[0] : null;
  return make(
    "tr",
    { id: `sentence-${sentence}`, class: state.sentence === `${sentence}` ? "focus" : null },
    make("th", { scope: "row" }, `${sentence + 1}`),
    make("td", { "data-label": "source" }, marked(document.src[sentence], src, { search })),
    make("td", { "data-label": "reference" }, marked(reference, tgt, { search, other: only })),
    runs.map((run) => translationCell(document, run, sentence, search)),
  );
}

/** The cell of a translation, marked by what the view asks for, with its score; it spans the rows of a block. */
function translationCell(document, run, sentence, search) {
  const spans = state.sort === "order";
  const cell = document.runs[run][sentence];
  if (cell === null) {
    return spans ? null : make("td", { "data-label": label(run) }, make("span", { class: "quiet" }, "in a block with the sentences before"));
  }
  const [text, score, n = 1] = cell;
  const [a, b] = pair();
  let other = null;
  if (state.marks === "reference") other = document.ref.slice(sentence, sentence + n).join(" ");
  if (state.marks === "pair" && a !== b && (run === a || run === b)) other = cellAt(document.runs[run === a ? b : a], sentence)[0];
  const block = n > 1 ? `, sentences ${sentence + 1} to ${sentence + n}` : "";
  const shown = marked(text, part().languages[1], { other, search });
  const note = make("span", { class: "score" }, `chrF ${formatNumber(score)}${block}`);
  return make("td", { "data-label": label(run), rowspan: spans && n > 1 ? n : null }, shown, note);
}

function treePart(name, edus) {
  const isOpen = state.tree === name;
  const title = edus.some(([, , head]) => head !== null) ? "EDUs and dependency tree" : "EDUs";
  const details = make("details", { class: "trees", open: isOpen }, make("summary", {}, `${title} (${name}): ${edus.length} EDUs`));
  const fill = () => details.querySelector(".tree") ?? details.append(drawTree(edus, part().languages[0], searchFor(state.q)));
  if (isOpen) fill();
  details.addEventListener("toggle", () => {
    if (details.open) fill();
    state.tree = details.open ? name : state.tree === name ? "" : state.tree;
    history.replaceState(null, "", address());
  });
  return details;
}
