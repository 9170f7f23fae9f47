// Counts over time as bars. Each bar leads to what it counts.

import { canvas, colour } from "../canvas.js";
import { clock, count, duration, short } from "../format.js";

const LEFT = 44, RIGHT = 4, TOP = 10, BOTTOM = 20;

/** `bars` are [start in seconds, count]; each lasts `step` seconds. `hrefOf(from, to)`; `chosen` is the start of the marked one. */
export function barChart({ key, bars, step, hrefOf, chosen, label, height = 170 }) {
  const most = Math.max(1, ...bars.map((each) => each[1]));
  const top = most > 1 ? most + (most % 2) : 1; // half of it is a count too
  const place = (width, index) => {
    const size = (width - LEFT - RIGHT) / Math.max(bars.length, 12);
    return [LEFT + index * size, size];
  };
  return canvas({
    key, height, label, class: "chart",
    draw(context, width) {
      context.font = `11px ${getComputedStyle(context.canvas).fontFamily}`;
      context.strokeStyle = colour("--line");
      context.fillStyle = colour("--faint");
      context.textBaseline = "middle";
      context.textAlign = "right";
      for (const part of top > 1 ? [0, 0.5, 1] : [0, 1]) {
        const y = Math.round(TOP + (1 - part) * (height - TOP - BOTTOM)) + 0.5;
        context.beginPath();
        context.moveTo(LEFT, y);
        context.lineTo(width - RIGHT, y);
        context.stroke();
        context.fillText(short(top * part), LEFT - 8, y);
      }
      bars.forEach(([at, many], index) => {
        const [x, size] = place(width, index);
        const tall = many ? Math.max(2, (many / top) * (height - TOP - BOTTOM)) : 0;
        context.fillStyle = colour(at === chosen ? "--bad" : "--series-2");
        context.beginPath();
        context.roundRect(x + 0.5, height - BOTTOM - tall, Math.max(1, size - 2), tall, Math.min(3, tall));
        context.fill();
      });
      context.fillStyle = colour("--faint");
      context.textBaseline = "alphabetic";
      const [end, size] = place(width, bars.length - 1);
      context.textAlign = "left";
      if (bars.length) context.fillText(clock(bars[0][0]), LEFT, height - 4);
      context.textAlign = "right";
      if (bars.length > 1 && end + size > LEFT + 240) context.fillText(clock(bars.at(-1)[0] + step), Math.min(width - RIGHT, end + size), height - 4);
    },
    at(x, _y, width) {
      const index = Math.floor((x - LEFT) / place(width, 0)[1]);
      if (x < LEFT || !bars[index]) return null;
      const [from, many] = bars[index];
      return { tip: `${clock(from)}, ${duration(step)}\n${count(many)}`, href: many ? hrefOf?.(from, from + step) : null };
    },
  });
}
