// The latest slices or batches as bars: their height is how long they took, their colour whether records failed.

import { canvas, colour } from "../canvas.js";
import { clock, count, duration, plural } from "../format.js";

const LEFT = 46, BOTTOM = 6, TOP = 8, WIDEST = 14;

/** `batches` are { at, read, written, dead_lettered, skipped, seconds }, oldest first; room for `most` of them. */
export function batchBars({ key, batches, most = 60, height = 84, word }) {
  const top = Math.max(0.1, ...batches.map((each) => each.seconds)) * 1.05;
  const step = (width) => Math.min(WIDEST, (width - LEFT) / most);
  return canvas({
    key, height, class: "bars", label: `Duration of the latest ${plural(batches.length, word, word === "batch" ? "batches" : `${word}s`)}`,
    draw(context, width) {
      context.textAlign = "right";
      context.textBaseline = "middle";
      for (const part of [0, 1]) {
        const y = TOP + part * (height - TOP - BOTTOM);
        context.fillStyle = colour("--line");
        context.fillRect(LEFT, Math.round(y), width - LEFT, 1);
        context.fillStyle = colour("--faint");
        context.fillText(part ? "0" : duration(top / 1.05), LEFT - 8, y);
      }
      const wide = step(width);
      batches.forEach((each, index) => {
        const tall = Math.max(2, (each.seconds / top) * (height - TOP - BOTTOM));
        context.fillStyle = colour(each.dead_lettered ? "--heat-5" : "--series-1");
        context.beginPath();
        context.roundRect(LEFT + index * wide, height - BOTTOM - tall, Math.max(1, wide - 2), tall, [2, 2, 0, 0]);
        context.fill();
      });
    },
    at(x, _y, width) {
      const each = x < LEFT ? null : batches[Math.floor((x - LEFT) / step(width))];
      if (!each) return null;
      const failed = each.dead_lettered ? `\n${plural(each.dead_lettered, "dead letter")}` : "";
      return { tip: `${clock(each.at)}\n${plural(each.read, "record")} in ${duration(each.seconds)}\n${count(each.written)} written${failed}` };
    },
  });
}
