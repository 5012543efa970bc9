"use strict";
const buttons = [...document.querySelectorAll("button[data-manager]")];
for (const button of buttons) {
  button.addEventListener("click", () => {
    const chosen = button.getAttribute("aria-pressed") === "true" ? null : button.dataset.manager;
    for (const b of buttons) b.setAttribute("aria-pressed", String(b.dataset.manager === chosen));
    for (const row of document.querySelectorAll("tr[data-managers]")) {
      row.classList.toggle("aside", chosen !== null && !row.dataset.managers.split(" ").includes(chosen));
    }
  });
}
