"use strict";
window.nsfrcPlay = (() => {
  const found = (id) => getElement(id);
  const view = (id) => found(id)?.editor;

  // All changes of the text are made here, as if they were typed: the browser's text is the true one.
  function mend(id, from, to, was, now) {
    const editor = view(id);
    if (!editor || editor.state.sliceDoc(from, to) !== was) return;
    editor.dispatch({ changes: { from, to, insert: now }, selection: { anchor: from + now.length }, scrollIntoView: true });
    editor.focus();
  }
  function put(id, text) {
    const editor = view(id);
    if (editor) editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: text }, selection: { anchor: 0 }, scrollIntoView: true });
  }
  function go(id, at) {
    const editor = view(id);
    if (!editor) return;
    editor.dispatch({ selection: { anchor: Math.min(at, editor.state.doc.length) }, scrollIntoView: true });
    editor.focus();
  }

  function begin(editor, upload) {
    const theme = () => found(editor)?.setTheme?.(document.body.classList.contains("body--dark") ? "githubDark" : "githubLight");
    const wait = setInterval(() => { if (view(editor)) { clearInterval(wait); theme(); } }, 50);
    new MutationObserver(theme).observe(document.body, { attributes: true, attributeFilter: ["class"] });
    // Pictures may be dropped anywhere.
    document.addEventListener("dragover", (event) => { if (event.dataTransfer?.types.includes("Files")) event.preventDefault(); });
    document.addEventListener("drop", (event) => {
      if (!event.dataTransfer?.files.length || event.target.closest?.(".q-uploader")) return;
      event.preventDefault();
      found(upload).$refs.qRef.addFiles(event.dataTransfer.files);
    });
  }

  // An atom lights the objects it names; an object lights the atoms that name it.
  function light(source) {
    for (const lit of document.querySelectorAll(".lit")) lit.classList.remove("lit");
    for (const card of document.querySelectorAll(".lighting")) card.classList.remove("lighting");
    const card = source?.closest(".card, .shot");
    if (!card || !source.dataset.o) return;
    card.classList.add("lighting");
    for (const number of source.dataset.o.split(" "))
      for (const one of card.querySelectorAll("[data-o]"))
        if (one.dataset.o.split(" ").includes(number)) one.classList.add("lit");
  }
  for (const kind of ["pointerover", "focusin"])
    document.addEventListener(kind, (event) => light(event.target.closest?.("[data-o]")));

  // Arrows move among the pictures, and among the atoms of a reason.
  document.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const own = event.target.closest?.(".shot, .atom");
    if (!step || !own || event.target !== own) return;
    const all = [...(own.closest(".grid, .why") ?? document).querySelectorAll(own.matches(".shot") ? ".shot" : ".atom")]
      .filter((one) => one.checkVisibility());
    all[all.indexOf(own) + step]?.focus();
    event.preventDefault();
  });

  function copy(query) {
    const address = location.origin + location.pathname + query;
    history.replaceState({}, "", query);
    navigator.clipboard?.writeText(address).catch(() => {});
  }
  return { begin, copy, go, mend, put };
})();
