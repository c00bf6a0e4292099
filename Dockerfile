# nsfrc serve in a container; see docs/service.md.
#
#     docker build -t nsfrc-serve .
#     docker run -p 8000:8000 -v "$PWD/token:/run/secrets/token:ro" nsfrc-serve
#
# Nothing but package registries is reached: that of the base image, and PyPI, whose torch brings several GB of libraries
# for GPUs. TORCH_INDEX names an index that has torch's builds for CPUs.
FROM python:3.12-slim AS build
ARG TORCH_INDEX=
RUN python -m venv /opt/nsfrc
WORKDIR /source
COPY pyproject.toml setup.py MANIFEST.in constraints.txt README.md CHANGELOG.md LICENSE ./
COPY benchmarks ./benchmarks
COPY grammars ./grammars
COPY kernels ./kernels
COPY programs ./programs
COPY nsfrc ./nsfrc
RUN /opt/nsfrc/bin/pip install --no-cache-dir --disable-pip-version-check -c constraints.txt \
    ${TORCH_INDEX:+--extra-index-url "$TORCH_INDEX"} '.[serve,onnx]'

FROM python:3.12-slim
COPY --from=build /opt/nsfrc /opt/nsfrc
RUN useradd --create-home --uid 10001 nsfrc
ENV PATH=/opt/nsfrc/bin:$PATH PYTHONUNBUFFERED=1
USER nsfrc
WORKDIR /home/nsfrc
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/healthz', timeout=4)"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["nsfrc", "serve"]
CMD ["twopairs", "--host", "0.0.0.0", "--token-file", "/run/secrets/token"]
