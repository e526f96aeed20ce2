# The scaler's image: podman or docker build -t vllm-scaler:0.1.0 .
# BASE is any glibc image with Python 3.11 or newer and its venv module as `python3`: python:*-slim as it is, or Debian
# with the packages python3 and python3-venv.
ARG BASE=python:3.13-slim

FROM ${BASE} AS build
# pip lives in an environment of its own, so that the one that is shipped has none.
RUN python3 -m venv /pip && python3 -m venv --without-pip /opt/vllm-scaler
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY scaler scaler
COPY inference inference
# Everything is compiled here, since the root file system is read-only later; libraries' own tests stay behind.
RUN /pip/bin/pip --disable-pip-version-check --python /opt/vllm-scaler/bin/python install --no-cache-dir . \
    && find /opt/vllm-scaler/lib -depth -type d -name tests -path '*/site-packages/*' -exec rm -rf {} +

FROM ${BASE}
LABEL org.opencontainers.image.title="vllm-scaler" \
      org.opencontainers.image.description="A KEDA external scaler for LLM inference" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /opt/vllm-scaler /opt/vllm-scaler
ENV PATH=/opt/vllm-scaler/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
# By number, so that Kubernetes can tell that it is not root.
USER 65532:65532
EXPOSE 9090 8080
# No HEALTHCHECK: Kubernetes asks /healthz and /readyz, or gRPC's health service.
ENTRYPOINT ["vllm-scaler"]
CMD ["serve"]
