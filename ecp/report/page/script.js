"use strict";
(function () {
  var all = function (css) { return Array.prototype.slice.call(document.querySelectorAll(css)); };
  var live = document.body.hasAttribute("data-live"), form = document.getElementById("filter");
  var rows = all(".grid tbody tr"), cards = all("details.scenario"), state = {};

  document.getElementById("theme").addEventListener("click", function () {
    var root = document.documentElement;
    var dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });

  // A self-contained page filters and sorts in the browser. Its state is in the fragment of the URL.
  function matches(element, text) {
    var cells = element.dataset.status ? [element] : Array.prototype.slice.call(element.querySelectorAll("[data-status]"));
    return (!state.q || text.indexOf(state.q.toLowerCase()) >= 0) && cells.some(function (c) {
      return (!state.status || c.dataset.status === state.status || state.status === "flaky" && c.hasAttribute("data-flaky")) &&
        (!state.kind || c.dataset.kind === state.kind);
    });
  }
  var texts = new Map();
  function textOf(element) {
    if (!texts.has(element)) { texts.set(element, element.textContent.toLowerCase()); }
    return texts.get(element);
  }
  function apply() {
    [[rows, "rows", "scenarios"], [cards, "count", "results"]].forEach(function (list) {
      var shown = list[0].filter(function (e) {
        var ok = matches(e, state.q ? textOf(e) : "");
        e.classList.toggle("none", !ok);
        return ok;
      }).length;
      var count = document.getElementById(list[1]);
      if (count) { count.textContent = shown === list[0].length ? "" : shown ? shown + " of " + list[0].length + " " + list[2] : "Nothing matches."; }
    });
    var key = { rate: function (r) { return +r.dataset.rate; }, cost: function (r) { return -r.dataset.cost; }, time: function (r) { return -r.dataset.time; } }[state.sort];
    var sorted = rows.slice();
    if (key) { sorted.sort(function (a, b) { return key(a) - key(b); }); }
    if (state.sort === "name") { sorted.sort(function (a, b) { return a.cells[0].textContent.localeCompare(b.cells[0].textContent); }); }
    sorted.forEach(function (r) { r.parentNode.appendChild(r); });
  }
  function changed() {
    var words = new URLSearchParams(new FormData(form));
    Array.from(words.keys()).forEach(function (k) { if (!words.get(k)) { words.delete(k); } });
    state = Object.fromEntries(words);
    history.replaceState(null, "", "#" + words);
    apply();
  }
  if (form && !live) {
    form.addEventListener("submit", function (e) { e.preventDefault(); });
    form.addEventListener("input", changed);
  } else if (form) {
    form.addEventListener("change", function (e) { if (e.target.tagName === "SELECT") { form.submit(); } });
  }

  // The target of a link is shown even if the filter hides it.
  function follow() {
    var hash = location.hash.slice(1), target = hash && document.getElementById(hash);
    if (form && !live && hash.indexOf("=") > 0) {
      state = Object.fromEntries(new URLSearchParams(hash));
      Object.keys(state).forEach(function (k) { if (form.elements[k]) { form.elements[k].value = state[k]; } });
      apply();
    } else if (target) {
      for (var e = target; e; e = e.parentElement) {
        e.classList.remove("none");
        if (e.tagName === "DETAILS") { e.open = true; }
      }
      target.scrollIntoView();
      var summary = target.querySelector("summary");
      if (summary) { summary.focus({ preventScroll: true }); }
    }
  }
  addEventListener("hashchange", follow);
  follow();

  // Keys.
  function move(link, key) {
    var cell = link.closest("td"), row = cell.parentNode, next = null;
    if (key === "ArrowLeft") { next = cell.previousElementSibling; }
    if (key === "ArrowRight") { next = cell.nextElementSibling; }
    for (var r = row; key === "ArrowUp" && (r = r.previousElementSibling);) { if (!r.classList.contains("none")) { next = r.cells[cell.cellIndex]; break; } }
    for (r = row; key === "ArrowDown" && (r = r.nextElementSibling);) { if (!r.classList.contains("none")) { next = r.cells[cell.cellIndex]; break; } }
    next = next && next.querySelector("a");
    if (next) { next.focus(); }
  }
  function step(by) {
    var page = document.querySelector(by > 0 ? "a[rel=next]" : "a[rel=prev]");
    if (page && !cards.length) { page.click(); return; }
    var bad = cards.filter(function (c) { return c.dataset.status !== "passed" && !c.classList.contains("none"); });
    var at = bad.findIndex(function (c) { return "#" + c.id === location.hash; });
    if (bad.length) { location.hash = bad[at < 0 ? (by > 0 ? 0 : bad.length - 1) : (at + by + bad.length) % bad.length].id; }
  }
  addEventListener("keydown", function (e) {
    if (e.ctrlKey || e.metaKey || e.altKey || /INPUT|SELECT|TEXTAREA/.test(e.target.tagName)) { return; }
    var search = document.querySelector("input[type=search]");
    if (e.key === "/" && search) { e.preventDefault(); search.focus(); }
    if (e.key === "n") { step(1); }
    if (e.key === "p") { step(-1); }
    if (/^Arrow/.test(e.key)) {
      var link = e.target.closest && e.target.closest(".grid td a");
      if (link) { e.preventDefault(); move(link, e.key); }
    }
  });

  // Printed pages show all details, because paper cannot be unfolded.
  var folded = [];
  addEventListener("beforeprint", function () {
    folded = all("details:not([open])").filter(function (d) { return !d.closest(".none"); });
    folded.forEach(function (d) { d.open = true; });
  });
  addEventListener("afterprint", function () { folded.forEach(function (d) { d.open = false; }); });
})();
