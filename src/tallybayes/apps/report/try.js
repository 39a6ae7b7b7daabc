"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);
  const n = data.classes.length, most = Math.min(n, 12);
  const often = [...data.prior.keys()].sort((a, b) => data.prior[b] - data.prior[a]);
  const shown = often.slice(0, most).sort((a, b) => a - b);
  const state = { row: 0, choice: [], prior: [...data.prior], cost: shown.map((i) => shown.map((j) => (i === j ? 0 : 1))) };

  const make = (kind, text, where, more) => {
    const made = document.createElement(kind);
    if (text !== undefined) made.textContent = text;
    Object.assign(made, more || {});
    if (where) where.append(made);
    return made;
  };
  const softmax = (log) => {
    const top = Math.max(...log), weight = log.map((x) => Math.exp(x - top));
    const total = weight.reduce((a, b) => a + b, 0);
    return weight.map((x) => x / total);
  };
  const shift = () => state.prior.map((p, k) => Math.log(Math.max(p, 1e-12)) - Math.log(Math.max(data.prior[k], 1e-12)));
  const costs = () => {  // of answering j where it is i: those shown, and 1 for any other mistake
    const place = new Map(shown.map((k, at) => [k, at]));
    return (i, j) => (place.has(i) && place.has(j) ? state.cost[place.get(i)][place.get(j)] : i === j ? 0 : 1);
  };
  const decide = (p) => {
    const cost = costs();
    let best = 0, least = Infinity;
    for (let j = 0; j < n; j++) {
      let expected = 0;
      for (let i = 0; i < n; i++) expected += p[i] * cost(i, j);
      if (expected < least - 1e-12) { least = expected; best = j; }
    }
    return best;
  };
  const bar = (where, name, share, text, against) => {
    const line = make("div", undefined, where, { className: "line" });
    make("span", name, line);
    const inside = make("i", undefined, make("div", undefined, line, { className: "track" }), { className: against ? "against" : "" });
    inside.style.width = `${100 * Math.min(1, Math.abs(share))}%`;
    make("output", text, line);
  };

  const logs = () => {
    const row = data.rows[state.row], log = [...row.log];
    state.choice.forEach((choice, column) => {
      if (choice >= 0) row.changes[column][choice].forEach((gap, k) => { log[k] += gap; });
    });
    return log;
  };

  const draw = () => {
    const row = data.rows[state.row], move = shift(), log = logs().map((x, k) => x + move[k]), p = softmax(log), answer = decide(p);
    byId("told").textContent = `The answer is ${data.classes[answer]} (${(100 * p[answer]).toFixed(1)} %); the label is ${row.truth}.`;
    const posterior = byId("posterior");
    posterior.replaceChildren();
    [...p.keys()].sort((a, b) => p[b] - p[a]).slice(0, most).forEach((k) => bar(posterior, data.classes[k], p[k], `${(100 * p[k]).toFixed(1)} %`));
    drawEvidence(row, p);
    decideAll(move);
  };

  const drawEvidence = (row, p) => {  // what every cell says for the first class, not the second: with it less without it
    const evidence = byId("evidence"), [first, second] = [...p.keys()].sort((a, b) => p[b] - p[a]);
    evidence.replaceChildren();
    if (n < 2) return;
    const lines = data.columns.map((column, at) => {
      const choice = state.choice[at], hidden = data.missing ? row.changes[at][0] : row.log.map(() => 0);
      const now = choice < 0 ? row.log.map(() => 0) : row.changes[at][choice];
      const gap = now[first] - hidden[first] - (now[second] - hidden[second]);
      return { name: `${column.name}: ${choice < 0 ? row.cells[at] : column.choices[choice]}`, gap };
    }).filter((line) => line.gap !== 0).sort((a, b) => Math.abs(b.gap) - Math.abs(a.gap));
    const most = Math.max(...lines.map((line) => Math.abs(line.gap)), 1e-9);
    byId("evidence-title").textContent = lines.length ? `Evidence for ${data.classes[first]}, not ${data.classes[second]}, in nats` : "";
    lines.forEach(({ name, gap }) => bar(evidence, name, gap / most, `${gap >= 0 ? "+" : "−"}${Math.abs(gap).toFixed(2)}`, gap < 0));
  };

  const decideAll = (move) => {
    const cost = costs(), table = shown.map(() => shown.map(() => 0)), place = new Map(shown.map((k, at) => [k, at]));
    let right = 0, total = 0, moved = 0, known = 0;
    data.all.forEach((log, r) => {
      const truth = data.truth[r];
      if (truth < 0) return;
      const answer = decide(softmax(log.map((x, k) => x + move[k])));
      known += 1;
      right += answer === truth;
      total += cost(truth, answer);
      moved += answer !== log.indexOf(Math.max(...log));
      if (place.has(truth) && place.has(answer)) table[place.get(truth)][place.get(answer)] += 1;
    });
    byId("summary").textContent = known ? `${((100 * right) / known).toFixed(1)} % of ${known} rows are right; the mean cost is ${(total / known).toFixed(3)}; ${moved} answers are others than the most probable class as counted.` : "";
    const drawn = make("table");
    const head = make("tr", undefined, make("thead", undefined, drawn));
    make("th", "", head);
    shown.forEach((k) => make("th", data.classes[k], head, { scope: "col" }));
    const body = make("tbody", undefined, drawn);
    table.forEach((cells, at) => {
      const line = make("tr", undefined, body), sum = cells.reduce((a, b) => a + b, 0) || 1;
      make("th", data.classes[shown[at]], line, { scope: "row" });
      cells.forEach((count) => make("td", count, line, { className: "number bar" }).style.setProperty("--share", count / sum));
    });
    byId("decided").replaceChildren(drawn);
  };

  const drawCells = () => {
    const row = data.rows[state.row], where = byId("cells");
    state.choice = data.columns.map(() => -1);
    where.replaceChildren();
    data.columns.forEach((column, at) => {
      const line = make("div", undefined, where, { className: "line" });
      const id = `cell-${at}`;
      make("label", column.name, line, { htmlFor: id });
      const select = make("select", undefined, line, { id });
      make("option", `${row.cells[at]} (as it is)`, select, { value: "-1" });
      column.choices.forEach((choice, k) => make("option", choice, select, { value: String(k) }));
      make("output", "", line);
      select.addEventListener("change", () => {
        if (!data.additive) {
          state.choice.fill(-1);
          where.querySelectorAll("select").forEach((other) => { if (other !== select) other.value = "-1"; });
        }
        state.choice[at] = Number(select.value);
        draw();
      });
    });
    byId("how").textContent = data.additive ? "" : "One cell at a time: in this model what a column says depends on the others.";
    draw();
  };

  data.rows.forEach((row, at) => make("option", `${row.number}: ${row.truth}`, byId("row"), { value: String(at) }));
  byId("row").addEventListener("change", (event) => { state.row = Number(event.target.value); drawCells(); });
  byId("again").addEventListener("click", () => {
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
  make("th", "", head);
  shown.forEach((k) => make("th", data.classes[k], head, { scope: "col" }));
  const body = make("tbody", undefined, table);
  shown.forEach((i, at) => {
    const line = make("tr", undefined, body);
    make("th", data.classes[i], line, { scope: "row" });
    shown.forEach((j, to) => {
      const input = make("input", undefined, make("td", undefined, line), { type: "number", min: "0", step: "any", value: String(state.cost[at][to]) });
      input.setAttribute("aria-label", `cost of answering ${data.classes[j]} where it is ${data.classes[i]}`);
      input.addEventListener("input", () => {
        const cost = Number(input.value);
        if (Number.isFinite(cost) && cost >= 0) { state.cost[at][to] = cost; draw(); }
      });
    });
  });
  drawPrior();
  drawCells();
})();
