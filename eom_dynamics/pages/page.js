// SPDX-License-Identifier: Apache-2.0
"use strict";
const figures = JSON.parse(document.getElementById("figures").textContent);
const places = new Map([...document.querySelectorAll("[data-chart]")].map((place) => [place.dataset.chart, place]));
const plots = new Map([...places].map(([name, place]) => [name, place.querySelector(".plot")]));
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const drawn = new Set();
const hiddenJoints = new Set();
const withLimits = new Set(); // charts that show them
const shownOfGroup = new Map(); // the range of x that the charts of a group show, where one was zoomed
const homes = new Map(); // what a chart shows at first

// A finger that is dragged over a chart scrolls the page.
const coarse = window.matchMedia("(pointer: coarse)");
const dark = window.matchMedia("(prefers-color-scheme: dark)");

// Plotly's package writes arrays of numbers as base64.
const ARRAYS = { f4: Float32Array, f8: Float64Array, i1: Int8Array, u1: Uint8Array, i2: Int16Array, u2: Uint16Array, i4: Int32Array, u4: Uint32Array };
function numbers(values) {
  if (!values || values.bdata === undefined) return values ?? [];
  return new ARRAYS[values.dtype](Uint8Array.from(atob(values.bdata), (c) => c.charCodeAt(0)).buffer);
}
for (const figure of Object.values(figures)) {
  for (const trace of figure.data) {
    trace.x = numbers(trace.x);
    trace.y = numbers(trace.y);
  }
}

function colors() {
  const axis = { gridcolor: css("--rule"), linecolor: css("--rule"), zerolinecolor: css("--rule") };
  return {
    "font.color": css("--soft"),
    hoverlabel: { bgcolor: css("--card"), bordercolor: css("--rule"), font: { color: css("--ink") } },
    ...Object.fromEntries(["xaxis", "yaxis"].flatMap((a) => Object.entries(axis).map(([k, v]) => [`${a}.${k}`, v]))),
  };
}

const isShown = (name, trace) => !hiddenJoints.has(trace.meta) && (trace.legendgroup !== "limits" || withLimits.has(name));

// Bands of many joints on each other would be a grey ground.
function fills(data) {
  const joints = new Set(data.map((trace) => trace.meta).filter((joint) => joint !== undefined && !hiddenJoints.has(joint)));
  return data.map((trace) => (trace.legendgroup === "limits" && joints.size === 1 ? "toself" : "none"));
}

// The range of y in which all is that is shown; Plotly's own would take in bounds that a limit has on one side only.
function fitted(name) {
  const { data, layout } = figures[name];
  const [least, most] = layout.meta.limits;
  let [low, high] = [Infinity, -Infinity];
  for (const { y, legendgroup } of data.filter((trace) => trace.visible)) {
    for (const number of y) {
      const value = legendgroup === "limits" ? Math.min(Math.max(number, least), most) : number;
      if (value < low) low = value;
      if (value > high) high = value;
    }
  }
  if (low > high) return [least, most];
  const margin = 0.06 * (high - low) || 1;
  return [low - margin, high + margin];
}

function draw(name) {
  if (drawn.has(name)) return;
  drawn.add(name);
  const { data, layout } = figures[name];
  layout.dragmode = coarse.matches ? false : "zoom";
  homes.set(name, { xaxis: layout.xaxis.range?.slice(), yaxis: layout.yaxis.range?.slice() });
  const range = shownOfGroup.get(layout.meta.group);
  if (range) layout.xaxis.range = range.slice();
  for (const trace of data) trace.visible = isShown(name, trace);
  fills(data).forEach((fill, i) => { data[i].fill = fill; });
  if (layout.meta.limits) layout.yaxis.range = fitted(name);
  for (const [path, value] of Object.entries(colors())) {
    const [outer, inner] = path.split(".");
    if (inner) layout[outer][inner] = value;
    else layout[outer] = value;
  }
  Plotly.newPlot(plots.get(name), data, layout, { responsive: true, displayModeBar: false, doubleClick: false });
  plots.get(name).on("plotly_relayout", (change) => zoomed(name, change));
  plots.get(name).on("plotly_doubleclick", () => reset(name));
}

// A chart is drawn when it comes near to what is seen of the page: many at once take seconds.
const near = new IntersectionObserver(
  (entries) => entries.filter((entry) => entry.isIntersecting).forEach((entry) => draw(entry.target.dataset.chart)),
  { rootMargin: "600px" },
);
for (const place of places.values()) near.observe(place);
const seen = (name) => places.get(name).checkVisibility();
window.addEventListener("beforeprint", () => [...places.keys()].filter(seen).forEach(draw));
dark.addEventListener("change", () => drawn.forEach((name) => Plotly.relayout(plots.get(name), colors())));

function members(group) {
  return [...drawn].filter((name) => figures[name].layout.meta.group === group);
}

function zoomed(name, change) {
  const group = figures[name].layout.meta.group;
  const range = change["xaxis.range[0]"] !== undefined
    ? [change["xaxis.range[0]"], change["xaxis.range[1]"]] : change["xaxis.range"];
  if (!range || !group || String(shownOfGroup.get(group)) === String(range)) return;
  shownOfGroup.set(group, range.slice());
  for (const other of members(group)) {
    if (other !== name) Plotly.relayout(plots.get(other), { "xaxis.range": range.slice() });
  }
}

function reset(name) {
  const { meta } = figures[name].layout;
  shownOfGroup.delete(meta.group);
  for (const other of meta.group ? members(meta.group) : [name]) {
    const home = Object.entries(homes.get(other));
    if (figures[other].layout.meta.limits) home[1] = ["yaxis", fitted(other)];
    Plotly.relayout(plots.get(other), Object.fromEntries(home.map(([axis, range]) => (
      range ? [`${axis}.range`, range.slice()] : [`${axis}.autorange`, true]))));
  }
}

// --- Joints ---------------------------------------------------------------------------------

const jointButtons = [...document.querySelectorAll("[data-joint]")];

function showJoints() {
  for (const button of jointButtons) button.setAttribute("aria-pressed", String(!hiddenJoints.has(button.dataset.joint)));
  for (const name of drawn) {
    if (figures[name].data.some((trace) => trace.meta !== undefined)) show(name);
  }
}

function show(name) {
  const { data, layout } = figures[name];
  Plotly.restyle(plots.get(name), { visible: data.map((trace) => isShown(name, trace)), fill: fills(data) });
  if (layout.meta.limits) Plotly.relayout(plots.get(name), { "yaxis.range": fitted(name) });
}

for (const button of jointButtons) {
  const { joint } = button.dataset;
  button.addEventListener("click", () => {
    if (!hiddenJoints.delete(joint)) hiddenJoints.add(joint);
    showJoints();
  });
  button.addEventListener("dblclick", () => {
    for (const other of jointButtons) hiddenJoints.add(other.dataset.joint);
    hiddenJoints.delete(joint);
    showJoints();
  });
}
for (const button of document.querySelectorAll("[data-joints=all]")) {
  button.addEventListener("click", () => {
    hiddenJoints.clear();
    showJoints();
  });
}

// --- One of several parts of a page ---------------------------------------------------------

const pick = document.querySelector(".pick select");
pick?.addEventListener("change", () => {
  for (const part of document.querySelectorAll("[data-part]")) part.hidden = part.dataset.part !== pick.value;
});

// --- Export ---------------------------------------------------------------------------------

// Plotly reads some HTML in its texts.
const escaped = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
const plain = (html) => new DOMParser().parseFromString(html, "text/html").documentElement.textContent;
const fileName = (name) => `${document.title} ${name}`.replace(/[^\w.-]+/g, "_").slice(0, 120);

function png(name) {
  const plot = plots.get(name);
  const names = plot.data.some((trace) => trace.meta !== undefined || trace.name !== undefined);
  const layout = {
    ...plot.layout,
    paper_bgcolor: css("--ground"),
    title: { text: escaped(plot.layout.meta.title), x: 0.01, xanchor: "left", y: 0.98, yanchor: "top" },
    margin: { l: 80, r: 20, t: 50, b: names ? 110 : 60 },
    showlegend: names,
    legend: { orientation: "h", y: -0.16, yanchor: "top", x: 0 },
  };
  const size = { width: 1100, height: 560, scale: 2 };
  return Plotly.downloadImage({ data: plot.data, layout }, { format: "png", filename: fileName(name), ...size });
}

const quoted = (text) => (/[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

// A row for each point that is shown.
function csv(name) {
  const plot = plots.get(name);
  const { xaxis, yaxis, meta } = plot.layout;
  const fromAxis = (value) => (xaxis.type === "log" ? 10 ** value : value);
  const [low, high] = xaxis.range.map(fromAxis).sort((a, b) => a - b);
  const rows = [["curve", xaxis.title.text, `${meta.title} [${yaxis.title.text}]`]];
  for (const trace of plot.data) {
    if (trace.visible === false) continue;
    for (let i = 0; i < trace.x.length; i += 1) {
      const [x, y] = [trace.x[i], trace.y[i]];
      if (x >= low && x <= high) rows.push([plain(trace.name ?? ""), x, Number.isFinite(y) ? y : ""]);
    }
  }
  const text = rows.map((row) => row.map((cell) => quoted(String(cell))).join(",")).join("\r\n");
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text, "\r\n"], { type: "text/csv" }));
  link.download = `${fileName(name)}.csv`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

function limits(name, button) {
  if (!withLimits.delete(name)) withLimits.add(name);
  button.setAttribute("aria-pressed", String(withLimits.has(name)));
  show(name);
}

const ACTIONS = { png, csv, reset, limits };
for (const [name, place] of places) {
  for (const button of place.querySelectorAll("[data-do]")) {
    button.addEventListener("click", () => ACTIONS[button.dataset.do](name, button));
  }
}
