// A line over time with axes; the value under the pointer is told.

import { canvas, colour } from "../canvas.js";
import { clock, duration } from "../format.js";

const LEFT = 52, RIGHT = 12, TOP = 10, BOTTOM = 22;

/** `points` are [time in seconds, value or null]; `format` makes text of a value. */
export function lineChart({ key, points, height = 190, format, label }) {
  const from = points[0]?.[0] ?? 0, to = points.at(-1)?.[0] ?? 1;
  const top = niceTop(Math.max(1, ...points.map((each) => each[1] ?? 0)));
  const place = (width, at, value) => [LEFT + ((at - from) / Math.max(1, to - from)) * (width - LEFT - RIGHT), TOP + (1 - value / top) * (height - TOP - BOTTOM)];
  return canvas({
    key, height, label, class: "chart",
    draw(context, width) {
      grid(context, width, height, top, from, to, format);
      for (const run of runs(points)) {
        const spots = run.map(([at, value]) => place(width, at, value));
        context.beginPath();
        context.moveTo(spots[0][0], height - BOTTOM);
        spots.forEach(([x, y]) => context.lineTo(x, y));
        context.lineTo(spots.at(-1)[0], height - BOTTOM);
        context.fillStyle = colour("--accent-soft");
        context.fill();
        context.beginPath();
        spots.forEach(([x, y], index) => (index ? context.lineTo(x, y) : context.moveTo(x, y)));
        context.strokeStyle = colour("--accent");
        context.lineWidth = 1.8;
        context.lineJoin = "round";
        context.stroke();
      }
    },
    at(x, _y, width) {
      if (!points.length || x < LEFT) return null;
      const time = from + ((x - LEFT) / (width - LEFT - RIGHT)) * Math.max(1, to - from);
      const point = points.reduce((best, each) => (Math.abs(each[0] - time) < Math.abs(best[0] - time) ? each : best));
      return { tip: `${clock(point[0])}\n${point[1] === null ? "not known" : format(point[1])}` };
    },
  });
}

function grid(context, width, height, top, from, to, format) {
  context.strokeStyle = colour("--line");
  context.fillStyle = colour("--faint");
  context.lineWidth = 1;
  context.textBaseline = "middle";
  context.textAlign = "right";
  for (const part of [0, 0.5, 1]) {
    const y = Math.round(TOP + (1 - part) * (height - TOP - BOTTOM)) + 0.5;
    context.beginPath();
    context.moveTo(LEFT, y);
    context.lineTo(width - RIGHT, y);
    context.stroke();
    context.fillText(format(top * part), LEFT - 8, y);
  }
  context.textBaseline = "alphabetic";
  const marks = width > 420 ? 4 : 2;
  for (let index = 0; index <= marks; index += 1) {
    const ago = (to - from) * (1 - index / marks);
    context.textAlign = index === 0 ? "left" : index === marks ? "right" : "center";
    context.fillText(ago < 1 ? "now" : `${duration(ago)} ago`, LEFT + (index / marks) * (width - LEFT - RIGHT), height - 5);
  }
}

function runs(points) {
  const found = [[]];
  for (const point of points) {
    if (point[1] === null) found.push([]);
    else found.at(-1).push(point);
  }
  return found.filter((each) => each.length);
}

function niceTop(value) {
  const size = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 4, 5, 8, 10].map((each) => each * size).find((each) => each >= value);
}
