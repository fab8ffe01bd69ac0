// Numbers as text, the same as `assay.text`. A test compares both.

/** `850 ms`, `12.3 s`, `3 min 20 s`. @param {number} milliseconds */
export function duration(milliseconds) {
  if (milliseconds < 999.5) return `${fixed(milliseconds, 0)} ms`;
  if (milliseconds < 59_950) return `${fixed(milliseconds / 1000, 1)} s`;
  const seconds = Number(fixed(milliseconds / 1000, 0));
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${seconds % 60} s`;
  return `${whole(Math.floor(minutes / 60))} h ${minutes % 60} min`;
}

/** `$0.0123`, `$12.34`. @param {number} usd */
export function money(usd) {
  if (usd > 0 && usd < 0.0001) return "under $0.0001";
  if (usd >= 1 || usd === 0) {
    const [dollars, cents] = fixed(usd, 2).split(".");
    return `$${whole(Number(dollars))}.${cents}`;
  }
  return `$${fixed(usd, 4)}`;
}

/** `1,000`. @param {number} number */
export function whole(number) {
  return number.toLocaleString("en-US");
}

/** `1 case`, `1,000 cases`. @param {number} number @param {string} noun */
export function counted(number, noun) {
  return `${whole(number)} ${noun}${number === 1 ? "" : "s"}`;
}

/** A number with so many digits; a tie is rounded to the even digit. @param {number} number @param {number} digits */
export function fixed(number, digits) {
  const scaled = number * 10 ** digits;
  const even = Math.abs(scaled % 1) === 0.5 ? (2 * Math.round(scaled / 2)) / 10 ** digits : number;
  return even.toFixed(digits);
}
