import { type ReactNode, useState } from "react";

type Theme = "system" | "light" | "dark";
const NEXT: Record<Theme, Theme> = { system: "light", light: "dark", dark: "system" };
const SIGN: Record<Theme, string> = { system: "◐", light: "○", dark: "●" };

function current(): Theme {
  const chosen = document.documentElement.dataset.theme;
  return chosen === "light" || chosen === "dark" ? chosen : "system";
}

function apply(theme: Theme): void {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  // Charts are drawn on a canvas, which no stylesheet reaches.
  window.dispatchEvent(new Event("theme"));
  try {
    localStorage.setItem("theme", theme);
  } catch {
    // Storage may be refused: it holds until the page is left.
  }
}

export function ThemeButton(): ReactNode {
  const [theme, setTheme] = useState(current);
  const change = () => {
    apply(NEXT[theme]);
    setTheme(NEXT[theme]);
  };
  return (
    <button type="button" className="quiet" onClick={change} aria-label={`Theme: ${theme}`} title={`Theme: ${theme}`}>
      {SIGN[theme]}
    </button>
  );
}
