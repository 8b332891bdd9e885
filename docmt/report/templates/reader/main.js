// The page: controls, the list, the keyboard, and the start.

const byId = (id) => document.getElementById(id);
const VIEWS = {
  documents: { entries: documentEntries, show: showDocument, what: "documents" },
  changes: { entries: () => [], show: showChanges, what: "documents" },
  items: { entries: itemEntries, show: showItem, what: "items" },
};
let entries = [];

/** Append what `row` makes of the things, so many at a time; a button shows the next ones. */
function inSteps(parent, things, step, row, start = 0) {
  parent.append(...things.slice(start, start + step).flatMap(row));
  const rest = things.length - start - step;
  if (rest <= 0) return;
  const tag = parent.tagName === "TBODY" ? "tr" : "li";
  const more = make(tag, { class: "more" });
  const button = make("button", { type: "button" }, `show ${Math.min(step, rest)} more of ${rest}`);
  button.addEventListener("click", () => {
    more.remove();
    inSteps(parent, things, step, row, start + step);
  });
  more.append(tag === "tr" ? make("td", { colspan: parent.rows[0].cells.length }, button) : button);
  parent.append(more);
}

function select(name, text, options) {
  const choose = ({ target: { value } }) => {
    const shown = (key) => key === value || state.systems.split(",").includes(key);
    const isSystem = name === "a" || name === "b"; // one that is compared is shown, too
    const systems = isSystem ? { systems: options.map(([key]) => key).filter(shown).join(",") } : {};
    go({ [name]: value, ...systems }, { opens: name === "set" });
  };
  const choice = make("select", { name, onchange: choose });
  choice.append(...options.map(([value, shown]) => make("option", { value, selected: value === state[name] }, shown)));
  return make("label", {}, make("span", {}, text), choice);
}

function systemBoxes() {
  const toggle = () => {
    const chosen = [...byId("controls").querySelectorAll("input[name=system]:checked")].map((box) => box.value);
    go({ systems: chosen.join(",") || "-" });
  };
  const boxes = available().map((run) => {
    const { key } = data.runs[run];
    const box = make("input", { type: "checkbox", name: "system", value: key, checked: shownRuns().includes(run), onchange: toggle });
    return make("label", { class: "box" }, box, named(run));
  });
  return make("fieldset", { class: "systems" }, make("legend", {}, "Systems"), boxes);
}

let typing = 0;

function searchBox() {
  const wait = (event) => {
    clearTimeout(typing);
    typing = setTimeout(() => go({ q: event.target.value }), 200);
  };
  return make("label", {}, make("span", {}, "Search"), make("input", { type: "search", name: "q", value: state.q, oninput: wait }));
}

function renderControls() {
  const keys = available().map((run) => [data.runs[run].key, label(run)]);
  const common = [
    select("set", state.view === "items" ? "Suite" : "Test set", parts().map(({ name }) => [name, name])),
    searchBox(),
    select("a", "A", keys),
    select("b", "B", keys),
  ];
  const listed = select("list", `Order of ${VIEWS[state.view].what}`, CHOICES.list);
  const ofDocuments = () => [listed, select("sort", "Order of sentences", CHOICES.sort), select("marks", "Marked differences", CHOICES.marks)];
  const ofItems = () => [
    listed,
    ...Object.keys(FILTERS).map((key) => [key, valuesOf(key)]).filter(([, values]) => values.length > 2).map(([key, values]) => select(key, key, values)),
    select("outcome", "Outcome", CHOICES.outcome),
  ];
  const own = { documents: ofDocuments, items: ofItems, changes: () => [select("change", "Order", CHOICES.change)] }[state.view];
  const focused = document.activeElement?.name;
  const value = document.activeElement?.value;
  const caret = focused === "q" ? document.activeElement.selectionStart : null;
  byId("controls").replaceChildren(...common, ...own(), ...(state.view === "changes" ? [] : [systemBoxes()]));
  // The controls are new elements: the focus stays where it was.
  const again = [...byId("controls").elements].find((element) => element.name === focused && (focused !== "system" || element.value === value));
  again?.focus();
  if (caret !== null) again?.setSelectionRange(caret, caret);
}

function renderList() {
  const { what } = VIEWS[state.view];
  const total = part()?.total ?? 0;
  const shown = members().length;
  const sampled = shown < total ? `, of ${total} in the test set, evenly spaced, which keeps this page small` : "";
  const count = entries.length < shown ? `${entries.length} of ${shown} ${what}${sampled}` : `${shown} ${what}${sampled}`;
  const list = make("ol");
  const here = entries.findIndex(({ id }) => id === state.at);
  inSteps(list, entries, Math.max(300, here + 50), ({ id, notes }) => {
    const link = make("a", { href: addressOf({ at: id, sentence: "" }), "aria-current": id === state.at ? "true" : null }, make("span", { class: "id" }, id), make("span", { class: "quiet" }, notes.join(" · ")));
    link.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return; // a new tab or window
      event.preventDefault();
      go({ at: id }, { opens: true });
    });
    return make("li", {}, link);
  });
  byId("list").replaceChildren(make("p", { class: "caption" }, count), list);
  list.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
}

function addressOf(changes) {
  const now = state;
  state = { ...now, ...changes };
  const found = address();
  state = now;
  return found;
}

function render() {
  const view = VIEWS[state.view];
  entries = view.entries();
  if (!members().some(({ id }) => id === state.at)) state.at = entries[0]?.id ?? "";
  renderControls();
  renderList();
  const opened = members().find(({ id }) => id === state.at);
  byId("list").hidden = state.view === "changes";
  byId("main").replaceChildren(...(opened || state.view === "changes" ? view.show(opened) : [make("p", { class: "message" }, "Nothing is found.")]));
  for (const name of Object.keys(VIEWS)) byId(`to-${name}`).toggleAttribute("aria-current", name === state.view);
  byId("to-documents").hidden = !data.tests.length;
  byId("to-changes").hidden = !data.tests.length || data.runs.length < 2;
  byId("to-items").hidden = !data.suites.length;
}

/** Open the document or item before (−1) or after (1) the current one in the list. */
function step(by) {
  const place = entries.findIndex(({ id }) => id === state.at) + by;
  if (entries[place]) go({ at: entries[place].id }, { opens: true });
}

function onKey(event) {
  if (event.altKey || event.ctrlKey || event.metaKey || event.target.matches("input, select, textarea, .scroll")) return;
  if (event.key === "ArrowRight") step(1);
  else if (event.key === "ArrowLeft") step(-1);
  else if (event.key === "/") byId("controls").elements.q.focus();
  else return;
  event.preventDefault();
}

async function unpack(text) {
  const letters = atob(text);
  const bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i);
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
}

async function start() {
  try {
    data = await unpack(byId("data").textContent);
  } catch (error) {
    byId("message").textContent = `This page cannot be shown: ${error.message}. It needs a browser of 2023 or later.`;
    return;
  }
  byId("data").remove();
  byId("message").hidden = true;
  byId("controls").addEventListener("submit", (event) => event.preventDefault());
  for (const name of Object.keys(VIEWS)) {
    byId(`to-${name}`).addEventListener("click", (event) => {
      event.preventDefault();
      go({ view: name }, { opens: true });
    });
  }
  document.addEventListener("keydown", onKey);
  const open = () => {
    readAddress();
    render();
    byId(`sentence-${state.sentence}`)?.scrollIntoView({ block: "center", behavior: "instant" });
  };
  window.addEventListener("popstate", open);
  open();
  history.replaceState(null, "", address());
}

start();
