// Before the first paint, so that a dark page never flashes white.
try {
  const chosen = localStorage.getItem("theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch {
  // Storage may be refused; the system's preference holds then.
}
