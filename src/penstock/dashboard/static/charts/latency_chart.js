// A histogram of durations: one bar for each bucket, with the half and the 99th part marked.

import { canvas, colour } from "../canvas.js";
import { count, duration, percent } from "../format.js";

const LEFT = 8, RIGHT = 8, TOP = 22, BOTTOM = 20;

/** `counts` has one more than `bounds` (seconds): the last counts what took longer. Empty buckets at both ends are left out. */
export function latencyChart({ key, bounds, counts, height = 170 }) {
  const total = counts.reduce((sum, each) => sum + each, 0);
  const first = Math.max(0, counts.findIndex(Boolean) - 1);
  const last = Math.min(counts.length - 1, Math.max(first + 3, counts.findLastIndex(Boolean)));
  const bars = counts.slice(first, last + 1);
  const top = Math.max(1, ...bars);
  const nameOf = (index) => (index < bounds.length ? `≤ ${duration(bounds[index])}` : `> ${duration(bounds.at(-1))}`);
  const half = bucketOf(counts, 0.5), most = bucketOf(counts, 0.99);
  return canvas({
    key, height, class: "chart", label: `Half took ${nameOf(half)}, 99 % took ${nameOf(most)}`,
    draw(context, width) {
      const size = (width - LEFT - RIGHT) / bars.length;
      context.textAlign = "left";
      context.textBaseline = "alphabetic";
      context.fillStyle = colour("--soft");
      context.fillText(`half ${nameOf(half)} · 99 % ${nameOf(most)}`, LEFT, 12);
      context.strokeStyle = colour("--line");
      context.beginPath();
      context.moveTo(LEFT, height - BOTTOM + 0.5);
      context.lineTo(width - RIGHT, height - BOTTOM + 0.5);
      context.stroke();
      bars.forEach((many, index) => {
        const x = LEFT + index * size;
        const tall = many ? Math.max(2, (many / top) * (height - TOP - BOTTOM)) : 0;
        context.fillStyle = colour(first + index > most ? "--series-2" : "--accent");
        context.beginPath();
        context.roundRect(x + 2, height - BOTTOM - tall, Math.max(1, size - 4), tall, Math.min(3, tall));
        context.fill();
        context.fillStyle = colour("--faint");
        context.textAlign = "center";
        if (size > 46 || index % 2 === 0) context.fillText(nameOf(first + index), x + size / 2, height - 5, size * (size > 46 ? 1 : 2));
      });
    },
    at(x, _y, width) {
      const index = Math.floor((x - LEFT) / ((width - LEFT - RIGHT) / bars.length));
      return bars[index] === undefined ? null : { tip: `${nameOf(first + index)}\n${count(bars[index])} (${percent(bars[index], total)})` };
    },
  });
}

function bucketOf(counts, part) {
  const wanted = counts.reduce((sum, each) => sum + each, 0) * part;
  let sum = 0;
  return counts.findIndex((each) => (sum += each) >= wanted);
}
