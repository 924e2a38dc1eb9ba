// SPDX-License-Identifier: Apache-2.0
// Light or dark, before anything is drawn: what was chosen here, or else what
// the system prefers.
"use strict";

const theme = {
  prefersDark: matchMedia("(prefers-color-scheme: dark)"),
  chosen: null,
  name: () => theme.chosen || (theme.prefersDark.matches ? "dark" : "light"),

  apply() {
    document.documentElement.dataset.theme = theme.name();
  },

  toggle() {
    theme.chosen = theme.name() === "dark" ? "light" : "dark";
    try {
      localStorage.setItem("memsim-theme", theme.chosen);
    } catch {
      // A browser that keeps nothing of a file's page: it holds until it goes.
    }
    theme.apply();
  },
};

try {
  const stored = localStorage.getItem("memsim-theme");
  theme.chosen = ["light", "dark"].includes(stored) ? stored : null;
} catch {
  theme.chosen = null;
}
theme.apply();
