const rows = [...document.querySelectorAll("tr[data-filed]")];
const buttons = [...document.querySelectorAll(".controls button")];
const papers = [...document.querySelectorAll("details.paper")];
const search = document.querySelector(".controls input");
const texts = rows.map(row => row.textContent.toLowerCase());
let chosen = null;

function show() {
  const words = search.value.toLowerCase().split(/\s+/);
  rows.forEach((row, i) => {
    row.hidden = (chosen !== null && row.dataset.filed !== chosen) || !words.every(word => texts[i].includes(word));
  });
  const filters = chosen !== null || words.join("") !== "";
  for (const paper of papers) {
    paper.hidden = !paper.querySelector("tr[data-filed]:not([hidden])");
    paper.open = filters;
  }
  for (const button of buttons) button.setAttribute("aria-pressed", button.value === chosen);
  document.querySelector("#shown").textContent = `${rows.filter(row => !row.hidden).length} of ${rows.length} claims shown`;
}
for (const button of buttons) button.addEventListener("click", () => { chosen = chosen === button.value ? null : button.value; show(); });
search.addEventListener("input", show);
// A link to a claim shows it, whatever the filter hides. Browsers open what folds it.
function follow() {
  const row = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (row?.hidden || row?.closest("[hidden]")) { chosen = null; search.value = ""; show(); row.scrollIntoView(); }
}
window.addEventListener("hashchange", follow);
window.addEventListener("beforeprint", () => papers.forEach(paper => { paper.open = true; }));
show();
