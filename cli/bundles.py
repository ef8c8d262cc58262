"""A revision's folder on disk -> the bundle and suite that are sent."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from cli.errors import CliError
from contract import bundle
from contract.bundle import BundleError, Files
from contract.manifest import Manifest, ManifestError, check_constraints, parse_manifest, parse_suite
from contract.own_operator import FILE as OWN_OPERATOR
from contract.repository import belongs_to_revision
from contract.suite import Suite
from contract.text import clean


@dataclass(frozen=True)
class Folder:
    """One revision as read: its bundle, and the suite of the folder above where there is one."""

    path: Path
    manifest: Manifest
    files: Files
    suite: Suite | None

    @property
    def digest(self) -> str:
        return bundle.digest(self.files)

    def texts(self) -> dict[str, str]:
        """Each file's text; raises CliError where one is not UTF-8."""
        texts = {}
        for name, content in self.files.items():
            try:
                texts[name] = content.decode()
            except UnicodeDecodeError as error:
                raise CliError(f"{self.path / name}: not UTF-8 text: {error}") from error
        return texts


def read_folder(path: Path) -> Folder:
    """Read a revision's folder: kernel.toml, its sources, and the shared headers beside the folder."""
    path = path.resolve()
    manifest_file = path / bundle.MANIFEST
    if not manifest_file.is_file():
        missing = "kernel.toml is missing" if path.is_dir() else "no such folder"
        raise CliError(
            f"{path}: {missing}",
            hint="name the folder of one revision, such as kernels/hgemm/v4_swizzle (docs/authoring.md)",
        )
    written = _content(manifest_file, within=path.parent)
    try:
        manifest = parse_manifest(written.decode(), file=str(manifest_file))
    except (ManifestError, UnicodeDecodeError) as error:
        raise CliError(clean(str(error)), hint="docs/authoring.md lists the fields") from error
    files = {bundle.MANIFEST: written} | _sources(path)
    for name in manifest.shared:
        shared = path.parent / name
        if name in files:
            raise CliError(f"{manifest_file}: shared {name} is a file of the revision as well")
        if ".." in Path(name).parts or not shared.is_file():
            raise CliError(f"{manifest_file}: shared {name} is not a file in {path.parent}")
        files[name] = _content(shared, within=path.parent)
    suite = read_suite(path.parent) if (path.parent / "suite.toml").is_file() else None
    try:
        bundle.check(files)
        if suite is not None:
            check_constraints(manifest, suite.operator_schema, file=str(manifest_file))
    except (BundleError, ManifestError) as error:
        raise CliError(f"{path}: {clean(str(error))}", hint="docs/authoring.md says what a bundle may be") from error
    return Folder(path=path, manifest=manifest, files=files, suite=suite)


def read_suite(path: Path) -> Suite:
    """The suite of a kernel's folder, or of the suite.toml that `path` names."""
    file = path / "suite.toml" if path.is_dir() else path
    beside = file.with_name(OWN_OPERATOR)
    try:
        operator = beside.read_text() if beside.is_file() else None
        return parse_suite(file.read_text(), operator=operator, file=str(file))
    except OSError as error:
        raise CliError(
            f"{file}: {error.strerror}", hint="name a kernel's folder or its suite.toml: kernels/hgemm"
        ) from error
    except (ManifestError, UnicodeDecodeError) as error:
        raise CliError(clean(str(error)), hint="docs/authoring.md lists the fields") from error


def _sources(path: Path) -> Files:
    found = {}
    for file in sorted(path.rglob("*")):
        name = file.relative_to(path).as_posix()
        if belongs_to_revision(name) and file.is_file():
            found[name] = _content(file, within=path.parent)
    return found


def _content(file: Path, *, within: Path) -> bytes:
    """A checkout may be a stranger's, whose links lead to this machine's files."""
    if not file.resolve().is_relative_to(within):
        raise CliError(f"{file}: it is a link that leads out of {within}", hint="a bundle has files of its own")
    return file.read_bytes()
