import re
from pathlib import Path

import pytest
import typer

from cli.main import app

ROOT = Path(__file__).parents[2]
PAGES = ["README.md", "CONTRIBUTING.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))]
COMMAND = re.compile(r"(?:^|[ `(/=])kernelgate ([a-z][^\n`#()]*)", flags=re.MULTILINE)


def _documented(page: str) -> list[list[str]]:
    """The words after `kernelgate` in code, without comments."""
    text = (ROOT / page).read_text()
    code = re.findall(r"^```[a-z]*\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)
    code += re.findall(r"`[^`\n]+`", re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE))
    return [words.split() for block in code for words in COMMAND.findall(block)]


def test_the_pages_show_the_commands_that_people_start_with():
    named = {words[0] for page in PAGES for words in _documented(page)}
    assert {"up", "submit", "run", "history", "compare", "import", "token", "doctor", "worker", "db"} <= named


@pytest.mark.parametrize("page", PAGES)
def test_every_command_in_the_pages_exists_with_its_options_and_arguments(page):
    group = typer.main.get_command(app)
    for words in _documented(page):
        command, rest = group, list(words)
        while rest and hasattr(command, "commands"):
            assert rest[0] in command.commands, " ".join(words)
            command = command.commands[rest.pop(0)]
        if not rest:
            continue  # named in a sentence
        context = command.context_class(command, info_name=words[0], resilient_parsing=True)
        values, left, _ = command.make_parser(context).parse_args(rest)
        assert left == [], " ".join(words)
        wanting = [option.name for option in command.params if option.required and not values.get(option.name)]
        assert wanting == [], " ".join(words)
