# docker build -t fake-kubelet .    (or podman build --format docker: HEALTHCHECK is not in OCI's own format)
# The same base every time: --build-arg DIGEST=sha256:…, the digest of the tag in PYTHON.
ARG PYTHON=docker.io/library/python:3.13-slim
ARG DIGEST=

FROM ${PYTHON}${DIGEST:+@${DIGEST}} AS build
WORKDIR /src
# What we depend on, in a layer that a change of our own code leaves alone: wheels by their hashes (`make lock`), and nothing
# that would be built here from what nobody has pinned. The environment has no pip of its own: nobody installs anything
# into an image that runs.
COPY requirements.lock requirements-build.lock ./
RUN python -m venv --without-pip /opt/fake-kubelet \
    && python -m pip --python /opt/fake-kubelet/bin/python install --no-cache-dir --no-deps --only-binary=:all: \
        --require-hashes --requirement requirements.lock \
    && python -m venv /opt/build \
    && /opt/build/bin/pip install --no-cache-dir --no-deps --only-binary=:all: \
        --require-hashes --requirement requirements-build.lock \
    # Generated modules that are never imported (agent/adapters/lazy_kubernetes.py) need no byte code: 25 MB.
    && find /opt/fake-kubelet -regex '.*/\(kubernetes_asyncio/client/.*\|pygments/lexers\)/__pycache__.*' -delete
COPY pyproject.toml README.md LICENSE ./
COPY config/service.yaml config/
COPY systemd systemd/
COPY agent agent/
RUN /opt/build/bin/pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /opt/build/wheels . \
    && python -m pip --python /opt/fake-kubelet/bin/python install --no-cache-dir --no-deps --no-index \
        /opt/build/wheels/*.whl

FROM ${PYTHON}${DIGEST:+@${DIGEST}}
COPY --from=build /opt/fake-kubelet /opt/fake-kubelet
# The only place that is written to: credentials after `join`, certificates, and the file system that the Node tells of.
RUN install --directory --owner=65532 --group=65532 --mode=0700 /var/lib/kubelet
VOLUME /var/lib/kubelet
ENV PATH=/opt/fake-kubelet/bin:$PATH \
    HOME=/var/lib/kubelet
USER 65532:65532
EXPOSE 10250
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=10s --start-period=30s CMD ["fake-kubelet", "healthcheck"]
ENTRYPOINT ["fake-kubelet"]

ARG PYTHON
ARG DIGEST
ARG VERSION=dev
ARG REVISION=unknown
LABEL org.opencontainers.image.title="fake-kubelet" \
      org.opencontainers.image.description="A kubelet without containers: it makes a machine a true and living Kubernetes Node" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.base.name="${PYTHON}" \
      org.opencontainers.image.base.digest="${DIGEST}"
