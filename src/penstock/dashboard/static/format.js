// Figures as text. Unknown is "–".

const WHOLE = new Intl.NumberFormat("en");
const ONE = new Intl.NumberFormat("en", { maximumFractionDigits: 1, minimumFractionDigits: 1 });
export const UNKNOWN = "–";

export function count(value) {
  return value === null || value === undefined ? UNKNOWN : WHOLE.format(Math.round(value));
}

/** A count of at most five characters, for small places: 1,234 → 1.2 k. */
export function short(value) {
  if (value === null || value === undefined) return UNKNOWN;
  for (const [size, unit] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
    if (value >= size * 0.9995) return value >= 99.95 * size ? `${Math.round(value / size)} ${unit}` : `${Math.round((value / size) * 10) / 10} ${unit}`;
  }
  return String(Math.round(value * 10) / 10);
}

export function rate(value) {
  if (value === null || value === undefined) return UNKNOWN;
  return value > 0 && value < 10 ? `${ONE.format(value)}/s` : `${WHOLE.format(Math.round(value))}/s`;
}

/** Seconds in at most two units: 0.4 s, 12 s, 3 m 20 s, 5 h 12 m, 3 d 4 h. */
export function duration(value) {
  if (value === null || value === undefined) return UNKNOWN;
  if (value < 0.0005) return "0 s";
  if (value < 1) return `${Math.max(1, Math.round(value * 1000))} ms`;
  if (value < 10) return `${Math.round(value * 10) / 10} s`;
  const whole = Math.round(value);
  if (whole < 60) return `${whole} s`;
  for (const [size, unit, small, smallUnit] of [[86400, "d", 3600, "h"], [3600, "h", 60, "m"], [60, "m", 1, "s"]]) {
    if (whole >= size) {
      const rest = Math.floor((whole % size) / small);
      return rest && whole < size * 100 ? `${Math.floor(whole / size)} ${unit} ${rest} ${smallUnit}` : `${Math.floor(whole / size)} ${unit}`;
    }
  }
  return UNKNOWN;
}

export function bytes(value) {
  if (value === null || value === undefined) return UNKNOWN;
  for (const [size, unit] of [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]]) {
    if (value >= size) return `${ONE.format(value / size)} ${unit}`;
  }
  return `${WHOLE.format(value)} B`;
}

export function percent(part, whole) {
  if (!whole) return UNKNOWN;
  const value = (100 * part) / whole;
  return value > 0 && value < 9.5 ? `${ONE.format(value)} %` : `${Math.round(value)} %`;
}

/** A time of day; with the date if it is not today. Takes seconds since 1970. */
export function clock(at) {
  if (at === null || at === undefined) return UNKNOWN;
  const date = new Date(at * 1000);
  const time = date.toLocaleTimeString("en-GB");
  return date.toDateString() === new Date().toDateString() ? time : `${date.toLocaleDateString("en-CA")} ${time}`;
}

export function plural(number, word, words = `${word}s`) {
  return `${count(number)} ${number === 1 ? word : words}`;
}
