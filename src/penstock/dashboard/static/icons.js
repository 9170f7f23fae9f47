// Small line icons, by name.

import { h } from "./dom.js";

const PATHS = {
  groups: "M3 5h4v4H3zM3 15h4v4H3zM17 10h4v4h-4zM7 7h5v10H7M12 12h5",
  apps: "M3 12h4l3 7 4-14 3 7h4",
  rebalances: "M4 8h13l-3-3M20 16H7l3 3",
  whatif: "M3 12h6l5-6h6M9 12l5 6h6M17 3l3 3-3 3M17 15l3 3-3 3",
  letters: "M3 6h18v12H3zM3 7l9 7 9-7",
  topics: "M4 6h16M4 12h16M4 18h16",
  spark: "M12 3v5M12 16v5M3 12h5M16 12h5M6 6l3 3M15 15l3 3M18 6l-3 3M9 15l-3 3",
  theme: "M12 4a8 8 0 1 0 0 16zM12 4a8 8 0 0 1 0 16",
  help: "M9 9.500a3 3 0 1 1 4.200 2.700c-.8.4-1.200 1-1.200 1.800M12 17.500v.1M12 3a9 9 0 1 0 .01 0",
  pause: "M8 5v14M16 5v14",
  resume: "M7 5l12 7-12 7z",
  copy: "M9 9h10v10H9zM5 15V5h10",
  back: "M15 5l-7 7 7 7",
  next: "M9 5l7 7-7 7",
  close: "M6 6l12 12M18 6L6 18",
};

export function icon(name, size = 16) {
  return h("svg", { class: "icon", width: size, height: size, viewBox: "0 0 24 24", "aria-hidden": "true" }, h("path", { d: PATHS[name] ?? PATHS.topics }));
}
