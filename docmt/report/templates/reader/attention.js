// What a system looked at in the source while it wrote a word, by part of its attention.

/** Folded, for a document of a run: the translation as words to choose from, and the source under the chosen one. */
function attentionPart(run, instances) {
  const { key } = data.runs[run];
  const details = make("details", { class: "attention", open: state.attention === key }, make("summary", {}, "Attention: ", named(run)));
  const fill = () => details.replaceChildren(details.firstChild, ...attentionBody(instances));
  if (details.open) fill();
  details.addEventListener("toggle", () => {
    if (details.open) fill();
    Object.assign(state, details.open ? { attention: key } : state.attention === key ? { attention: "", word: "" } : {});
    history.replaceState(null, "", address());
  });
  return details;
}

function attentionBody(instances) {
  const [src, tgt] = part().languages;
  const shown = make("div", { "aria-live": "polite" });
  const buttons = [];
  const choose = (number) => {
    buttons.forEach(({ button }, other) => button.setAttribute("aria-pressed", other === number));
    const { instance, word } = buttons[number];
    shown.replaceChildren(...lookedAt(instance, word, src));
  };
  const sentences = instances.flatMap((instance) => {
    let word = 0;
    return instance.tgt.map((words, i) => {
      const row = words.flatMap((text) => {
        const number = buttons.length;
        const button = make("button", { type: "button", class: "word", "aria-pressed": "false", onclick: () => {
          state.word = `${number}`;
          history.replaceState(null, "", address());
          choose(number);
        } }, text);
        buttons.push({ button, instance, word: word++ });
        return [button, " "];
      });
      return make("p", { lang: tgt, dir: "auto" }, make("span", { class: "number" }, `${instance.first + i + 1} `), row);
    });
  });
  if (buttons[state.word]) choose(Number(state.word));
  const hint = "Choose a word of the translation: marked are the six source words that the last layer of the decoder attended to most when it wrote the word, in percent, the mean over heads; sentences without one are left out. The words are tokens of the model.";
  return [make("p", { class: "caption" }, hint), ...sentences, shown];
}

/** The source of an instance for each part of the attention, with the weights of one target word. */
function lookedAt(instance, word, lang) {
  const names = instance.parts;
  const gate = instance.gate ? [make("p", { class: "caption" }, `Gate: ${instance.gate[word]} % ${names[0]}, ${100 - instance.gate[word]} % ${names[1]}.`)] : [];
  return gate.concat(
    names.map((name) => {
      const weights = new Map(instance.weights[name][word]);
      let place = 0;
      const sentences = instance.src.map((words, i) => {
        const first = place;
        place += words.length;
        const row = words.flatMap((text, j) => {
          const percent = weights.get(first + j);
          const attributes = percent === undefined ? {} : { class: "looked", style: `--share: ${percent / 100}`, "data-percent": percent };
          return [make("span", attributes, text), " "];
        });
        const isSeen = words.some((_, j) => weights.has(first + j));
        return isSeen ? make("p", { lang, dir: "auto" }, make("span", { class: "number" }, `${instance.first + i + 1} `), row) : null;
      });
      return make("div", {}, make("h3", {}, name), sentences);
    }),
  );
}
