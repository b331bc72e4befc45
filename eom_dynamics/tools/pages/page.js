// SPDX-License-Identifier: Apache-2.0
// Plotly draws, zooms, and shows and hides joints within a chart. This script does it over all charts of the page, and
// adds limits and CSV.
"use strict";
const figures = JSON.parse(document.getElementById("figures").textContent);
const plots = new Map([...document.querySelectorAll("[data-chart]")].map((place) => [place.dataset.chart, place]));
const drawn = new Set(); // names of charts
const hidden = new Set(["limits"]); // groups of the legends: joints, and the limits of those that are shown
const zooms = new Map(); // range of x, by group of charts

// A finger that is dragged over a chart scrolls the page.
const coarse = window.matchMedia("(pointer: coarse)");
const dark = window.matchMedia("(prefers-color-scheme: dark)");

const fileName = (name) => `${document.title} ${name}`.replace(/[^\w.-]+/g, "_").slice(0, 120);

function template() {
  const style = getComputedStyle(document.documentElement);
  const [ground, card, ink, soft, rule] = ["ground", "card", "ink", "soft", "rule"].map((name) => style.getPropertyValue(`--${name}`).trim());
  const axis = { gridcolor: rule, linecolor: rule, zerolinecolor: rule };
  return {
    layout: {
      paper_bgcolor: ground, plot_bgcolor: ground, font: { color: soft }, title: { font: { color: ink } },
      hoverlabel: { bgcolor: card, bordercolor: rule, font: { color: ink } },
      legend: { font: { size: 12 }, maxheight: 0.3 },
      modebar: { bgcolor: ground, color: soft, activecolor: ink },
      xaxis: axis, yaxis: axis,
    },
  };
}

function draw(name) {
  if (drawn.has(name)) return;
  drawn.add(name);
  const { data, layout } = figures[name];
  const plot = plots.get(name);
  layout.template = template();
  layout.dragmode = coarse.matches ? false : "zoom";
  for (const trace of data) trace.visible = visibility(trace);
  const csvButton = { name: "csv", title: "Download the points shown as CSV", icon: Plotly.Icons.disk, click: () => csv(name) };
  Plotly.newPlot(plot, data, layout, {
    responsive: true,
    displaylogo: false,
    displayModeBar: true,
    modeBarButtons: [["toImage", csvButton, "resetScale2d"]],
    toImageButtonOptions: { format: "png", filename: fileName(name), width: 1100, height: 560, scale: 2 },
  });
  plot.on("plotly_relayout", (change) => zoomed(name, change));
  plot.on("plotly_restyle", ([change]) => "visible" in change && toggled(name));
  zoom(name);
}

// A chart is drawn when it comes near to what is seen of the page: many at once take seconds.
const near = new IntersectionObserver(
  (entries) => entries.filter((entry) => entry.isIntersecting).forEach((entry) => draw(entry.target.dataset.chart)),
  { rootMargin: "600px" },
);

// The others follow while the browser is idle, one at a time, so that a picture of the full page has them all.
const idle = window.requestIdleCallback ?? ((call) => setTimeout(call, 50));
function drawRest() {
  const next = [...plots].find(([name, plot]) => !drawn.has(name) && plot.checkVisibility());
  if (!next) return;
  draw(next[0]);
  idle(drawRest);
}

// Plotly is part of the page, as base64 of gzip. A script element runs it, which the page's policy allows.
async function load() {
  const packed = Uint8Array.from(atob(document.getElementById("plotly").textContent), (c) => c.charCodeAt(0));
  const unpacked = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const script = document.createElement("script");
  script.textContent = await new Response(unpacked).text();
  document.head.append(script);
  for (const plot of plots.values()) near.observe(plot);
  idle(drawRest);
}
if (plots.size) load().catch((error) => {
  const note = document.createElement("p");
  note.className = "warning";
  note.textContent = `The charts cannot be drawn: ${error.message}. Open the page in a browser of 2023 or later.`;
  document.querySelector("main").prepend(note);
});
window.addEventListener("beforeprint", () => window.Plotly && [...plots].filter(([, plot]) => plot.checkVisibility()).forEach(([name]) => draw(name)));
dark.addEventListener("change", () => drawn.forEach((name) => Plotly.relayout(plots.get(name), { template: template() })));

// --- Zoom: charts of one group show the same range of x ---------------------------------------

function zoomed(name, change) {
  const { group } = figures[name].layout.meta;
  if (!group || !Object.keys(change).some((key) => key.startsWith("xaxis."))) return;
  zooms.set(group, [...plots.get(name).layout.xaxis.range]);
  for (const other of drawn) if (figures[other].layout.meta.group === group) zoom(other);
}

function zoom(name) {
  const range = zooms.get(figures[name].layout.meta.group);
  const plot = plots.get(name);
  if (range && String(range) !== String(plot.layout.xaxis.range)) Plotly.relayout(plot, { "xaxis.range": [...range] });
}

// --- Legends: a joint that one of them hides is hidden in all charts --------------------------

function visibility({ legendgroup, meta, visible }) {
  if (meta === "limits" && hidden.has("limits")) return false;
  if (!legendgroup) return visible ?? true; // of this chart alone
  return hidden.has(legendgroup) ? "legendonly" : true;
}

function toggled(name) {
  for (const { legendgroup, visible } of plots.get(name).data) {
    if (legendgroup && visible === "legendonly") hidden.add(legendgroup);
    else if (visible === true) hidden.delete(legendgroup);
  }
  for (const other of drawn) {
    const plot = plots.get(other);
    const visible = plot.data.map(visibility);
    if (plot.data.some((trace, i) => trace.visible !== visible[i])) Plotly.restyle(plot, { visible });
  }
}

// --- One of several recordings ----------------------------------------------------------------

const pick = document.querySelector(".pick:not(.rows) select");
pick?.addEventListener("change", () => {
  for (const part of document.querySelectorAll("[data-part]")) part.hidden = part.dataset.part !== pick.value;
  // While they are hidden, charts do not follow the size of the window.
  for (const name of drawn) if (plots.get(name).checkVisibility()) Plotly.Plots.resize(plots.get(name));
  if (window.Plotly) idle(drawRest);
});

// --- Rows of one group in a table -------------------------------------------------------------

for (const menu of document.querySelectorAll(".pick.rows select")) {
  menu.addEventListener("change", () => {
    for (const row of menu.closest("section").querySelectorAll("[data-group]")) {
      row.hidden = menu.value !== "" && row.dataset.group !== menu.value;
    }
  });
}

// --- CSV: a row for each point that is shown --------------------------------------------------

// Plotly's package writes arrays of numbers as base64, and reads some HTML in texts.
const ARRAYS = { f4: Float32Array, f8: Float64Array, i1: Int8Array, u1: Uint8Array, i2: Int16Array, u2: Uint16Array, i4: Int32Array, u4: Uint32Array };
const numbers = (values) => (values.bdata === undefined
  ? values : new ARRAYS[values.dtype](Uint8Array.from(atob(values.bdata), (c) => c.charCodeAt(0)).buffer));
const plain = (html) => new DOMParser().parseFromString(html, "text/html").documentElement.textContent;
// A spreadsheet takes texts that begin like these for formulas, and runs them.
const inert = (text) => (/^[=+\-@\t\r]/.test(text) ? `'${text}` : text);
const quoted = (text) => (/[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

function csv(name) {
  const { data, layout: { xaxis, yaxis, title } } = plots.get(name);
  const [low, high] = xaxis.range.map((value) => (xaxis.type === "log" ? 10 ** value : value)).sort((a, b) => a - b);
  const rows = [["curve", xaxis.title.text, `${plain(title.text)} [${yaxis.title.text}]`].map(inert)];
  for (const trace of data.filter(({ visible }) => visible === true)) {
    const [x, y] = [numbers(trace.x), numbers(trace.y)];
    for (let i = 0; i < x.length; i += 1) {
      if (x[i] >= low && x[i] <= high) rows.push([inert(plain(trace.name ?? "")), x[i], Number.isFinite(y[i]) ? y[i] : ""]);
    }
  }
  const text = rows.map((row) => row.map((cell) => quoted(String(cell))).join(",")).join("\r\n");
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text, "\r\n"], { type: "text/csv" }));
  link.download = `${fileName(name)}.csv`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
