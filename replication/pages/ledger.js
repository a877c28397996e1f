const claims = [...document.querySelectorAll(".claim")].map(element => ({
  element,
  kind: element.dataset.kind,
  paper: element.dataset.paper,
  outcomes: JSON.parse(element.dataset.outcomes),
  text: (element.id + " " + element.textContent).toLowerCase(),
}));
const controls = Object.fromEntries(["kind", "paper", "regime", "outcome", "search"].map(id => [id, document.getElementById(id)]));

/** Return a claim's outcomes in the chosen regime, or in all of them. */
function outcomesOf(claim) {
  const { regime } = controls;
  return Object.entries(claim.outcomes).filter(([name]) => !regime.value || name === regime.value).map(([, outcome]) => outcome);
}

function show() {
  const { kind, paper, regime, outcome, search } = controls;
  const words = search.value.toLowerCase().split(/\s+/);
  const shown = claims.filter(claim => {
    const found = outcomesOf(claim);
    const judged = outcome.value === "none" ? !found.length : outcome.value ? found.includes(outcome.value) : !regime.value || found.length;
    return (claim.element.hidden = !(judged && (!kind.value || claim.kind === kind.value)
      && (!paper.value || claim.paper === paper.value) && words.every(word => claim.text.includes(word)))) === false;
  });
  for (const part of document.querySelectorAll("[data-regime]")) {
    part.classList.toggle("other", Boolean(regime.value) && part.dataset.regime !== regime.value);
  }
  for (const section of document.querySelectorAll("section")) section.hidden = !section.querySelector(".claim:not([hidden])");
  const all = shown.flatMap(outcomesOf), count = word => all.filter(other => other === word).length;
  const decided = shown.filter(claim => outcomesOf(claim).length).length;
  document.getElementById("shown").textContent = `${decided} of ${shown.length} claims have a verdict, ${all.length} by regime: `
    + `${count("holds")} hold, ${count("fails")} fail, ${all.length - count("holds") - count("fails")} are undecided or mixed.`;
}

/** Show or hide the runs of a claim, given its button. */
function open(button, opened) {
  button.setAttribute("aria-expanded", opened);
  document.getElementById(button.getAttribute("aria-controls")).hidden = !opened;
}

/** Open the claim that the address names, whatever the filter hides. */
function follow() {
  const element = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!element?.matches(".claim")) return;
  for (const control of Object.values(controls)) control.value = "";
  show();
  open(element.querySelector("button"), true);
  element.scrollIntoView();
}

for (const control of Object.values(controls)) control.addEventListener("input", show);
for (const button of document.querySelectorAll(".claim button")) button.addEventListener("click", () => open(button, button.getAttribute("aria-expanded") !== "true"));
window.addEventListener("hashchange", follow);
show();
follow();
