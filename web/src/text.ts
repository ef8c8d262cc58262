// Numbers and names as the terminal says them (cli/text.py, verdict/words.py): the same words, the same digits.

const MINUTE_S = 60;
const HOUR_S = 3600;
const DAY_S = 86400;

/** Without what repaints a line: control characters, direction overrides, escapes. Tabs and line ends stay. */
export function clean(text: string): string {
  const withoutEscapes = text
    .replaceAll("\r\n", "\n")
    .replace(/\p{Cc}\[[0-?]*[ -/]*[@-~]/gu, (found) =>
      found.startsWith("\u001b") || found.startsWith("\u009b") ? "" : found,
    );
  return withoutEscapes.replace(/[\p{Cc}\p{Cf}\p{Cs}]/gu, (found) => (found === "\n" || found === "\t" ? found : ""));
}

export function oneLine(text: string, width = 200): string {
  const line = clean(text).split(/\s+/u).filter(Boolean).join(" ");
  return line.length <= width ? line : `${line.slice(0, width - 1)}…`;
}

/** Digits after the point that the interval supports; without one, four significant digits. */
export function decimals(value: number, low?: number | null, high?: number | null): number {
  const known = value !== 0 && Number.isFinite(value);
  const leading = known ? Math.floor(Math.log10(Math.abs(value))) : 0;
  if (low == null || high == null || !(high > low) || !Number.isFinite(high - low)) {
    return known ? Math.max(0, Math.min(6, 3 - leading)) : 0;
  }
  const oneDigit = Number(((high - low) / 2).toExponential(0));
  return Math.max(0, Math.min(6, Math.max(-Math.floor(Math.log10(oneDigit)), -leading)));
}

export function number(value: number | null | undefined, low?: number | null, high?: number | null): string {
  return value == null ? "" : value.toFixed(decimals(value, low, high));
}

/** `0.9852 [0.9845, 0.9859]`: time_head / time_base. */
export function ratioWithInterval(ratio: number | null, interval: readonly number[] | null): string {
  if (ratio == null) return "";
  const [low, high] = interval ?? [];
  if (low === undefined || high === undefined) return number(ratio);
  const places = Math.max(1, decimals(ratio, low, high));
  return `${ratio.toFixed(places)} [${low.toFixed(places)}, ${high.toFixed(places)}]`;
}

/** `m=1024,n=1024,k=1024` as `1024^3`; an id of no known operator stays as it is. */
export function caseName(id: string): string {
  const dims = new Map(
    id.split(",").flatMap((part) => {
      const [name, value] = part.split("=", 2);
      return name !== undefined && value !== undefined ? [[name, value] as const] : [];
    }),
  );
  const names = [...dims.keys()].sort().join(" ");
  if (names === "k m n") {
    const [m, n, k] = [dims.get("m"), dims.get("n"), dims.get("k")];
    return m === n && n === k ? `${m}^3` : `${m}x${n}x${k}`;
  }
  if (names === "batch causal head_dim heads kv_heads seqlen") {
    const [heads, shared] = [dims.get("heads"), dims.get("kv_heads")];
    const grouped = heads === shared ? heads : `${heads}/${shared}`;
    const causal = dims.get("causal") === "1" ? " causal" : "";
    return `b${dims.get("batch")} h${grouped} s${dims.get("seqlen")} d${dims.get("head_dim")}${causal}`;
  }
  return oneLine(id);
}

/** A sentence of the service's with cases as people read them. */
export const withCaseNames = (sentence: string): string => sentence.replaceAll(/\b\w+=\d+(?:,\w+=\d+)+/g, caseName);

export function duration(seconds: number): string {
  if (seconds < 0.0995) return `${(seconds * 1000).toFixed(0)} ms`;
  if (seconds < 99.5) return `${seconds.toFixed(1)} s`;
  return `${(seconds / MINUTE_S).toFixed(1)} min`;
}

export function secondsBetween(start: string, end: string): number {
  return Math.max(0, (Date.parse(end) - Date.parse(start)) / 1000);
}

/** `12 s ago`, `3 min ago`, `5 h ago`, `2 d ago`, then the day. */
export function ago(moment: string, now = Date.now()): string {
  const seconds = Math.max(0, (now - Date.parse(moment)) / 1000);
  if (seconds < MINUTE_S) return `${seconds.toFixed(0)} s ago`;
  if (seconds < HOUR_S) return `${Math.floor(seconds / MINUTE_S)} min ago`;
  if (seconds < DAY_S) return `${Math.floor(seconds / HOUR_S)} h ago`;
  if (seconds < 30 * DAY_S) return `${Math.floor(seconds / DAY_S)} d ago`;
  return moment.slice(0, 10);
}

export function fileSize(bytes: number): string {
  if (bytes < 1024) return `${bytes.toFixed(0)} B`;
  let size = bytes / 1024;
  let unit = "KiB";
  for (const next of ["MiB", "GiB"]) {
    if (size < 1024) break;
    size /= 1024;
    unit = next;
  }
  return `${size.toFixed(1).replace(/\.0$/, "")} ${unit}`;
}

export function many(count: number, noun: string, plural = `${noun}s`): string {
  return `${count} ${count === 1 ? noun : plural}`;
}

/** `0.5 %`, `12 %`: a fraction to two digits. */
export function percent(fraction: number): string {
  const value = 100 * fraction;
  return Math.abs(value) >= 10 ? `${value.toFixed(0)} %` : `${Number(value.toPrecision(2))} %`;
}

/** `1.5 % faster` (takes 1.5 % less time), `12 % slower`, `the same`. */
export function ratioInWords(ratio: number | null, interval?: readonly number[] | null): string {
  if (ratio == null || !Number.isFinite(ratio)) return "unknown";
  const change = 100 * (ratio - 1);
  const text = Math.abs(change).toFixed(changeDecimals(change, interval));
  if (Number(text) === 0) return "the same";
  return `${text} % ${change > 0 ? "slower" : "faster"}`;
}

function changeDecimals(change: number, interval?: readonly number[] | null): number {
  const [low, high] = interval ?? [];
  if (low === undefined || high === undefined) return Math.abs(change) >= 10 ? 0 : 1;
  const half = 50 * (high - low);
  if (!Number.isFinite(half)) return 0;
  return half > 0 ? Math.min(Math.max(Math.floor(-Math.log10(half)), 0), 2) : 2;
}

export const words = (name: string): string => name.replaceAll("_", " ");

const METRICS: Record<string, string> = {
  throughput_over_baseline: "of the baseline",
  memory_throughput: "memory throughput",
};

/** A metric's name for people. A number of bytes says so in its unit; an architecture stands behind its dot. */
export function metricName(metric: string): string {
  const [name = "", architecture] = metric.split(".");
  const said = METRICS[name] ?? words(name.replace(/_bytes$/, ""));
  return architecture ? `${said} (${architecture})` : said;
}

/** `ratio` and `1` are no units that anybody reads. */
export const unitName = (unit: string | null | undefined): string =>
  !unit || unit === "ratio" || unit === "1" ? "" : oneLine(unit, 32);

/** A count as it is; anything else by its digits. */
export const count = (value: number | null | undefined): string =>
  value != null && Number.isInteger(value) ? String(value) : number(value);

const UNITS: Record<string, string> = { mhz: "MHz", c: "°C", w: "W" };

/** `sm_clock_mhz` as `SM clock` and `MHz`. */
export function figureName(name: string): [string, string] {
  const parts = name.split("_");
  const unit = UNITS[parts.at(-1) ?? ""];
  const title = words((unit ? parts.slice(0, -1) : parts).join("_")).replace(/^sm /, "SM ");
  return [oneLine(title, 60), unit ?? ""];
}
