"use strict";
(() => {
  const list = document.getElementById("cards");
  const cards = [...list.children]; // as written: errors, wrong answers, the rest
  const controls = document.getElementById("controls");
  const collator = new Intl.Collator(undefined, { numeric: true });

  // Cards that lack the entry (failed files, unknown labels) come last.
  const byText = (key) => (a, b) =>
    (key in b.dataset) - (key in a.dataset) || collator.compare(a.dataset[key] ?? "", b.dataset[key] ?? "");
  const byScore = (key, sign) => (a, b) =>
    (key in b.dataset) - (key in a.dataset) || sign * (a.dataset[key] - b.dataset[key]) || 0;
  // Entries of one of several questions end in its place, as in answer-0.
  function ordered(value) {
    const [, what, end] = /^([a-z]+)(.*)$/.exec(value);
    if (what === "written") return null;
    return what === "high" || what === "low" ? byScore(`score${end}`, what === "high" ? -1 : 1) : byText(value);
  }

  function sort() {
    const order = ordered(controls.elements.order.value);
    list.replaceChildren(...(order ? [...cards].sort(order) : cards));
  }

  function filter() {
    const groups = [...controls.querySelectorAll("fieldset")].map(({ dataset: { end } }) =>
      [controls.elements[`show${end}`].value, `state${end}`, `answer${end}`]);
    const wanted = controls.elements.search.value.trim().toLowerCase();
    let shown = 0;
    for (const card of cards) {
      const chosen = groups.every(([show, state, answer]) =>
        show === "all" || card.dataset[state] === show || `answer ${card.dataset[answer]}` === show);
      card.hidden = !(chosen && card.dataset.file.toLowerCase().includes(wanted));
      shown += !card.hidden;
    }
    controls.elements.count.value = `${shown} of ${cards.length}`;
    document.getElementById("nothing").hidden = shown > 0;
  }

  controls.hidden = false;
  controls.addEventListener("submit", (event) => event.preventDefault());
  controls.elements.order.addEventListener("change", sort);
  controls.addEventListener("input", (event) => event.target.name === "order" || filter());
  filter();

  // An atom lights the objects it names; an object lights the atoms that name it.
  function light(source) {
    for (const card of list.querySelectorAll(".lighting")) {
      card.classList.remove("lighting");
      for (const lit of card.querySelectorAll(".lit")) lit.classList.remove("lit");
    }
    const card = source?.closest(".card");
    if (!card || !source.dataset.o) return;
    const also = source.matches(".atom") ? ".object, .key" : ".object, .key, .atom";
    for (const number of source.dataset.o.split(" ")) {
      for (const one of card.querySelectorAll(also)) {
        if (one.dataset.o.split(" ").includes(number)) one.classList.add("lit");
      }
    }
    source.classList.add("lit");
    card.classList.add("lighting");
  }

  const named = (element) => element?.closest?.("[data-o]");
  list.addEventListener("pointerover", (event) => light(named(event.target) ?? named(document.activeElement)));
  list.addEventListener("pointerleave", () => light(named(document.activeElement)));
  list.addEventListener("focusin", (event) => light(named(event.target)));
  list.addEventListener("focusout", () => light(null));

  // A click enlarges a picture with its boxes, and shows the way to its file; another one, or Escape, makes it small.
  const large = () => list.querySelector(".picture.large");
  function shrink() {
    const open = large();
    open?.classList.remove("large");
    open?.querySelector(".original")?.remove();
    return open;
  }
  function enlarge(picture) {
    picture.classList.add("large");
    const original = picture.closest(".card").querySelector("h3 a")?.cloneNode();
    if (!original) return;
    original.className = "original";
    original.textContent = "full size";
    picture.append(original);
  }
  list.addEventListener("click", (event) => {
    if (event.target.closest?.("a")) return;
    const picture = event.target.closest?.(".picture");
    if (shrink() !== picture && picture) enlarge(picture);
    list.classList.toggle("showing", Boolean(large()));
  });
  document.addEventListener("keydown", (event) => event.key === "Escape" && shrink());

  // Tab goes from list to list, the arrow keys from entry to entry.
  const steps = { ArrowDown: 1, ArrowUp: -1 };
  list.addEventListener("keydown", (event) => {
    const here = named(document.activeElement);
    if (!here || !(event.key in steps)) return;
    const all = [...here.closest(".card").querySelectorAll("[data-o]")];
    const open = all.filter((one) => one === here || !one.checkVisibility || one.checkVisibility());
    open[open.indexOf(here) + steps[event.key]]?.focus();
    event.preventDefault();
  });
})();
