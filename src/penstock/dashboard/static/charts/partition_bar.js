// One partition, from the start of its log to its end: what is finished, the commit point, and what is finished above it.

import { canvas, colour } from "../canvas.js";
import { count } from "../format.js";

const BAR = 30, TOP = 22;

/** Two bars: the whole log, and a close view of what is after the commit point. */
export function partitionBar(part) {
  const { start, end, committed, ranges, fetched } = part;
  const known = committed !== null && committed !== undefined;
  const from = known ? Math.max(start, committed) : start;
  const reached = Math.max(from, Math.min(end, fetched ?? from));
  const last = Math.max(ranges.at(-1)?.[1] ?? from, reached, Math.min(end, from + 1));
  const spread = Math.max(1, Math.round((last - from) * 1.15));
  const until = Math.max(from + 1, Math.min(end, Math.max(last, from + spread)));
  const bars = [
    { name: "The whole log", low: start, high: Math.max(end, start + 1), top: 0 },
    { name: known ? "After the commit point" : "Nothing is committed", low: from, high: until, top: TOP + BAR + 26 },
  ];
  const x = (bar, width, offset) => ((offset - bar.low) / (bar.high - bar.low)) * width;
  return canvas({
    key: "bar", height: 2 * (TOP + BAR) + 46, class: "bar",
    label: `Log from ${start} to ${end}, committed ${known ? committed : "nothing"}, ${part.above} finished above`,
    draw(context, width) {
      for (const bar of bars) {
        const y = bar.top + TOP;
        context.fillStyle = colour("--soft");
        context.textAlign = "left";
        context.textBaseline = "alphabetic";
        context.fillText(bar.name, 0, bar.top + 13);
        context.fillStyle = colour("--sunken");
        context.beginPath();
        context.roundRect(0, y, width, BAR, 5);
        context.fill();
        context.save();
        context.clip();
        const done = known ? Math.min(width, Math.max(0, x(bar, width, committed))) : 0;
        context.fillStyle = colour("--good");
        context.globalAlpha = 0.35;
        context.fillRect(0, y, done, BAR);
        if (reached > from) {
          context.globalAlpha = 0.45;
          context.fillStyle = colour("--warn");
          context.fillRect(x(bar, width, from), y, Math.max(1, x(bar, width, reached) - x(bar, width, from)), BAR);
          context.fillStyle = colour("--good");
        }
        context.globalAlpha = 0.9;
        for (const [first, after] of ranges) {
          const left = x(bar, width, first);
          context.fillRect(left, y, Math.max(1, x(bar, width, after) - left), BAR);
        }
        context.globalAlpha = 1;
        context.restore();
        if (known) {
          context.fillStyle = colour("--accent");
          context.fillRect(Math.min(width - 2, Math.max(0, done - 1)), y - 5, 2, BAR + 10);
        }
        context.fillStyle = colour("--faint");
        context.textAlign = "left";
        context.fillText(count(bar.low), 0, y + BAR + 15);
        context.textAlign = "right";
        context.fillText(count(bar.high), width, y + BAR + 15);
      }
    },
    at(px, py, width) {
      const bar = bars.find((each) => py >= each.top + TOP - 4 && py <= each.top + TOP + BAR + 4);
      if (!bar) return null;
      const offset = Math.min(bar.high - 1, Math.floor(bar.low + (px / width) * (bar.high - bar.low)));
      const above = ranges.some(([first, after]) => offset >= first && offset < after);
      const said = known && offset < committed ? "committed" : above ? "finished above the commit point" : offset < reached ? "in flight: fetched, not finished" : fetched === null ? "not finished" : "not fetched yet";
      return { tip: `Offset ${count(offset)}\n${said}` };
    },
  });
}
