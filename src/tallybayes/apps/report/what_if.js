"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);
  const n = data.classes.length, maxShown = Math.min(n, 12);
  const byFrequency = [...data.prior.keys()].sort((a, b) => data.prior[b] - data.prior[a]);
  const shown = byFrequency.slice(0, maxShown).sort((a, b) => a - b);
  const state = { row: 0, choice: [], prior: [...data.prior], cost: shown.map((i) => shown.map((j) => (i === j ? 0 : 1))) };

  const make = (tag, text, parent, properties) => {
    const element = document.createElement(tag);
    if (text !== undefined) element.textContent = text;
    Object.assign(element, properties || {});
    if (parent) parent.append(element);
    return element;
  };
  const softmax = (log) => {
    const top = Math.max(...log), weight = log.map((x) => Math.exp(x - top));
    const total = weight.reduce((a, b) => a + b, 0);
    return weight.map((x) => x / total);
  };
  const priorShift = () => state.prior.map((p, k) => Math.log(Math.max(p, 1e-12)) - Math.log(Math.max(data.prior[k], 1e-12)));
  const costFunction = () => {  // cost of predicting j for true class i: as entered for the classes shown, else 0 or 1
    const position = new Map(shown.map((k, at) => [k, at]));
    return (i, j) => (position.has(i) && position.has(j) ? state.cost[position.get(i)][position.get(j)] : i === j ? 0 : 1);
  };
  const decide = (p) => {  // the class with the lowest expected cost
    const cost = costFunction();
    let best = 0, least = Infinity;
    for (let j = 0; j < n; j++) {
      let expected = 0;
      for (let i = 0; i < n; i++) expected += p[i] * cost(i, j);
      if (expected < least - 1e-12) { least = expected; best = j; }
    }
    return best;
  };
  const bar = (parent, name, length, text, against) => {
    const line = make("div", undefined, parent, { className: "line" });
    make("span", name, line);
    const fill = make("i", undefined, make("div", undefined, line, { className: "track" }), { className: against ? "against" : "" });
    fill.style.width = `${100 * Math.min(1, Math.abs(length))}%`;
    make("output", text, line);
  };

  const logProba = () => {  // of the selected row with its changed cells
    const row = data.rows[state.row], log = [...row.log];
    state.choice.forEach((choice, column) => {
      if (choice >= 0) row.changes[column][choice].forEach((difference, k) => { log[k] += difference; });
    });
    return log;
  };

  const draw = () => {
    const row = data.rows[state.row], shift = priorShift(), log = logProba().map((x, k) => x + shift[k]), p = softmax(log), predicted = decide(p);
    byId("prediction").textContent = `Predicted class: ${data.classes[predicted]} (${(100 * p[predicted]).toFixed(1)} %); true class: ${row.truth}.`;
    const posterior = byId("posterior");
    posterior.replaceChildren();
    [...p.keys()].sort((a, b) => p[b] - p[a]).slice(0, maxShown).forEach((k) => bar(posterior, data.classes[k], p[k], `${(100 * p[k]).toFixed(1)} %`));
    drawEvidence(row, p);
    decideAll(shift);
  };

  const drawEvidence = (row, p) => {  // log-odds of the two most probable classes with each cell, minus those without it
    const evidence = byId("evidence"), [first, second] = [...p.keys()].sort((a, b) => p[b] - p[a]);
    evidence.replaceChildren();
    if (n < 2) return;
    const lines = data.columns.map((column, at) => {
      const choice = state.choice[at], hidden = data.missing ? row.changes[at][0] : row.log.map(() => 0);
      const now = choice < 0 ? row.log.map(() => 0) : row.changes[at][choice];
      const weight = now[first] - hidden[first] - (now[second] - hidden[second]);
      return { name: `${column.name}: ${choice < 0 ? row.cells[at] : column.choices[choice]}`, weight };
    }).filter((line) => line.weight !== 0).sort((a, b) => Math.abs(b.weight) - Math.abs(a.weight));
    const largest = Math.max(...lines.map((line) => Math.abs(line.weight)), 1e-9);
    byId("evidence-title").textContent = lines.length ? `Contributions to the log-odds of ${data.classes[first]} against ${data.classes[second]}, in nats` : "";
    lines.forEach(({ name, weight }) => bar(evidence, name, weight / largest, `${weight >= 0 ? "+" : "−"}${Math.abs(weight).toFixed(2)}`, weight < 0));
  };

  const decideAll = (shift) => {
    const cost = costFunction(), table = shown.map(() => shown.map(() => 0)), position = new Map(shown.map((k, at) => [k, at]));
    let correct = 0, total = 0, changed = 0, known = 0;
    data.all.forEach((log, r) => {
      const truth = data.truth[r];
      if (truth < 0) return;
      const predicted = decide(softmax(log.map((x, k) => x + shift[k])));
      known += 1;
      correct += predicted === truth;
      total += cost(truth, predicted);
      changed += predicted !== log.indexOf(Math.max(...log));
      if (position.has(truth) && position.has(predicted)) table[position.get(truth)][position.get(predicted)] += 1;
    });
    byId("decisions").textContent = known ? `Accuracy: ${((100 * correct) / known).toFixed(1)} % of ${known} rows. Mean cost: ${(total / known).toFixed(3)}. ${changed} predictions differ from the most probable class under the fitted class frequencies.` : "";
    const matrix = make("table", undefined, undefined, { className: "shaded" });
    const head = make("tr", undefined, make("thead", undefined, matrix));
    make("th", "true \\ predicted", head, { scope: "col" });
    shown.forEach((k) => make("th", data.classes[k], head, { scope: "col" }));
    const body = make("tbody", undefined, matrix);
    table.forEach((cells, at) => {
      const line = make("tr", undefined, body), sum = cells.reduce((a, b) => a + b, 0) || 1;
      make("th", data.classes[shown[at]], line, { scope: "row" });
      cells.forEach((count) => make("td", count, line, { className: "number bar" }).style.setProperty("--share", count / sum));
    });
    byId("confusion").replaceChildren(matrix);
  };

  const drawCells = () => {
    const row = data.rows[state.row], parent = byId("cells");
    state.choice = data.columns.map(() => -1);
    parent.replaceChildren();
    data.columns.forEach((column, at) => {
      const line = make("div", undefined, parent, { className: "line" });
      const id = `cell-${at}`;
      make("label", column.name, line, { htmlFor: id });
      const select = make("select", undefined, line, { id });
      make("option", `${row.cells[at]} (observed)`, select, { value: "-1" });
      column.choices.forEach((choice, k) => make("option", choice, select, { value: String(k) }));
      make("output", "", line);
      select.addEventListener("change", () => {
        if (!data.additive) {
          state.choice.fill(-1);
          parent.querySelectorAll("select").forEach((other) => { if (other !== select) other.value = "-1"; });
        }
        state.choice[at] = Number(select.value);
        draw();
      });
    });
    byId("how").textContent = data.additive ? "" : "Only one cell can be changed at a time: the contribution of a column depends on the other columns.";
    draw();
  };

  data.rows.forEach((row, at) => make("option", `${row.number}: ${row.truth}`, byId("row"), { value: String(at) }));
  byId("row").addEventListener("change", (event) => { state.row = Number(event.target.value); drawCells(); });
  byId("reset").addEventListener("click", () => {
    state.prior = [...data.prior];
    byId("prior").querySelectorAll("input").forEach((input, at) => { input.value = String(state.prior[shown[at]]); });
    drawPrior();
    drawCells();
  });

  const drawPrior = () => byId("prior").querySelectorAll("output").forEach((output, at) => { output.textContent = `${(100 * state.prior[shown[at]]).toFixed(1)} %`; });
  shown.forEach((k) => {
    const line = make("div", undefined, byId("prior"), { className: "line" }), id = `prior-${k}`;
    make("label", data.classes[k], line, { htmlFor: id });
    const input = make("input", undefined, line, { id, type: "range", min: "0.001", max: "0.999", step: "any", value: String(data.prior[k]) });
    make("output", "", line);
    input.addEventListener("input", () => {  // the others keep their proportions
      const share = Number(input.value), rest = state.prior.reduce((a, b, at) => a + (at === k ? 0 : b), 0);
      state.prior = state.prior.map((p, at) => (at === k ? share : rest > 0 ? (p * (1 - share)) / rest : (1 - share) / Math.max(1, n - 1)));
      byId("prior").querySelectorAll("input").forEach((other, at) => { if (other !== input) other.value = String(state.prior[shown[at]]); });
      drawPrior();
      draw();
    });
  });
  const table = make("table", undefined, byId("cost")), head = make("tr", undefined, make("thead", undefined, table));
  make("th", "true \\ predicted", head, { scope: "col" });
  shown.forEach((k) => make("th", data.classes[k], head, { scope: "col" }));
  const body = make("tbody", undefined, table);
  shown.forEach((i, at) => {
    const line = make("tr", undefined, body);
    make("th", data.classes[i], line, { scope: "row" });
    shown.forEach((j, to) => {
      const input = make("input", undefined, make("td", undefined, line), { type: "number", min: "0", step: "any", value: String(state.cost[at][to]) });
      input.setAttribute("aria-label", `cost of predicting ${data.classes[j]} for true class ${data.classes[i]}`);
      input.addEventListener("input", () => {
        const cost = Number(input.value);
        if (Number.isFinite(cost) && cost >= 0) { state.cost[at][to] = cost; draw(); }
      });
    });
  });
  drawPrior();
  drawCells();

  const reachable = () => document.querySelectorAll(".wide").forEach((box) => {  // by the keyboard, where it scrolls
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  });
  addEventListener("resize", reachable);
  reachable();
})();
