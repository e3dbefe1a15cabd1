"use strict";
// Hover, zoom and keyboard for the charts of a report; without it they stand as they were drawn.
(() => {
  const WIDTH = 1000, HEIGHT = 200, SVG = "http://www.w3.org/2000/svg";
  const charts = JSON.parse(document.getElementById("data").textContent);
  const figures = [...document.querySelectorAll("figure.chart")];
  if (!figures.length) return;
  let zoom = null, isLog = false;

  const make = (name, parent, attributes) => {
    const element = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return parent.appendChild(element);
  };
  const word = (value) => {
    const size = Math.abs(value);
    if (size !== 0 && (size < 1e-3 || size >= 1e9)) return value.toExponential(2).replace("e+", "e");
    const digits = size >= 1000 ? 0 : 3 - Math.floor(Math.log10(size || 1));
    return (value || 0).toLocaleString("en-US", { maximumFractionDigits: Math.min(6, Math.max(0, digits)) });
  };
  const digitsOf = (step) => ({ maximumFractionDigits: Math.min(9, Math.max(0, 1 - Math.floor(Math.log10(step)))) });
  const markWord = (value, step) => {
    const size = Math.abs(value);
    return size >= step / 2 && size < 1e-3 ? value.toExponential(2) : (value || 0).toLocaleString("en-US", digitsOf(step));
  };
  const roundMarks = (low, high, about) => {
    const raw = (high - low) / about, power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 2.5, 5, 10].map((f) => f * power).find((s) => s >= raw * 0.999);
    const marks = [];
    for (let at = Math.ceil(low / step - 1e-9); at * step <= high + step * 1e-9; at++) marks.push(at * step);
    return marks;
  };
  const firstFrom = (xs, x) => {  // the first place whose value is not below x
    let low = 0, high = xs.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (xs[middle] < x) low = middle + 1; else high = middle;
    }
    return low;
  };
  const nearest = (xs, x) => {
    const at = firstFrom(xs, x);
    return at > 0 && (at === xs.length || x - xs[at - 1] <= xs[at] - x) ? at - 1 : at;
  };
  const extent = () => {
    const ends = charts.flatMap((chart) => chart.curves).filter((curve) => curve.x.length)
      .flatMap((curve) => [curve.x[0], curve.x[curve.x.length - 1]]);
    const low = Math.min(...ends), high = Math.max(...ends);
    return low < high ? [low, high] : [low - 1, high + 1];
  };
  const whole = extent();

  const views = figures.map((figure) => {
    const chart = charts[Number(figure.dataset.at)], plot = figure.querySelector(".plot");
    const reading = figure.querySelector(".reading");
    const view = { chart, plot, reading, said: reading.textContent, figure };
    view.ys = figure.querySelector(".ys");
    view.xs = figure.querySelector(".xs");
    view.over = make("g", plot, {});
    plot.setAttribute("tabindex", "0");
    return view;
  });

  const scaleOf = (view) => {
    const [low, high] = zoom || whole;
    let least = Infinity, most = -Infinity;
    for (const { x, y } of view.chart.curves)
      for (let at = Math.max(0, firstFrom(x, low)); at < x.length && x[at] <= high; at++) {
        if (y[at] < least) least = y[at];
        if (y[at] > most) most = y[at];
      }
    if (least > most) [least, most] = [0, 1];
    const bends = isLog && least > 0;
    const bend = bends ? Math.log10 : (value) => value;
    let [floor, top] = [bend(least), bend(most)];
    if (floor === top) [floor, top] = [floor - (Math.abs(floor) * 0.05 || 1), top + (Math.abs(top) * 0.05 || 1)];
    const room = (top - floor) * 0.04;
    if (bends || least < 0 || floor - room > 0) floor -= room; else floor = 0;
    top += room;
    return {
      low, high, bends, floor, top,
      across: (x) => (x - low) / (high - low) * WIDTH,
      down: (y) => (top - bend(y)) / (top - floor) * HEIGHT,
    };
  };
  const inside = (xs, low, high) => [Math.max(0, firstFrom(xs, low) - 1), Math.min(xs.length, firstFrom(xs, high) + 2)];
  const path = (scale, points) => {
    if (!points.length) return "";
    const places = points.map(([x, y]) => scale.across(x).toFixed(1) + " " + scale.down(y).toFixed(1));
    return "M" + (places.length === 1 ? [places[0], places[0]] : places).join("L");
  };

  const draw = (view) => {
    const scale = view.scale = scaleOf(view), { plot, chart } = view;
    plot.replaceChildren();
    const grid = make("g", plot, { class: "grid" });
    view.ys.replaceChildren();
    view.xs.replaceChildren();
    const inverse = scale.bends ? (value) => 10 ** value : (value) => value;
    const levels = roundMarks(scale.floor, scale.top, 4);
    for (const mark of levels) {
      const y = (scale.top - mark) / (scale.top - scale.floor) * HEIGHT;
      make("path", grid, { d: `M0 ${y}H${WIDTH}` });
      make("text", view.ys, { x: 50, y: y + 4 }).textContent =
        scale.bends || levels.length < 2 ? word(inverse(mark)) : markWord(mark, levels[1] - levels[0]);
    }
    for (const mark of roundMarks(scale.low, scale.high, 4))
      make("text", view.xs, { x: `${scale.across(mark) / WIDTH * 100}%`, y: 14 }).textContent = word(mark);
    const box = make("svg", plot, { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, width: WIDTH, height: HEIGHT,
      preserveAspectRatio: "none", overflow: "hidden" });
    for (const [x] of chart.marks)
      if (x >= scale.low && x <= scale.high) make("path", box, { class: "mark", d: `M${scale.across(x)} 0V${HEIGHT}` });
    chart.curves.forEach(({ x, y, t }, number) => {
      const style = `line c${number % 8}`;
      const [from, to] = inside(x, scale.low, scale.high);
      const means = t.filter(([at]) => at >= scale.low && at <= scale.high);
      const isNoisy = means.length > 12;
      const points = [];
      for (let at = from; at < to; at++) points.push([x[at], y[at]]);
      const isLone = points.length === 1 && x[from] >= scale.low && x[from] <= scale.high;
      const kind = isLone ? " dot" : isNoisy ? " noisy" : "";
      make("path", isLone ? plot : box, { class: style + kind, d: path(scale, points) });
      if (isNoisy) make("path", box, { class: `${style} trend`, d: path(scale, means) });
    });
    view.over = make("g", plot, { class: "over" });
  };
  const drawAll = () => views.forEach((view) => { draw(view); rest(view); });
  const rest = (view) => {
    view.over.replaceChildren();
    view.reading.textContent = view.said;
  };

  // Of the points that share the pointer's few pixels, the one at its height: so a spike can be touched.
  const touched = ({ x: xs, y: ys }, x, { scale, height, reach }) => {
    let best = nearest(xs, x);
    const off = (at) => Math.abs(scale.down(ys[at]) - height);
    for (let at = firstFrom(xs, x - reach); at < xs.length && xs[at] <= x + reach; at++)
      if (off(at) < off(best)) best = at;
    return best;
  };
  const point = (x, pointer = null) => views.forEach((view) => {
    const { scale, chart, over, reading } = view;
    over.replaceChildren();
    reading.replaceChildren();
    make("path", over, { class: "cursor", d: `M${scale.across(x)} 0V${HEIGHT}` });
    chart.curves.forEach((curve, number) => {
      const at = pointer && pointer.view === view ? touched(curve, x, { scale, ...pointer }) : nearest(curve.x, x);
      const [px, py] = [curve.x[at], curve.y[at]];
      if (px === undefined || px < scale.low || px > scale.high) return;
      const place = `${scale.across(px)} ${scale.down(py)}`;
      make("path", over, { class: `dot c${number % 8}`, d: `M${place}L${place}` });
      const text = document.createElement("i");
      text.textContent = `${curve.name} ${word(py)} at ${word(px)}`;
      reading.append(text);
    });
    const mark = chart.marks.filter(([at]) => at <= x).pop();
    if (mark) reading.append(mark[1]);
  });
  const setZoom = (range) => { zoom = range; drawAll(); };

  for (const view of views) {
    const { plot } = view;
    let from = null, kept = null;
    const at = (event) => {
      const box = plot.getBoundingClientRect();
      const share = Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
      return view.scale.low + share * (view.scale.high - view.scale.low);
    };
    plot.addEventListener("pointerdown", (event) => {
      if (event.button === 0) { from = at(event); plot.setPointerCapture(event.pointerId); }
    });
    plot.addEventListener("pointermove", (event) => {
      const x = at(event), box = plot.getBoundingClientRect();
      point(x, {
        view,
        height: (event.clientY - box.top) / box.height * HEIGHT,
        reach: 2 / box.width * (view.scale.high - view.scale.low),
      });
      kept = null;
      if (from === null) return;
      const [left, right] = [Math.min(from, x), Math.max(from, x)].map(view.scale.across);
      make("rect", view.over, { class: "chosen", x: left, y: 0, width: right - left, height: HEIGHT });
    });
    plot.addEventListener("pointerup", (event) => {
      const x = at(event), range = from === null ? null : [Math.min(from, x), Math.max(from, x)];
      from = null;
      if (range && range[1] - range[0] > (view.scale.high - view.scale.low) / 100) setZoom(range);
    });
    plot.addEventListener("pointercancel", () => { from = null; });
    plot.addEventListener("pointerleave", () => { if (from === null) views.forEach(rest); });
    plot.addEventListener("dblclick", () => setZoom(null));
    plot.addEventListener("keydown", (event) => {
      const xs = view.chart.curves.length ? view.chart.curves[0].x : [];
      const { low, high } = view.scale, [first, last] = [firstFrom(xs, low), firstFrom(xs, high + 1e-9) - 1];
      const place = kept === null ? last : kept;
      const step = event.shiftKey ? Math.max(1, Math.round((last - first) / 20)) : 1;
      const middle = xs[place] ?? (low + high) / 2;
      const width = (high - low) / 4;
      const moves = { ArrowLeft: place - step, ArrowRight: kept === null ? first : place + step, Home: first, End: last };
      if (event.key in moves && xs.length) {
        kept = Math.min(last, Math.max(first, moves[event.key]));
        point(xs[kept]);
      } else if (event.key === "+") {
        setZoom([Math.max(whole[0], middle - width), Math.min(whole[1], middle + width)]);
      } else if (event.key === "-" || event.key === "Escape") {
        kept = null;
        setZoom(null);
      } else return;
      event.preventDefault();
    });
  }

  const tools = document.querySelector(".tools");
  const button = (text, act) => {
    const element = document.createElement("button");
    element.type = "button";
    element.textContent = text;
    element.addEventListener("click", () => act(element));
    tools.append(element);
  };
  button("whole range", () => setZoom(null));
  button("log scale", (element) => {
    isLog = !isLog;
    element.setAttribute("aria-pressed", String(isLog));
    drawAll();
  });
  const hint = document.createElement("span");
  hint.textContent = "drag to zoom, double-click for all; arrow keys move the cursor";
  tools.append(hint);
  drawAll();
})();
