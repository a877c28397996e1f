// What scrolls has to take the focus, without which no keyboard can scroll it.
for (const part of document.querySelectorAll("pre, .table-wrapper, div.cell_output")) {
  if (part.scrollWidth > part.clientWidth) part.tabIndex = 0;
}
