/* Columns that sort, a filter for tables of many rows, and what a point of a figure is. The page says all it has without this. */
for (const table of document.querySelectorAll("table")) {
  const body = table.tBodies[0], heads = [...table.tHead.rows[0].cells];
  const number = text => { const value = parseFloat(text); return isNaN(value) ? Infinity : value; };
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.onclick = () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      const key = row => row.cells[column].textContent;
      const order = head.classList.contains("n") ? (a, b) => number(key(a)) - number(key(b)) || 0
                                                 : (a, b) => key(a).localeCompare(key(b));
      const rows = [...body.rows].sort(order);
      heads.forEach(other => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      body.append(...(down ? rows.reverse() : rows));
    };
  });
  if (body.rows.length < 12 || !body.querySelector(".p")) continue;
  const filter = document.createElement("input");
  filter.type = "search";
  filter.placeholder = "filter rows, such as ranks=2";
  filter.setAttribute("aria-label", "filter the rows of: " + table.caption.textContent);
  filter.oninput = () => {
    const words = filter.value.toLowerCase().split(" ").filter(word => word);
    for (const row of body.rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every(word => text.includes(word));
    }
  };
  table.parentElement.before(filter);
}

const tip = document.createElement("div");
tip.className = "tip";
tip.hidden = true;
document.body.append(tip);
for (const title of document.querySelectorAll("svg use > title, svg polygon > title")) {
  title.parentElement.dataset.tip = title.textContent;
  title.remove(); // the browser would show it a second time
}
for (const type of ["pointerover", "pointerdown"])
  document.addEventListener(type, event => {
    const text = event.target.closest("[data-tip]")?.dataset.tip;
    tip.hidden = !text;
    if (!text) return;
    tip.textContent = text;
    tip.style.left = Math.max(4, Math.min(event.clientX + 12, innerWidth - tip.offsetWidth - 4)) + "px";
    tip.style.top = Math.max(4, Math.min(event.clientY + 12, innerHeight - tip.offsetHeight - 4)) + "px";
  });
