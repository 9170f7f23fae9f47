// A rebalance as time: a line for each member with its phases, then a line for each partition without an owner.

import { canvas, colour } from "../canvas.js";
import { shown } from "../dom.js";
import { duration } from "../format.js";

const LINE = 30, THIN = 18, HEAD = 26, RIGHT = 16;

/**
 * `lanes` are { name, tip, bars, marks }, `gaps` are { name, tip, from, until }; bars are { from, until, colour, text, tip },
 * marks are { at, colour, tip }. Times are in seconds; the picture is from `from` to `until`.
 */
export function timeline({ key, lanes, gaps, from, until, label, narrow }) {
  const names = narrow ? 84 : 168;
  const span = Math.max(0.001, until - from);
  const gapsTop = HEAD + lanes.length * LINE + (gaps.length ? 26 : 0);
  const x = (width, at) => names + ((Math.min(Math.max(at, from), until) - from) / span) * (width - names - RIGHT);
  const extent = (width, bar) => {
    const left = x(width, bar.from);
    return [left, Math.max(2, x(width, bar.until) - left)];
  };
  return canvas({
    key, height: gapsTop + gaps.length * THIN + 6, label, class: "timeline",
    draw(context, width, height) {
      axis(context, width, height, span, names);
      lanes.forEach((lane, index) => {
        const y = HEAD + index * LINE;
        name(context, lane.name, y + LINE / 2, names, "--ink");
        for (const bar of lane.bars) {
          const [left, wide] = extent(width, bar);
          context.fillStyle = colour(bar.colour);
          context.beginPath();
          context.roundRect(left, y + 5, wide, LINE - 12, 3);
          context.fill();
          if (wide > context.measureText(bar.text).width + 12) {
            context.fillStyle = colour("--surface");
            context.textAlign = "left";
            context.fillText(bar.text, left + 6, y + LINE / 2 - 1);
          }
        }
        for (const mark of lane.marks) {
          context.fillStyle = colour(mark.colour);
          context.fillRect(x(width, mark.at) - 1, y + 1, 2, LINE - 4);
        }
      });
      if (gaps.length) name(context, narrow ? "No owner" : "Without an owner", gapsTop - 11, width, "--soft");
      gaps.forEach((gap, index) => {
        const y = gapsTop + index * THIN;
        name(context, gap.name, y + THIN / 2, names, "--soft");
        const [left, wide] = extent(width, gap);
        context.fillStyle = colour(gap.open ? "--heat-3" : "--heat-5");
        context.beginPath();
        context.roundRect(left, y + 4, wide, THIN - 8, 3);
        context.fill();
        const text = gap.text, room = context.measureText(text).width + 8;
        context.fillStyle = colour("--faint");
        const after = left + wide + room < width;
        context.textAlign = after ? "left" : "right";
        if (after || left - room > names) context.fillText(text, after ? left + wide + 6 : left - 6, y + THIN / 2);
      });
    },
    at(px, py, width) {
      if (py < HEAD) return null;
      const lane = lanes[Math.floor((py - HEAD) / LINE)];
      if (lane && py < HEAD + lanes.length * LINE) {
        if (px < names) return { tip: lane.tip };
        const mark = lane.marks.find((each) => Math.abs(px - x(width, each.at)) <= 3);
        const bar = lane.bars.find((each) => { const [left, wide] = extent(width, each); return px >= left - 1 && px <= left + wide + 1; });
        return mark || bar ? { tip: (mark ?? bar).tip } : null;
      }
      const gap = py >= gapsTop ? gaps[Math.floor((py - gapsTop) / THIN)] : null;
      return gap ? { tip: gap.tip } : null;
    },
  });
}

function name(context, text, y, width, ink) {
  context.save();
  context.beginPath();
  context.rect(0, y - LINE / 2, width - 10, LINE);
  context.clip();
  context.fillStyle = colour(ink);
  context.textAlign = "left";
  context.textBaseline = "middle";
  context.fillText(shown(text), 0, y);
  context.restore();
}

function axis(context, width, height, span, names) {
  const step = niceStep(span / (width > 620 ? 6 : 3));
  context.textBaseline = "middle";
  context.textAlign = "center";
  for (let at = 0; at <= span * 1.0001; at += step) {
    const x = names + (at / span) * (width - names - RIGHT);
    context.fillStyle = colour("--line");
    context.fillRect(Math.round(x), HEAD - 6, 1, height - HEAD);
    context.fillStyle = colour("--faint");
    context.fillText(at === 0 ? "0" : duration(at), x, 9);
  }
}

function niceStep(value) {
  const size = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((each) => each * size).find((each) => each >= value);
}
