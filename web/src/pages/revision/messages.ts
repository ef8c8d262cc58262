// What compilers say of a line: `kernel.cu(12): error: …` (nvcc), `kernel.cpp:12:5: error: …` (GCC, Clang).
const NVCC = /^(?<file>[^\s(:]+)\((?<line>\d+)\): (?<text>(?:fatal )?(?:error|warning|note|remark)\b.*)$/;
const GCC = /^(?<file>[^\s:]+):(?<line>\d+)(?::\d+)?: (?<text>(?:fatal )?(?:error|warning|note)\b.*)$/;

/** path -> line -> messages, for the files of a bundle. */
export function messagesOf(log: string, paths: readonly string[]): Map<string, Map<number, string[]>> {
  const found = new Map<string, Map<number, string[]>>();
  for (const written of log.split("\n")) {
    const groups = (NVCC.exec(written.trim()) ?? GCC.exec(written.trim()))?.groups;
    if (!groups?.file) continue;
    const path = paths.find((one) => groups.file === one || groups.file?.endsWith(`/${one}`));
    if (path === undefined) continue;
    const lines = found.get(path) ?? new Map<number, string[]>();
    const line = Number(groups.line);
    const said = lines.get(line) ?? [];
    if (groups.text && !said.includes(groups.text)) said.push(groups.text);
    lines.set(line, said);
    found.set(path, lines);
  }
  return found;
}
