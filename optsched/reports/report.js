"use strict";
// Controls of a report: frontiers and timelines. Data are in the page; nothing is fetched.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const NS = "http://www.w3.org/2000/svg";

  function element(tag, attributes = {}, ...children) {
    const made = document.createElement(tag);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  }

  function shape(parent, tag, attributes, text = "") {
    const made = document.createElementNS(NS, tag);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.textContent = text;
    parent.append(made);
    return made;
  }

  const colour = n => getComputedStyle(document.documentElement).getPropertyValue(n).trim();
  const clamp = (value, low, high) => Math.min(high, Math.max(low, value));

  function text(value) {
    if (value === null || value === undefined) return "–";
    const size = Math.abs(value);
    if (size !== 0 && (size < 1e-4 || size >= 1e9)) return value.toExponential(3);
    return value.toLocaleString("en", { maximumFractionDigits: size >= 1000 ? 1 : size >= 10 ? 3 : 5 });
  }

  function ticks(low, high, count) {
    const raw = (high - low) / count || 1;
    const power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map(m => m * power).find(s => s >= raw);
    const found = [];
    for (let v = Math.ceil(low / step) * step; v <= high + step * 1e-9; v += step) found.push(v);
    return found.map(v => Number(v.toPrecision(12)));
  }

  // --- frontier -------------------------------------------------------------------------------

  const VALUE = 0, OBJECTIVE = 1, BOUND = 2, GAP = 3, STATUS = 4, REASON = 5;
  const BOX = { width: 900, height: 400, left: 74, right: 20, top: 16, bottom: 46 };  // width: as drawn last
  const DASHES = ["", "7 3", "2 3", "9 3 2 3"];  // of each seven methods, which have colours of their own
  const percent = gap => gap === null ? "–" : gap < 1e-9 ? "0 %" : `${(100 * gap).toPrecision(3)} %`;

  function scales(frontier, shown, isLog) {
    const values = frontier.values;
    const heights = frontier.methods.filter((_, n) => shown[n]).flatMap(m => m.points)
      .flatMap(p => [p[OBJECTIVE], p[BOUND]]).filter(v => v !== null);
    let [low, high] = [heights.reduce((a, b) => Math.min(a, b), Infinity),
      heights.reduce((a, b) => Math.max(a, b), -Infinity)];
    if (!heights.length) [low, high] = [0, 1];
    const curve = isLog && low > 0 ? Math.log : v => v;
    const flat = 0.01 * Math.max(Math.abs(low), Math.abs(high));  // less than this looks flat
    const room = high - low < flat ? flat : (high - low || 1) * 0.05;
    [low, high] = curve === Math.log ? [low / 1.05, high * 1.05] : [low - room, high + room];
    const first = values[0], span = values[values.length - 1] - first || 1;
    const width = BOX.width - BOX.left - BOX.right, height = BOX.height - BOX.top - BOX.bottom;
    return {
      x: v => BOX.left + (values.length > 1 ? (v - first) / span : 0.5) * width,
      y: v => BOX.top + (1 - (curve(v) - curve(low)) / (curve(high) - curve(low))) * height,
      steps: curve === Math.log ? powers(low, high) : ticks(low, high, 6),
      low, high, first, last: values[values.length - 1],
    };
  }

  function powers(low, high) {
    const found = [];
    for (let p = 10 ** Math.floor(Math.log10(low)); p <= high; p *= 10) found.push(p, 2 * p, 5 * p);
    return found.filter(v => v >= low && v <= high);
  }

  function path(points, column, at) {
    let pen = "M", line = "";
    for (const p of points) {
      if (p[column] === null) { pen = "M"; continue; }
      line += `${pen}${at.x(p[VALUE]).toFixed(2)} ${at.y(p[column]).toFixed(2)}`;
      pen = "L";
    }
    return line;
  }

  function axes(svg, frontier, at) {
    const bottom = BOX.height - BOX.bottom;
    for (const v of at.steps) {
      shape(svg, "line", { x1: BOX.left, x2: BOX.width - BOX.right, y1: at.y(v), y2: at.y(v), class: "faint" });
      shape(svg, "text", { x: BOX.left - 8, y: at.y(v) + 4, "text-anchor": "end" }, text(v));
    }
    for (const v of ticks(at.first, at.last, Math.max(2, Math.min(8, BOX.width / 90)))) {
      shape(svg, "line", { x1: at.x(v), x2: at.x(v), y1: bottom, y2: bottom + 5, class: "faint" });
      shape(svg, "text", { x: at.x(v), y: bottom + 19, "text-anchor": "middle" }, text(v));
    }
    shape(svg, "text", { x: (BOX.left + BOX.width) / 2, y: BOX.height - 6, "text-anchor": "middle" }, frontier.name);
    const middle = bottom / 2;
    shape(svg, "text", { x: 14, y: middle, "text-anchor": "middle", transform: `rotate(-90 14 ${middle})` },
      frontier.objective);
  }

  function curves(svg, frontier, at, shown) {
    frontier.methods.forEach((method, n) => {
      if (!shown[n]) return;
      const stroke = `var(--c${n % 7})`;
      if (n === 0) {
        shape(svg, "path", { d: path(method.points, BOUND, at), fill: "none", stroke, "stroke-width": 1.3,
          "stroke-dasharray": "5 4", class: "bound" });
      }
      shape(svg, "path", { d: path(method.points, OBJECTIVE, at), fill: "none", stroke,
        "stroke-dasharray": DASHES[Math.floor(n / 7) % 4], "stroke-width": n ? 1 : 2.2, "stroke-opacity": n ? 0.55 : 1, class: "curve" });
      if (n || method.points.length <= 40) {
        for (const p of method.points.filter(q => q[OBJECTIVE] !== null)) {
          shape(svg, "circle", { cx: at.x(p[VALUE]), cy: at.y(p[OBJECTIVE]), r: n ? 2.4 : 3,
            fill: n < 7 ? stroke : "var(--panel)", stroke });
        }
      }
    });
    for (const p of frontier.methods[0].points.filter(q => q[OBJECTIVE] === null)) {
      shape(svg, "text", { x: at.x(p[VALUE]), y: BOX.height - BOX.bottom - 4, "text-anchor": "middle" }, "×");
    }
    knee(svg, frontier, at);
  }

  function knee(svg, frontier, at) {
    const here = frontier.methods.map(m => m.points.find(p => p[VALUE] === frontier.knee))
      .filter(p => p && p[OBJECTIVE] !== null).map(p => p[OBJECTIVE]);
    if (!here.length) return;
    const best = here[0], x = at.x(frontier.knee), y = at.y(best);
    shape(svg, "circle", { cx: x, cy: y, r: 7, fill: "none", stroke: "var(--text)", "stroke-width": 1.5, class: "knee" });
    shape(svg, "text", { x: x + 11, y: y - 8 }, "knee");
  }

  function readout(frontier, index) {
    const value = frontier.values[index];
    const head = ["method", frontier.objective, "bound", "gap", "status"];
    const body = element("tbody");
    frontier.methods.forEach((method, n) => {
      const p = method.points.find(q => q[VALUE] === value);
      if (!p) return;
      const row = element("tr", {}, element("td", { style: `color:var(--c${n % 7})` }, method.name));
      for (const cell of [text(p[OBJECTIVE]), text(p[BOUND]), percent(p[GAP])]) {
        row.append(element("td", { class: "number" }, cell));
      }
      row.append(element("td", {}, p[REASON] ? `${p[STATUS]}: ${p[REASON]}` : p[STATUS]));
      body.append(row);
    });
    const heads = element("tr", {}, ...head.map(name => element("th", { scope: "col" }, name)));
    return element("table", {}, element("thead", {}, heads), body);
  }

  function showFrontier(place, frontier) {
    const label = place.dataset.label;
    const slider = element("input", { type: "range", min: 0, max: frontier.values.length - 1, step: 1,
      "aria-label": frontier.parameter });
    const told = element("output", {});
    const stage = element("div", { class: "stage" });
    const table = element("div", { class: "wide readout", tabindex: 0, "aria-live": "polite" });
    const shown = frontier.methods.map(() => true);
    const boxes = frontier.methods.map((method, n) => {
      const box = element("input", { type: "checkbox" });
      box.checked = true;
      box.addEventListener("change", () => { shown[n] = box.checked; draw(); });
      const swatch = document.createElementNS(NS, "svg");
      swatch.setAttribute("class", "swatch");
      swatch.setAttribute("aria-hidden", "true");
      shape(swatch, "line", { x1: 0, x2: 22, y1: 4, y2: 4, stroke: `var(--c${n % 7})`, "stroke-width": 2,
        "stroke-dasharray": DASHES[Math.floor(n / 7) % 4] });
      return element("label", { style: `color:var(--c${n % 7})` }, box, " ", swatch, ` ${method.name}`);
    });
    const log = element("input", { type: "checkbox" });
    log.addEventListener("change", () => draw());
    boxes.push(element("label", {}, log, " log axis"));
    const start = frontier.knee === null ? Math.floor(frontier.values.length / 2) : frontier.values.indexOf(frontier.knee);
    slider.value = start;
    let at, cursor;

    function draw() {
      const svg = document.createElementNS(NS, "svg");
      const width = BOX.width = Math.max(280, stage.clientWidth || 900);
      BOX.height = width < 600 ? 300 : 400;
      svg.setAttribute("viewBox", `0 0 ${width} ${BOX.height}`);
      svg.setAttribute("role", "img");
      svg.setAttribute("aria-label", label);
      at = scales(frontier, shown, log.checked);
      axes(svg, frontier, at);
      curves(svg, frontier, at, shown);
      cursor = shape(svg, "line", { y1: BOX.top, y2: BOX.height - BOX.bottom, stroke: "var(--text)",
        "stroke-opacity": 0.5, class: "cursor" });
      svg.addEventListener("pointermove", event => {
        const box = svg.getBoundingClientRect();
        const x = (event.clientX - box.left) / box.width * width;
        const far = frontier.values.map(v => Math.abs(at.x(v) - x));
        slider.value = far.indexOf(far.reduce((a, b) => Math.min(a, b)));
        tell();
      });
      stage.replaceChildren(svg);
      tell();
    }

    function tell() {
      const value = frontier.values[slider.value];
      told.textContent = `${frontier.name}: ${text(value)}`;
      slider.setAttribute("aria-valuetext", told.textContent);
      cursor.setAttribute("x1", at.x(value));
      cursor.setAttribute("x2", at.x(value));
      table.replaceChildren(readout(frontier, slider.value));
    }

    slider.addEventListener("input", tell);
    const hint = element("p", { class: "note" },
      "Move the slider or the pointer: the table tells the points at that value. Dashed: no plan is below it; ×: no plan.");
    place.append(element("div", { class: "controls" }, ...boxes), stage,
      element("div", { class: "controls" }, slider, told), table, hint);
    draw();
    let drawn = stage.clientWidth;
    new ResizeObserver(() => {
      if (stage.clientWidth === drawn) return;
      drawn = stage.clientWidth;
      draw();
    }).observe(stage);
  }

  // --- timeline -------------------------------------------------------------------------------

  const LEFT = 62, TOP = 10, PLOT = 110, GAP_HEIGHT = 16, AXIS = 26;
  const STEPS = [1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 14400, 21600, 43200, 86400];

  function duration(seconds) {
    if (seconds === null) return "–";
    const days = Math.floor(seconds / 86400), hours = Math.floor(seconds % 86400 / 3600);
    const minutes = Math.floor(seconds % 3600 / 60), rest = seconds % 60;
    if (days) return `${days} d ${hours} h`;
    if (hours) return `${hours} h ${minutes} min`;
    return minutes ? `${minutes} min ${Math.floor(rest)} s` : `${Number(rest.toFixed(2))} s`;
  }

  function moment(seconds, step) {
    if (step >= 86400) return `${text(seconds / 86400)} d`;
    if (step >= 3600) return `${text(seconds / 3600)} h`;
    return step >= 60 ? `${text(seconds / 60)} min` : `${text(seconds)} s`;
  }

  function timeSteps(from, to, count) {
    const raw = (to - from) / count;
    let step = STEPS.find(s => s >= raw);
    if (step === undefined) step = ticks(0, raw / 86400 * 2, 2)[1] * 86400 || 86400;
    if (raw < 1) step = ticks(0, raw * 2, 2)[1] || raw;
    const found = [];
    for (let v = Math.ceil(from / step) * step; v <= to; v += step) found.push(v);
    return [found, step];
  }

  class Timeline {
    constructor(place, told) {
      this.told = told;
      this.end = Math.max(told.end, 1e-6);
      this.view = [0, this.end];
      this.chosen = 0;
      this.lanesHeight = clamp(told.lanes * 13, 60, 460);
      this.height = TOP + PLOT + GAP_HEIGHT + this.lanesHeight + AXIS;
      this.canvas = element("canvas", { tabindex: 0, role: "application", "aria-roledescription": "timeline",
        "aria-label": `Timeline of ${place.dataset.label}; arrow keys move, plus and minus zoom, up and down tell jobs` });
      this.canvas.style.height = `${this.height}px`;
      this.tip = element("div", { class: "tip", "aria-live": "polite" });
      this.told_bar = -1;
      this.tip.hidden = true;
      this.range = element("output", {});
      const stage = element("div", { class: "stage" }, this.canvas, this.tip);
      const hint = element("p", { class: "note" }, "Drag to move; + and −, double click, or Ctrl and the wheel to zoom; " +
        "once it has the focus, arrow keys move, and up and down tell one job after the other. " + (told.lane === "GPU" ? "Each row is a GPU. " :
          "Each bar is a job from its first start to its end. ") + told.note);
      place.append(this.controls(), stage, hint);
      this.listen();
      new ResizeObserver(() => this.draw()).observe(stage);
      matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
      this.draw();
    }

    controls() {
      const button = (name, label, act) => {
        const made = element("button", { type: "button", "aria-label": label, title: label }, name);
        made.addEventListener("click", act);
        return made;
      };
      const select = element("select", { "aria-label": "what is drawn above" });
      this.told.series.forEach((series, n) => select.append(element("option", { value: n }, series.name)));
      select.addEventListener("change", () => { this.chosen = Number(select.value); this.draw(); });
      return element("div", { class: "controls" }, select,
        button("+", "zoom in", () => this.zoom(0.5)), button("−", "zoom out", () => this.zoom(2)),
        button("whole", "show all", () => this.show(0, this.end)), this.range);
    }

    show(from, to) {
      const span = clamp(to - from, this.end * 1e-6, this.end);
      const first = clamp(from, 0, this.end - span);
      this.view = [first, first + span];
      this.draw();
    }

    zoom(factor, around = (this.view[0] + this.view[1]) / 2) {
      const [from, to] = this.view;
      this.show(around - (around - from) * factor, around + (to - around) * factor);
    }

    move(share) {
      const by = (this.view[1] - this.view[0]) * share;
      this.show(this.view[0] + by, this.view[1] + by);
    }

    x(t) { return LEFT + (t - this.view[0]) / (this.view[1] - this.view[0]) * (this.width - LEFT - 8); }

    time(x) { return this.view[0] + (x - LEFT) / (this.width - LEFT - 8) * (this.view[1] - this.view[0]); }

    y(lane) { return TOP + PLOT + GAP_HEIGHT + lane / this.told.lanes * this.lanesHeight; }

    draw() {
      const scale = window.devicePixelRatio || 1;
      this.width = this.canvas.clientWidth || 600;
      this.canvas.width = Math.round(this.width * scale);
      this.canvas.height = Math.round(this.height * scale);
      const pen = this.pen = this.canvas.getContext("2d");
      pen.setTransform(scale, 0, 0, scale, 0, 0);
      pen.clearRect(0, 0, this.width, this.height);
      pen.font = "12px system-ui, DejaVu Sans, sans-serif";
      this.colours = [0, 1, 2, 3, 4, 5, 6].map(n => colour(`--c${n}`));
      this.ink = colour("--text");
      this.line = colour("--line");
      this.drawAxis();
      pen.save();
      pen.beginPath();
      pen.rect(LEFT, 0, this.width - LEFT - 8, this.height);
      pen.clip();
      this.drawSeries();
      this.drawBars();
      pen.restore();
      this.range.textContent = `${duration(this.view[0])} to ${duration(this.view[1])}`;
    }

    drawAxis() {
      const pen = this.pen, [found, step] = timeSteps(...this.view, Math.max(2, this.width / 120));
      pen.strokeStyle = this.line;
      pen.fillStyle = this.ink;
      pen.textAlign = "center";
      for (const t of found) {
        const x = Math.round(this.x(t)) + 0.5;
        pen.beginPath();
        pen.moveTo(x, TOP);
        pen.lineTo(x, this.height - AXIS);
        pen.stroke();
        pen.fillText(moment(t, step), clamp(x, LEFT, this.width - 20), this.height - 8);
      }
      pen.textAlign = "right";
      pen.textBaseline = "middle";
      for (const share of this.told.lane === "GPU" ? [0, 0.5, 1] : []) {
        const lane = Math.min(Math.floor(share * this.told.lanes), this.told.lanes - 1);
        pen.fillText(`GPU ${lane}`, LEFT - 6, this.y(lane + 0.5));
      }
      pen.textBaseline = "alphabetic";
    }

    drawSeries() {
      const series = this.told.series[this.chosen];
      if (!series) return;
      const pen = this.pen, { times } = this.told, { values } = series;
      const most = values.reduce((a, b) => Math.max(a, b ?? 0), 0) || 1;
      const y = v => TOP + PLOT * (1 - (v ?? 0) / most);
      pen.beginPath();
      pen.moveTo(this.x(0), y(0));
      let last = 0;
      times.forEach((t, n) => {
        pen.lineTo(this.x(t), y(last));
        pen.lineTo(this.x(t), y(values[n]));
        last = values[n];
      });
      pen.lineTo(this.x(this.end), y(last));
      pen.lineTo(this.x(this.end), y(0));
      pen.closePath();
      pen.globalAlpha = 0.35;
      pen.fillStyle = this.colours[0];
      pen.fill();
      pen.globalAlpha = 1;
      pen.strokeStyle = this.colours[0];
      pen.stroke();
      pen.restore();
      pen.fillStyle = this.ink;
      pen.textAlign = "right";
      pen.fillText(text(most), LEFT - 6, TOP + 8);
      pen.fillText("0", LEFT - 6, TOP + PLOT);
      pen.save();
      pen.beginPath();
      pen.rect(LEFT, 0, this.width - LEFT - 8, this.height);
      pen.clip();
    }

    drawBars() {
      const pen = this.pen, [lanes, counts, starts, ends, jobs] = this.told.bars;
      const thin = this.lanesHeight / this.told.lanes;
      for (let n = 0; n < lanes.length; n += 1) {
        if (ends[n] < this.view[0] || starts[n] > this.view[1]) continue;
        const x = this.x(starts[n]), top = this.y(lanes[n]);
        const width = Math.max(this.x(ends[n]) - x, 0.7), tall = thin * counts[n];
        pen.fillStyle = this.colours[jobs[n] % 7];
        pen.fillRect(x, top + (thin > 4 ? 0.5 : 0), width, tall - (thin > 4 ? 1 : 0));
        if (width > 46 && tall > 11) this.drawName(this.told.jobs.name[jobs[n]], x, top, width, tall);
      }
    }

    drawName(name, x, top, width, tall) {
      const pen = this.pen, left = Math.max(x, LEFT) + 4;
      if (pen.measureText(name).width > x + width - left) return;
      pen.fillStyle = colour("--page");
      pen.textAlign = "left";
      pen.fillText(name, left, top + tall / 2 + 4);
    }

    barAt(x, y) {
      const [lanes, counts, starts, ends] = this.told.bars, t = this.time(x);
      const lane = (y - this.y(0)) / this.lanesHeight * this.told.lanes;
      const room = 2 / (this.width - LEFT) * (this.view[1] - this.view[0]);
      for (let n = lanes.length - 1; n >= 0; n -= 1) {
        const inside = lane >= lanes[n] && lane < lanes[n] + counts[n];
        if (inside && t >= starts[n] - room && t <= ends[n] + room) return n;
      }
      return -1;
    }

    words(x, y) {
      const n = this.barAt(x, y), { jobs, bars, times, series } = this.told;
      if (n >= 0) {
        const job = bars[4][n];
        const lines = [`job ${jobs.name[job]}: ${jobs.gpus[job]} GPUs, ${jobs.outcome[job]}`,
          `here ${duration(bars[2][n])} to ${duration(bars[3][n])}`, `submitted ${duration(jobs.submit[job])}`];
        if (jobs.start[job] !== null) lines.push(`waited ${duration(jobs.start[job] - jobs.submit[job])} for its first start`);
        if (jobs.end[job] !== null) lines.push(`completion time ${duration(jobs.end[job] - jobs.submit[job])}`);
        return lines.join("\n");
      }
      const t = this.time(x);
      if (t < 0 || t > this.end || x < LEFT || !times.length) return "";
      let row = times.findIndex(s => s > t) - 1;
      if (row === -2) row = times.length - 1;
      return [duration(t), ...series.map(s => `${s.name}: ${text(s.values[Math.max(row, 0)])}`)].join("\n");
    }

    tell(event) {
      const box = this.canvas.getBoundingClientRect();
      this.tellAt(event.clientX - box.left, event.clientY - box.top);
    }

    tellAt(x, y) {
      const words = this.words(x, y);
      this.tip.hidden = !words;
      this.tip.textContent = words;
      this.tip.style.left = `${clamp(x + 14, 0, Math.max(0, this.width - this.tip.offsetWidth - 4))}px`;
      this.tip.style.top = `${clamp(y + 14, 0, Math.max(0, this.height - this.tip.offsetHeight - 4))}px`;
    }

    step(by) {  // to the next bar that is seen, and tell it
      const [lanes, , starts, ends] = this.told.bars, count = lanes.length;
      for (let tried = 0; tried < count; tried += 1) {
        this.told_bar = (this.told_bar + by + count) % count;
        const n = this.told_bar;
        if (ends[n] < this.view[0] || starts[n] > this.view[1]) continue;
        const t = clamp((starts[n] + ends[n]) / 2, ...this.view);
        this.tellAt(this.x(t), this.y(lanes[n] + this.told.bars[1][n] / 2));
        return;
      }
    }

    listen() {
      let held = null;
      const at = event => this.time(event.clientX - this.canvas.getBoundingClientRect().left);
      this.canvas.addEventListener("pointerdown", event => {
        held = event.clientX;
        this.canvas.setPointerCapture(event.pointerId);
      });
      this.canvas.addEventListener("pointerup", () => { held = null; });
      this.canvas.addEventListener("pointercancel", () => { held = null; });
      this.canvas.addEventListener("pointermove", event => {
        if (held !== null) this.move((held - event.clientX) / (this.width - LEFT));
        if (held !== null) held = event.clientX;
        this.tell(event);
      });
      this.canvas.addEventListener("pointerleave", () => { this.tip.hidden = true; });
      this.canvas.addEventListener("dblclick", event => this.zoom(0.4, at(event)));
      this.canvas.addEventListener("wheel", event => {
        if (!event.ctrlKey && !event.metaKey) return;
        event.preventDefault();
        this.zoom(event.deltaY > 0 ? 1.25 : 0.8, at(event));
      }, { passive: false });
      const keys = { ArrowLeft: () => this.move(-0.2), ArrowRight: () => this.move(0.2),
        ArrowDown: () => this.step(1), ArrowUp: () => this.step(-1), "+": () => this.zoom(0.5),
        "=": () => this.zoom(0.5), "-": () => this.zoom(2), 0: () => this.show(0, this.end) };
      this.canvas.addEventListener("keydown", event => {
        if (!keys[event.key] || event.ctrlKey || event.metaKey) return;
        event.preventDefault();
        keys[event.key]();
      });
    }
  }

  document.querySelectorAll(".frontier").forEach((place, n) => showFrontier(place, data.frontiers[n]));
  document.querySelectorAll(".timeline").forEach((place, n) => new Timeline(place, data.timelines[n]));
})();
