// Partitions as cells, one block for each topic. Colour is the figure that was chosen, on a logarithmic scale.

import { canvas, colour } from "../canvas.js";
import { shown } from "../dom.js";

const STEPS = 7;
const LABEL = 20, BETWEEN = 8;

/**
 * `cells` are { topic, partition, value, tip, href, key }, in order; `steps` are the lower bounds of the colours 1 to 6.
 * `chosen` is the key of the marked cell.
 */
export function heatMap({ key, cells, steps, chosen, label, width: assumed = 640 }) {
  const size = cells.length <= 120 ? 30 : cells.length <= 500 ? 20 : cells.length <= 1500 ? 13 : 10;
  const topics = [...Map.groupBy ? Map.groupBy(cells, (each) => each.topic) : grouped(cells)];
  const layout = (width) => {
    const across = Math.max(1, Math.floor(width / size));
    let top = 0;
    return topics.map(([topic, mine]) => {
      const block = { topic, mine, top, across };
      top += LABEL + Math.ceil(mine.length / across) * size + BETWEEN;
      return block;
    });
  };
  const height = layout(assumed).reduce((sum, block) => sum + LABEL + Math.ceil(block.mine.length / block.across) * size + BETWEEN, 0);
  return canvas({
    key, height: Math.max(40, height), label, class: "heat",
    draw(context, width) {
      for (const { topic, mine, top, across } of layout(width)) {
        context.fillStyle = colour("--soft");
        context.textAlign = "left";
        context.textBaseline = "alphabetic";
        context.fillText(shown(topic).slice(0, 90), 0, top + 13);
        mine.forEach((cell, index) => {
          const x = (index % across) * size, y = top + LABEL + Math.floor(index / across) * size;
          const step = stepOf(cell.value, steps);
          context.fillStyle = cell.value === null ? colour("--sunken") : colour(`--heat-${step}`);
          context.beginPath();
          context.roundRect(x, y, size - 2, size - 2, size > 14 ? 4 : 2);
          context.fill();
          if (cell.key === chosen) {
            context.strokeStyle = colour("--ink");
            context.lineWidth = 2;
            context.stroke();
          }
          if (size >= 26) {
            context.fillStyle = colour(step === 6 || step === 5 ? "--surface" : "--ink");
            context.textAlign = "center";
            context.textBaseline = "middle";
            context.fillText(String(cell.partition), x + (size - 2) / 2, y + (size - 1) / 2);
          }
        });
      }
    },
    at(x, y, width) {
      for (const { mine, top, across } of layout(width)) {
        const column = Math.floor(x / size), line = Math.floor((y - top - LABEL) / size);
        if (y < top + LABEL || column >= across || line < 0) continue;
        const cell = mine[line * across + column];
        if (cell && line < Math.ceil(mine.length / across)) return cell;
      }
      return null;
    },
  });
}

export function stepOf(value, steps) {
  if (!value) return 0;
  let step = 0;
  while (step < STEPS - 1 && value >= (steps[step] ?? Infinity)) step += 1;
  return step;
}

function grouped(cells) {
  const found = new Map();
  for (const cell of cells) found.set(cell.topic, [...(found.get(cell.topic) ?? []), cell]);
  return found;
}
