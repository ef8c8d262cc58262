"""`python -m service`: serve on KERNELGATE_HOST and KERNELGATE_PORT (127.0.0.1:8000)."""

import os

import uvicorn


def main() -> None:
    uvicorn.run(
        "service.app:create_app",
        factory=True,
        host=os.environ.get("KERNELGATE_HOST", "127.0.0.1"),
        port=int(os.environ.get("KERNELGATE_PORT", "8000")),
        # Long polls and event streams would otherwise hold a restart up; their clients come back.
        timeout_graceful_shutdown=5,
    )


if __name__ == "__main__":
    main()
