// Which member owns which partition: members are lines, partitions are columns, topics are blocks of columns.

import { canvas, colour } from "../canvas.js";
import { shown } from "../dom.js";
import { plural } from "../format.js";

const LINE = 24, HEAD = 22, GAP = 10;
const NARROWEST = 3, WIDEST = 8000; // a column; a picture, which scrolls

/**
 * `members` are { id, name, note, partitions, target } with partitions as [topic, number]; `topics` are [name, count].
 * Owned is filled, an assignment that has not happened yet is outlined. `moved` maps "topic/number" to what is said about
 * it: these cells are marked.
 */
export function matrix({ key, members, topics, hrefOf, label, assumed = 700, moved = new Map() }) {
  const total = Math.max(1, topics.reduce((sum, each) => sum + each[1], 0));
  const names = assumed < 400 ? 92 : 170;
  const place = (width) => {
    const size = Math.min(24, Math.max(0.5, (width - names - GAP * topics.length) / total));
    let x = names;
    return topics.map(([topic, partitions]) => {
      const block = { topic, partitions, x, size };
      x += partitions * size + GAP;
      return block;
    });
  };
  const owned = members.map((each) => new Set(each.partitions.map((tp) => tp.join("/"))));
  const due = members.map((each) => new Set(each.target.map((tp) => tp.join("/"))));
  return canvas({
    key, minWidth: Math.min(WIDEST, names + GAP * topics.length + total * NARROWEST), height: HEAD + Math.max(1, members.length) * LINE + 4, label, class: "matrix",
    draw(context, width) {
      context.textBaseline = "middle";
      const blocks = place(width);
      for (const { topic, partitions, x, size } of blocks) {
        context.save();
        context.beginPath();
        context.rect(x, 0, partitions * size + GAP - 3, HEAD);
        context.clip();
        context.fillStyle = colour("--soft");
        context.textAlign = "left";
        context.fillText(shown(topic), x, 9);
        context.restore();
      }
      members.forEach((member, index) => {
        const y = HEAD + index * LINE;
        context.save();
        context.beginPath();
        context.rect(0, y, names - 10, LINE);
        context.clip();
        context.fillStyle = colour("--ink");
        context.textAlign = "left";
        context.fillText(shown(member.name), 0, y + LINE / 2 - 1);
        context.restore();
        for (const { topic, partitions, x, size } of blocks) {
          for (let number = 0; number < partitions; number += 1) {
            const tp = `${topic}/${number}`, left = x + number * size, gap = size > 6 ? 2 : 0;
            const has = owned[index].has(tp), gets = due[index].has(tp);
            context.fillStyle = has ? colour(`--series-${(index % 6) + 1}`) : colour("--sunken");
            context.globalAlpha = has && !gets ? 0.45 : 1;
            context.fillRect(left, y + 2, Math.max(1, size - gap), LINE - 6);
            context.globalAlpha = 1;
            if (has && moved.has(tp)) {
              context.fillStyle = colour("--surface");
              context.beginPath();
              context.arc(left + (size - gap) / 2, y + LINE / 2 - 1, Math.min(3.5, Math.max(1, size / 4)), 0, 7);
              context.fill();
            }
            if (gets && !has) {
              context.strokeStyle = colour(`--series-${(index % 6) + 1}`);
              context.strokeRect(left + 0.5, y + 2.5, Math.max(1, size - gap - 1), LINE - 7);
            }
          }
        }
      });
    },
    at(px, py, width) {
      const index = Math.floor((py - HEAD) / LINE), member = members[index];
      if (!member || py < HEAD) return null;
      for (const { topic, partitions, x, size } of place(width)) {
        const number = Math.floor((px - x) / size);
        if (number >= 0 && number < partitions) {
          const tp = `${topic}/${number}`, has = owned[index].has(tp), gets = due[index].has(tp);
          const said = has && gets ? "owns" : has ? "gives up" : gets ? "will get" : "does not own";
          const more = has && moved.has(tp) ? `\n${moved.get(tp)}` : "";
          return { tip: `${shown(member.name)} ${said} ${shown(topic)}-${number}${more}`, href: hrefOf?.(topic, number) };
        }
      }
      return px < names ? { tip: `${shown(member.id)}\n${shown(member.note)}\n${plural(member.partitions.length, "partition")}` } : null;
    },
  });
}
