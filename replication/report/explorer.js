const passage = JSON.parse(document.getElementById("passage").textContent);
const { words, layers, heads, length: n, dimension: r } = passage;
const element = id => document.getElementById(id);

function bytes(text) { return Uint8Array.from(atob(text), letter => letter.charCodeAt(0)); }
function floats(text) { return new Float32Array(bytes(text).buffer); }

const q = floats(passage.q), k = floats(passage.k), counts = bytes(passage.counts), keys = bytes(passage.keys);
const centroids = Object.fromEntries(Object.entries(passage.centroids).map(([name, text]) => [name, floats(text)]));
const clusters = kind => Object.keys(centroids).filter(name => name.startsWith(kind + "-")).map(name => Number(name.split("-")[1])).sort((a, b) => a - b);

/** Gold pairs of each head, n x n bytes. */
const gold = Array.from({ length: layers * heads }, () => new Uint8Array(n * n));
for (let head = 0, next = 0; head < gold.length; head++) {
  for (let i = 0; i < n; i++) for (let left = counts[head * n + i]; left > 0; left--) gold[head][i * n + keys[next++]] = 1;
}
const sizes = gold.map(pairs => pairs.reduce((sum, pair) => sum + pair, 0));

const vector = (x, head, i) => x.subarray((head * n + i) * r, (head * n + i + 1) * r);
const dot = (a, b) => { let sum = 0; for (let d = 0; d < r; d++) sum += a[d] * b[d]; return sum; };

/** Mark the pairs of queries and keys that share a bucket; buckets are lists of positions. */
function share(pairs, ofQueries, ofKeys) {
  ofQueries.forEach((queries, bucket) => { for (const i of queries) for (const j of ofKeys[bucket]) pairs[i * n + j] = 1; });
}

/** Return the positions in each bucket, given the buckets of each position. */
function members(count, bucketsOf) {
  const lists = Array.from({ length: count }, () => []);
  for (let i = 0; i < n; i++) for (const bucket of bucketsOf(i)) lists[bucket].push(i);
  return lists;
}

const positions = Array.from({ length: n }, (_, i) => i);

/** What each method marks, as in sparselib/predictors: equal values keep their order. */
const METHODS = {
  distance(pairs, head, { threshold }) {
    for (let i = 0; i < n; i++) for (let j = 0; j < n; j++) {
      let squared = 0;
      for (let d = 0; d < r; d++) { const apart = q[(head * n + i) * r + d] - k[(head * n + j) * r + d]; squared += apart * apart; }
      if (squared <= threshold) pairs[i * n + j] = 1;
    }
  },
  quantization(pairs, head, { bins }) {
    const size = Math.ceil(n / bins);
    for (let d = 0; d < r; d++) {
      const binned = x => {
        const values = positions.map(i => x[(head * n + i) * r + d]), lists = Array.from({ length: bins }, () => []);
        [...positions].sort((a, b) => values[a] - values[b] || a - b).forEach((i, rank) => lists[Math.floor(rank / size)].push(i));
        return lists;
      };
      share(pairs, binned(q), binned(k));
    }
  },
  kmeans(pairs, head, { clusters: count, top }) {
    const centers = centroids[`kmeans-${count}`], center = c => centers.subarray((head * count + c) * r, (head * count + c + 1) * r);
    const halves = Array.from({ length: count }, (_, c) => dot(center(c), center(c)) / 2);
    const nearest = x => i => {
      const near = halves.map((half, c) => dot(vector(x, head, i), center(c)) - half);
      return halves.map((_, c) => c).sort((a, b) => near[b] - near[a] || a - b).slice(0, top);
    };
    share(pairs, members(count, nearest(q)), members(count, nearest(k)));
  },
  routing(pairs, head, { clusters: count }) {
    const centers = centroids[`routing-${count}`], width = Math.ceil(n / count);
    const picked = x => Array.from({ length: count }, (_, c) => {
      const center = centers.subarray((head * count + c) * r, (head * count + c + 1) * r);
      const scores = positions.map(i => { const own = vector(x, head, i); return dot(center, own) / Math.max(Math.sqrt(dot(own, own)), 1e-12); });
      return [...positions].sort((a, b) => scores[b] - scores[a] || a - b).slice(0, width);
    });
    share(pairs, picked(q), picked(k));
  },
  window() {},
};
const NAMES = { distance: "distance", quantization: "quantization", kmeans: "k-means", routing: "Routing Transformer", window: "window alone" };

function settings() {
  return { method: element("method").value, threshold: Number(element("threshold").value), bins: Number(element("bins").value),
    clusters: Number(element("clusters").value), top: Number(element("top").value), width: Number(element("window").value), global: element("global").checked };
}

/** The smallest window that covers each pair, whose width counts both sides, and the pairs of the first and the last token. */
const needed = new Uint16Array(n * n), global = new Uint8Array(n * n);
for (let i = 0; i < n; i++) for (let j = 0; j < n; j++) {
  needed[i * n + j] = j > i ? 2 * (j - i) : 1 + 2 * (i - j);
  global[i * n + j] = i === 0 || j === 0 || i === n - 1 || j === n - 1;
}

/** Pairs of the method alone in every head; a window moves without finding them again. */
let marked = { of: "", pairs: [] };
function mark(chosen) {
  const of = JSON.stringify({ ...chosen, width: 0, global: false });
  if (marked.of !== of) marked = { of, pairs: gold.map((_, head) => { const pairs = new Uint8Array(n * n); METHODS[chosen.method](pairs, head, chosen); return pairs; }) };
  return marked.pairs;
}

/** Return a head's measures with the method's pairs, the window's and the global tokens'; write these pairs if asked to. */
function measure(head, pairs, { width, global: everywhere }, written) {
  let found = 0, predicted = 0;
  for (let place = 0; place < n * n; place++) {
    const on = pairs[place] || needed[place] <= width || (everywhere && global[place]) ? 1 : 0;
    predicted += on;
    found += on & gold[head][place];
    if (written) written[place] = on;
  }
  return { recall: sizes[head] ? found / sizes[head] : 1, precision: predicted ? found / predicted : 1, sparsity: 1 - predicted / n ** 2, gold: 1 - sizes[head] / n ** 2 };
}

let head = 0, pair = null;
const shown = new Uint8Array(n * n);
const CELL = 6, canvas = element("matrix"), context = canvas.getContext("2d");
canvas.width = canvas.height = CELL * n;

function state(i, j) { return gold[head][i * n + j] ? (shown[i * n + j] ? "found" : "missed") : shown[i * n + j] ? "superfluous" : "neither"; }

function draw() {
  const style = getComputedStyle(document.documentElement), color = name => style.getPropertyValue("--" + name);
  context.clearRect(0, 0, canvas.width, canvas.height);
  for (const name of ["superfluous", "found", "missed"]) {
    context.fillStyle = color(name);
    for (let i = 0; i < n; i++) for (let j = 0; j < n; j++) if (state(i, j) === name) {
      // Whole squares, squares with a hole, and dots, to be told apart without colours.
      if (name === "superfluous") context.fillRect(j * CELL + 2, i * CELL + 2, 2, 2);
      else context.fillRect(j * CELL, i * CELL, CELL, CELL);
      if (name === "missed") context.clearRect(j * CELL + 2, i * CELL + 2, 2, 2);
    }
  }
  if (pair) { context.strokeStyle = color("text"); context.strokeRect(0, pair[0] * CELL, canvas.width, CELL); context.strokeRect(pair[1] * CELL, 0, CELL, canvas.height); }
  const text = element("text");
  for (let j = 0; j < n; j++) {
    const kind = pair ? state(pair[0], j) : "neither";
    text.children[j].className = (pair && j === pair[0] ? "query " : "") + (kind === "neither" ? "" : "key " + kind);
  }
  if (pair) element("pair").textContent = `query “${words[pair[0]]}” (${pair[0] + 1}), key “${words[pair[1]]}” (${pair[1] + 1}): ${state(...pair) === "neither" ? "neither gold nor predicted" : state(...pair)}`;
}

function update() {
  const chosen = settings(), measured = mark(chosen).map((pairs, other) => measure(other, pairs, chosen, other === head && shown));
  for (const name of ["recall", "precision", "sparsity", "gold"]) {
    const mean = measured.reduce((sum, one) => sum + one[name], 0) / measured.length;
    for (const [id, value] of [[name, measured[head][name]], ["mean-" + name, mean]]) {
      element(id).textContent = value.toFixed(3);
      element(id).dataset.exact = value;
    }
  }
  measured.forEach(({ recall }, other) => {
    const button = element("heads").children[other];
    button.setAttribute("aria-pressed", other === head);
    button.textContent = Math.round(100 * recall);
    button.setAttribute("aria-label", `${button.textContent} % recall, layer ${Math.floor(other / heads) + 1}, head ${other % heads + 1}`);
    button.style.background = `hsl(203 60% ${95 - 65 * recall}%)`;
    button.style.color = recall > 0.8 ? "#fff" : "#111";
  });
  element("chosen").textContent = `Layer ${Math.floor(head / heads) + 1}, head ${head % heads + 1}`;
  draw();
}

function controls() {
  const { method } = settings(), select = element("clusters"), before = select.value;
  for (const label of document.querySelectorAll("[data-for]")) label.hidden = !label.dataset.for.split(" ").includes(method);
  select.replaceChildren(...clusters(method).map(count => new Option(count, count)));
  if ([...select.options].some(option => option.value === before)) select.value = before;
  for (const output of document.querySelectorAll("output")) output.value = element(output.htmlFor.value).value;
  update();
}

function point(i, j) { pair = [Math.max(0, Math.min(n - 1, i)), Math.max(0, Math.min(n - 1, j))]; draw(); }

element("method").replaceChildren(...Object.keys(METHODS).filter(name => !["kmeans", "routing"].includes(name) || clusters(name).length).map(name => new Option(NAMES[name], name)));
element("text").replaceChildren(...words.map(word => { const span = document.createElement("span"); span.textContent = word; return span; }));
[...element("text").children].forEach((span, i) => { span.textContent += " "; span.addEventListener("click", () => point(i, i)); });
element("heads").style.gridTemplateColumns = `repeat(${heads}, 1fr)`;
element("heads").replaceChildren(...gold.map((_, other) => {
  const button = document.createElement("button");
  button.type = "button";
  button.addEventListener("click", () => { head = other; update(); });
  return button;
}));
canvas.addEventListener("pointermove", event => { const box = canvas.getBoundingClientRect(); point(Math.floor((event.clientY - box.top) / box.height * n), Math.floor((event.clientX - box.left) / box.width * n)); });
canvas.addEventListener("keydown", event => {
  const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
  if (event.key in moves) { event.preventDefault(); const [i, j] = pair ?? [0, 0], [down, right] = moves[event.key]; point(i + down, j + right); }
});
for (const control of document.querySelectorAll(".controls select, .controls input")) control.addEventListener("input", controls);
controls();
