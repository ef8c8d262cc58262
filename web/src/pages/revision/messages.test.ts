import { expect, it } from "vitest";
import { messagesOf } from "./messages";

it("finds what compilers say of a bundle's lines, once each", () => {
  const log = [
    "/tmp/work/kernel.cpp:3:5: error: 'x' was not declared",
    "/tmp/work/kernel.cpp:3:5: error: 'x' was not declared",
    "kernel.cu(12): warning #177-D: variable is unused",
    "/usr/include/stdio.h:1:1: error: elsewhere",
    "kernel.cpp: In function 'run':",
  ].join("\n");
  const found = messagesOf(log, ["kernel.cpp", "kernel.cu"]);
  expect(found.get("kernel.cpp")?.get(3)).toEqual(["error: 'x' was not declared"]);
  expect(found.get("kernel.cu")?.get(12)).toEqual(["warning #177-D: variable is unused"]);
  expect(found.size).toBe(2);
});
