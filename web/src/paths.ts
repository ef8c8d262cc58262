// Where each page is. Ids and slugs are URL-safe; a kernel's name is encoded all the same.
const part = encodeURIComponent;

/** A part of an address, which somebody may have typed: what can't be decoded is what it is. */
export function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export const toProject = (project: string): string => `/projects/${part(project)}`;
export const toRevision = (id: string, evaluation?: string | null): string =>
  `/revisions/${part(id)}${evaluation ? `?evaluation=${part(evaluation)}` : ""}`;

export function toKernel(
  project: string,
  kernel: string,
  state: { class?: string | null; case?: string | null; metric?: string | null; at?: string } = {},
): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(state)) if (value) search.set(name, value);
  const query = search.size ? `?${search}` : "";
  return `${toProject(project)}/kernels/${part(kernel)}${query}`;
}

export const apiOf = (project: string, kernel: string): string =>
  `/api/v1/projects/${part(project)}/kernels/${part(kernel)}`;
export const toBadge = (project: string, kernel: string, deviceClass: string): string =>
  `/badge/${part(project)}/${part(kernel)}/${part(deviceClass)}.svg`;
