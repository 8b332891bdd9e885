// What is shown. The part of the address after # holds it, so that a link leads to the same view.

let data = null;

const DEFAULTS = {
  view: "documents", // or "changes" or "items"
  set: "", // name of a test set or suite
  at: "", // id of the document or item
  systems: "", // keys of the runs that are shown, separated by commas
  a: "", // the two runs that are compared
  b: "",
  marks: "reference", // or "pair" or "none"
  sort: "order", // of sentences, or of items: "order", "worst", "best", "difference"
  list: "order", // of documents, likewise
  q: "",
  change: "most", // order of the sentences that changed: "most", "gained", "lost"
  tree: "", // name of the trees that are open
  sentence: "", // number of the sentence that a link leads to
  phenomenon: "",
  distance: "",
  kind: "",
  outcome: "",
};
let state = { ...DEFAULTS };

/** The parts of the data in this view: test sets or suites. */
const parts = () => (state.view === "items" ? data.suites : data.tests);
const part = () => parts().find((candidate) => candidate.name === state.set);
const members = () => (part() ? part().documents ?? part().items : []);

/** Numbers of the runs that this part of the data has. */
function available() {
  const first = members()[0];
  return first ? data.runs.map((_, run) => run).filter((run) => run in first.runs) : [];
}

const runOf = (key) => data.runs.findIndex((run) => run.key === key);
const label = (run) => data.runs[run].label;
/** The name of a run after the mark that it has in the pictures of the report. */
const named = (run) => [make("span", { class: "sign", style: `color: ${data.runs[run].color}`, "data-sign": data.runs[run].sign }), label(run)];
const shownRuns = () => state.systems.split(",").map(runOf).filter((run) => available().includes(run));
const pair = () => [runOf(state.a), runOf(state.b)];

/** Replace what the data does not have: links may be old, or made by hand. */
function settle() {
  if (!Object.hasOwn(VIEWS, state.view) || (state.view === "items" && !data.suites.length)) state.view = "documents";
  if (!data.tests.length) state.view = "items";
  if (!part()) state.set = parts()[0]?.name ?? "";
  const keys = available().map((run) => data.runs[run].key);
  const chosen = state.systems.split(",").filter((key) => keys.includes(key));
  // The report links to systems, whose seeds may be shown one by one.
  if (!keys.includes(state.a)) state.a = keys.find((key) => state.a && key.startsWith(`${state.a}.`)) ?? chosen[0] ?? [data.baseline, ...keys].find((key) => keys.includes(key)) ?? "";
  if (!keys.includes(state.b)) state.b = best(keys.filter((key) => key !== state.a)) ?? state.a;
  state.systems = (chosen.length || state.systems === "-" ? chosen : keys.filter(isCompared)).join(",") || "-";
  if (state.view === "items") for (const key of Object.keys(FILTERS)) if (!valuesOf(key).some(([value]) => value === state[key])) state[key] = "";
  for (const [key, values] of Object.entries(CHOICES)) if (!values.some(([value]) => value === state[key])) state[key] = DEFAULTS[key];
}

const isCompared = (key) => key === state.a || key === state.b;

/** The run with the highest mean chrF of documents, or with most items right. */
function best(keys) {
  const score = (member, run) => (state.view === "items" ? Number(isRight(member, run)) : documentScore(member, run));
  return sortedBy(keys, (key) => -mean(members().map((member) => score(member, runOf(key)))))[0];
}

const CHOICES = {
  marks: [["reference", "against the reference"], ["pair", "between A and B"], ["none", "none"]],
  sort: [["order", "as in the text"], ["worst", "worst of A first"], ["best", "best of A first"], ["difference", "A and B differ most first"]],
  change: [["most", "largest change first"], ["gained", "B better first"], ["lost", "A better first"]],
  list: [["order", "as in the test set"], ["worst", "worst of A first"], ["best", "best of A first"], ["difference", "A and B differ most first"]],
  outcome: [["", "any"], ["right", "A right"], ["wrong", "A wrong"], ["won", "A right, B wrong"], ["lost", "A wrong, B right"], ["differ", "one right, one wrong"]],
};

function address() {
  const changed = Object.entries(state).filter(([key, value]) => value !== DEFAULTS[key]);
  return "#" + new URLSearchParams(changed).toString();
}

function readAddress() {
  const given = new URLSearchParams(location.hash.slice(1));
  state = { ...DEFAULTS };
  for (const key of Object.keys(DEFAULTS)) if (given.has(key)) state[key] = given.get(key);
  settle();
}

/** Change the view. What one types or chooses replaces the address; what one opens is added to the history. */
function go(changes, { opens = false } = {}) {
  if (changes.set !== undefined || changes.view !== undefined) Object.assign(state, { at: "", phenomenon: "", distance: "", kind: "" });
  if (changes.set !== undefined || changes.view !== undefined || changes.at !== undefined) state.sentence = "";
  Object.assign(state, changes);
  settle();
  render();
  history[opens ? "pushState" : "replaceState"](null, "", address());
}
