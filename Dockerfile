# syntax=docker/dockerfile:1
# docker build --target service -t kernelgate-service .     docker build --target worker -t kernelgate-worker .

FROM python:3.12.11-slim-bookworm AS python
ENV PATH=/opt/kernelgate/bin:$PATH \
    PYTHONUNBUFFERED=1
RUN useradd --system --uid 10001 --create-home --home-dir /var/lib/kernelgate kernelgate
WORKDIR /var/lib/kernelgate

FROM python AS source
WORKDIR /src
COPY pyproject.toml README.md LICENSE constraints.txt constraints-base.txt ./
COPY contract contract
COPY verdict verdict
COPY service service
COPY worker worker
COPY cli cli
RUN python -m venv /opt/kernelgate

FROM node:20.19.5-bookworm-slim AS web
WORKDIR /src
COPY web ./
RUN npm ci && npm run build

FROM source AS service-build
RUN pip install --no-cache-dir --constraint constraints.txt '.[service]'

FROM python AS service
COPY --from=service-build /opt/kernelgate /opt/kernelgate
COPY --from=web /src/dist /opt/kernelgate/web
USER 10001
ENV KERNELGATE_STORE_URL=/var/lib/kernelgate/store \
    KERNELGATE_WEB_DIR=/opt/kernelgate/web
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/readyz', timeout=4)"]
CMD ["uvicorn", "--factory", "service.app:create_app", "--host", "0.0.0.0", "--port", "8000", "--no-access-log"]

FROM source AS worker-build
# nvcc comes as a package, the same one that a machine without a toolkit uses: no CUDA base image of 4 GB.
RUN pip install --no-cache-dir --constraint constraints.txt '.[worker,gpu,nvcc]'

FROM python AS worker
# Debian keeps one version of a package in a release: a pin would break the build at the next security update.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends bubblewrap g++ \
    && rm -rf /var/lib/apt/lists/*
COPY --from=worker-build /opt/kernelgate /opt/kernelgate
USER 10001
ENV KERNELGATE_CACHE_DIR=/var/lib/kernelgate/cache \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility
RUN mkdir /var/lib/kernelgate/cache
HEALTHCHECK --interval=60s --timeout=20s --start-period=60s --retries=3 \
    CMD ["sh", "-c", "celery --app worker.app inspect ping --timeout 10 --destination celery@$(hostname)"]
CMD ["kernelgate", "worker"]
