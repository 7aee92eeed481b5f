const SVG = "http://www.w3.org/2000/svg";
const at = id => document.getElementById(id);
const count = n => n === null || n === undefined ? "–" : Number(n).toLocaleString("en");
const number = x => x === null || x === undefined || !isFinite(x) ? "–" : x && Math.abs(x) < 0.001 ? x.toExponential(1) : Number(x).toPrecision(3);

function made(name, attributes, ...children) {
  const svg = ["svg", "g", "path", "line", "rect", "circle", "text", "title"].includes(name);
  const element = svg ? document.createElementNS(SVG, name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) element.setAttribute(key, value);
  element.append(...children);
  return element;
}
const row = (...cells) => made("tr", {}, ...cells.map((cell, i) => made("td", i ? { class: "number" } : {}, cell)));
function tiles(id, entries) {
  at(id).replaceChildren(...entries.map(([name, value]) => made("div", { class: "tile" }, made("b", {}, value), made("span", { class: "soft" }, name))));
}
function chips(names, empty) {
  return names.length ? names.map(each => made("span", { class: "chip" }, each.replaceAll("*", " × "))) : [empty];
}

function scale(values, from, to) {
  let low = Math.min(...values), high = Math.max(...values);
  if (!(high > low)) { low -= 0.5; high += 0.5; }
  const f = value => from + (value - low) / (high - low) * (to - from);
  f.low = low; f.high = high;
  return f;
}

// Returns an empty diagram of the width of an element, with its two scales.
function frame(id, xs, ys, label, text = value => count(Math.round(value))) {
  const W = at(id).clientWidth || 1040, H = 260, L = 56, R = 12, T = 10, B = 26, ticks = W < 600 ? 2 : 4;
  const x = scale(xs, L, W - R), y = scale(ys, H - B, T);
  const svg = made("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": label });
  for (let i = 0; i <= 4; i++) {
    const value = y.low + (y.high - y.low) * i / 4;
    svg.append(made("line", { x1: L, x2: W - R, y1: y(value), y2: y(value), stroke: "var(--line)" }),
      made("text", { x: L - 8, y: y(value) + 4, "text-anchor": "end" }, number(value)));
  }
  for (let i = 0; i <= ticks; i++) {
    const value = x.low + (x.high - x.low) * i / ticks;
    svg.append(made("text", { x: x(value), y: H - 6, "text-anchor": i === 0 ? "start" : i === ticks ? "end" : "middle" }, text(value)));
  }
  return { svg, x, y };
}
const path = line => line.map(([a, b], i) => `${i ? "L" : "M"}${a.toFixed(1)} ${b.toFixed(1)}`).join("");

function headers() {
  const token = sessionStorage.getItem("token");
  return token ? { Authorization: `Bearer ${token}` } : {};
}

at("login").addEventListener("submit", event => { event.preventDefault(); sessionStorage.setItem("token", at("token").value); });
