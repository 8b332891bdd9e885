// Tables that one sorts, filters and takes along. Without this script, the page shows the same tables.

const MISSING = "–";
const texts = (cells) => Array.from(cells, (cell) => cell.textContent);

/** What a table shows, and how: `rows` have their `cells` with the labels that are blank where they repeat the row above. */
function readTable(table) {
  const heads = [...table.tHead.rows[0].cells];
  const kinds = heads.map((head) => head.classList[0]);
  const rows = [];
  for (const element of table.tBodies[0].rows) {
    const written = texts(element.cells);
    const above = rows.at(-1)?.cells;
    const labels = kinds.findIndex((kind, i) => kind !== "label" || written[i] !== "");
    rows.push({ element, written, cells: written.map((text, i) => (above && i < labels ? above[i] : text)) });
  }
  return { table, heads, kinds, names: texts(heads), rows, shown: rows, hidden: new Set(), words: [], by: null, falls: false };
}

/** The number that a cell begins with, or NaN. */
const numberIn = (text) => parseFloat(text.replaceAll(",", "").replace("−", "-"));

/** The order of two cells; missing ones are last in both directions. */
function compare(one, other, kind, falls) {
  if (one === MISSING || other === MISSING) return (one === MISSING) - (other === MISSING);
  const sign = falls ? -1 : 1;
  const difference = kind === "number" ? numberIn(one) - numberIn(other) : NaN;
  return sign * (Number.isNaN(difference) ? one.localeCompare(other, "en", { numeric: true }) : difference);
}

/** Put the rows that fit the filter in the order asked for. Rows out of their places have all their labels. */
function arrange(view) {
  const { table, kinds, rows, by, falls, words } = view;
  const fits = ({ cells }) => words.every((word) => cells.some((cell) => cell.toLowerCase().includes(word)));
  view.shown = rows.filter(fits);
  if (by !== null) view.shown.sort((one, other) => compare(one.cells[by], other.cells[by], kinds[by], falls));
  const isWhole = by === null && view.shown.length === rows.length;
  for (const { element, cells, written } of rows) kinds.forEach((kind, i) => kind === "label" && (element.cells[i].textContent = (isWhole ? written : cells)[i]));
  table.tBodies[0].replaceChildren(...view.shown.map(({ element }) => element));
  table.classList.toggle("rearranged", !isWhole);
  view.heads.forEach((head, i) => head.setAttribute("aria-sort", i !== by ? "none" : falls ? "descending" : "ascending"));
  view.count.textContent = view.shown.length === rows.length ? "" : `${view.shown.length} of ${rows.length} rows`;
}

/** A click sorts, best numbers and first letters first; a second one turns the order, a third one restores it. */
function sortBy(view, i) {
  const first = view.kinds[i] === "number";
  if (view.by !== i) Object.assign(view, { by: i, falls: first });
  else if (view.falls === first) view.falls = !first;
  else view.by = null;
  arrange(view);
}

function hideColumn(view, i, isHidden) {
  view.hidden[isHidden ? "add" : "delete"](i);
  for (const row of [view.heads, ...view.rows.map(({ element }) => element.cells)]) row[i].hidden = isHidden;
}

/** Cells of the rows that are shown, in their order, from the cells of all rows. */
function shownRows(view, cells) {
  if (!view.table.classList.contains("rearranged")) return cells;
  const filled = [];
  for (const [i, { written, cells: labels }] of view.rows.entries()) {
    // A label that repeats the row above is blank. Out of its place, a row needs it.
    filled.push(cells[i].map((cell, j) => (written[j] === labels[j] ? cell : filled[i - 1][j])));
  }
  return view.shown.map((row) => filled[view.rows.indexOf(row)]);
}

/** The table in LaTeX, without the rows and columns that are hidden. */
function toLatex(view) {
  const { text, columns: specifications, header, rows, parts } = view.latex;
  const isWhole = !view.table.classList.contains("rearranged");
  if (isWhole && !view.hidden.size) return text;
  const [, start, name, end] = text.match(/^([^]*?)\\begin\{(tabularx?|longtable)\}[^]*\\end\{\2\}\n([^]*)$/);
  const caption = text.match(/^\\caption.* \\\\\n/m)?.[0] ?? "";
  const tables = [];
  for (const part of parts) {
    const columns = part.filter((i) => !view.hidden.has(i));
    if (parts.length > 1 && !columns.some((i) => view.kinds[i] === "number")) continue;
    const line = (cells) => `${columns.map((i) => cells[i]).join(" & ")} \\\\\n`;
    const body = shownRows(view, rows).map((cells, i) => {
      const isBreak = isWhole && i && view.rows[i].element.classList.contains("break");
      return (isBreak ? "\\midrule\n" : "") + line(cells);
    });
    const width = name === "tabularx" ? "{\\linewidth}" : "";
    const begin = `\\begin{${name}}${width}{${columns.map((i) => specifications[i]).join("")}}\n`;
    const head = `${tables.length ? "" : caption}\\toprule\n${line(header)}\\midrule\n${name === "longtable" ? "\\endhead\n" : ""}`;
    tables.push(`${begin}${head}${body.join("")}\\bottomrule\n\\end{${name}}\n`);
  }
  return start + tables.join(name === "longtable" ? "" : "\\par\\medskip\n") + end;
}

/** The table in Markdown, without the rows and columns that are hidden. */
function toMarkdown(view) {
  // Escaped pipes belong to a cell.
  const [header, rule, ...rows] = view.markdown.split("\n").map((line) => line.split(/(?<!\\)\|/).slice(1, -1));
  const lines = [header, rule, ...shownRows(view, rows)];
  return lines.map((cells) => `|${cells.filter((_, i) => !view.hidden.has(i)).join("|")}|\n`).join("");
}

const FORMS = {
  CSV: { suffix: "csv", make: (view) => view.csv, title: "all rows and columns in full precision" },
  LaTeX: { suffix: "tex", make: toLatex, title: "the table as it is shown" },
  Markdown: { suffix: "md", make: toMarkdown, title: "the table as it is shown" },
};

function save(name, text) {
  const address = URL.createObjectURL(new Blob([text], { type: "text/plain;charset=utf-8" }));
  make("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60000);
}

function addTools(table) {
  const view = readTable(table);
  const box = table.closest(".scroll");
  const article = table.closest("article");
  view.csv = article.querySelector(".csv").textContent;
  view.latex = JSON.parse(article.querySelector(".latex").textContent);
  view.markdown = article.querySelector(".markdown").textContent;
  view.count = make("span", { class: "count", "aria-live": "polite" });
  view.heads.forEach((head, i) => head.replaceChildren(make("button", { type: "button", class: "sort", onclick: () => sortBy(view, i) }, view.names[i])));
  const filter = make("input", { type: "search", placeholder: "filter rows", "aria-label": "filter rows" });
  filter.addEventListener("input", () => {
    view.words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    arrange(view);
  });
  const boxes = view.names.map((name, i) => make("label", {}, make("input", { type: "checkbox", checked: true, onchange: (event) => hideColumn(view, i, !event.target.checked) }), name));
  const columns = make("details", { class: "columns" }, make("summary", {}, "columns"), make("div", {}, boxes));
  const buttons = Object.entries(FORMS).map(([form, { suffix, make: write, title }]) =>
    make("button", { type: "button", title, onclick: () => save(`${table.dataset.key}.${suffix}`, write(view)) }, form),
  );
  const rest = table.tHead.querySelectorAll(".rest").length;
  const whole = make("button", { type: "button", class: "whole", "aria-pressed": "false", onclick: () => {
    const isWhole = table.classList.toggle("whole");
    whole.setAttribute("aria-pressed", isWhole);
    whole.textContent = isWhole ? "fewer columns" : `${rest} more columns`;
  } }, `${rest} more columns`);
  box.before(make("div", { class: "tools" }, filter, columns, make("span", {}, "download ", buttons), rest ? whole : null, view.count));
}

document.querySelectorAll("table[data-key]").forEach(addTools);

/** A link into a folded section opens it; browsers scroll there only if it is open. */
function unfold() {
  const target = document.getElementById(location.hash.slice(1));
  target?.querySelector(":scope > details")?.setAttribute("open", "");
  target?.closest("details")?.setAttribute("open", "");
  target?.scrollIntoView();
}
window.addEventListener("hashchange", unfold);
if (location.hash) unfold();
