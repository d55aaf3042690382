// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

"use strict";

const root = document.currentScript.dataset.root;

// On a wide screen the list of pages is always there. On a phone a tap opens it.
const navigation = document.getElementById("navigation");
const narrow = matchMedia("(max-width: 48rem)");
const unfold = () => { navigation.open = !narrow.matches; };
narrow.addEventListener("change", unfold);
unfold();
navigation.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });

for (const block of document.querySelectorAll("pre")) {
  const copy = document.createElement("button");
  copy.textContent = "Copy";
  copy.addEventListener("click", async () => {
    await navigator.clipboard.writeText(block.querySelector("code").textContent);
    copy.textContent = "Copied";
    setTimeout(() => { copy.textContent = "Copy"; }, 2000);
  });
  block.append(copy);
}

const field = document.getElementById("search");
const results = document.getElementById("results");
let loading;

// The sections of all pages, once somebody searches.
function sections() {
  loading ??= fetch(root + "search.json").then((answer) => answer.json());
  return loading;
}

function count(text, word) {
  return text.split(word).length - 1;
}

// A section must have all words. Words in a heading count more than those below it.
function score(section, words) {
  const title = section.title.toLowerCase(), heading = section.heading.toLowerCase(), text = section.text.toLowerCase();
  let sum = 0;
  for (const word of words) {
    const points = 20 * count(heading, word) + 5 * count(title, word) + Math.min(5, count(text, word));
    if (points === 0) return 0;
    sum += points;
  }
  return sum;
}

function excerpt(text, word) {
  const at = Math.max(0, text.toLowerCase().indexOf(word) - 60);
  return (at > 0 ? "…" : "") + text.slice(at, at + 180) + (text.length > at + 180 ? "…" : "");
}

function show(section, words) {
  const item = document.createElement("li"), link = document.createElement("a");
  const name = document.createElement("strong"), text = document.createElement("small");
  link.href = root + section.page;
  name.textContent = section.heading === section.title ? section.title : section.title + " › " + section.heading;
  text.textContent = excerpt(section.text, words[0]);
  link.append(name, text);
  item.append(link);
  return item;
}

async function search() {
  const words = field.value.toLowerCase().split(/\s+/).filter((word) => word !== "");
  if (words.length === 0) {
    results.hidden = true;
    return;
  }
  const typed = field.value;
  const found = (await sections())
    .map((section) => ({ section, points: score(section, words) }))
    .filter((match) => match.points > 0)
    .sort((a, b) => b.points - a.points)
    .slice(0, 12);
  if (field.value !== typed) return; // somebody types on
  results.replaceChildren(...found.map((match) => show(match.section, words)));
  if (found.length === 0) {
    const nothing = document.createElement("li");
    nothing.className = "nothing";
    nothing.textContent = "No page has all these words.";
    results.append(nothing);
  }
  results.hidden = false;
}

field.addEventListener("input", search);
field.addEventListener("focus", search);
document.addEventListener("click", (event) => {
  if (!event.target.closest(".search")) results.hidden = true;
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    results.hidden = true;
    field.blur();
  }
  if (event.key === "/" && !/^(input|textarea)$/i.test(document.activeElement.tagName)) {
    event.preventDefault();
    field.focus();
  }
  if (event.key === "Enter" && document.activeElement === field) results.querySelector("a")?.click();
  if (event.key === "ArrowDown" && !results.hidden) {
    event.preventDefault();
    const links = [...results.querySelectorAll("a")];
    links[Math.min(links.length - 1, links.indexOf(document.activeElement) + 1)]?.focus();
  }
});
