"""`python -m service.openapi`: the OpenAPI document on standard output, from which clients are generated."""

import json
import sys
from typing import Any

from service.app import create_app
from service.settings import Settings


def document() -> dict[str, Any]:
    """The same whatever the environment says."""
    # Nobody connects to it.
    return create_app(Settings(database_url="postgresql+psycopg://", store_url="memory://")).openapi()


def main() -> None:
    json.dump(document(), sys.stdout, indent=2, sort_keys=True)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
