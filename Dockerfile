# docker build -t fake-kubelet .    (or podman build --format docker: HEALTHCHECK is not in OCI's own format)
ARG PYTHON=docker.io/library/python:3.13-slim

FROM ${PYTHON} AS build
WORKDIR /src
# What we depend on, in a layer that a change of our own code leaves alone. The environment has no pip of its own: nobody
# installs anything into an image that runs.
COPY pyproject.toml ./
RUN python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["dependencies"], sep="\n")' \
        > requirements.txt \
    && python -m venv --without-pip /opt/fake-kubelet \
    && python -m pip --python /opt/fake-kubelet/bin/python install --no-cache-dir --requirement requirements.txt \
    # Generated modules that are never imported (agent/adapters/lazy_kubernetes.py) need no byte code: 25 MB.
    && find /opt/fake-kubelet -regex '.*/\(kubernetes_asyncio/client/.*\|pygments/lexers\)/__pycache__.*' -delete
COPY README.md LICENSE ./
COPY config/service.yaml config/
COPY systemd systemd/
COPY agent agent/
RUN python -m pip --python /opt/fake-kubelet/bin/python install --no-cache-dir --no-deps .

FROM ${PYTHON}
COPY --from=build /opt/fake-kubelet /opt/fake-kubelet
# The only place that is written to: credentials after `join`, certificates, and the file system that the Node tells of.
# Keys that a library wants to read from a file are in /dev/shm for a moment: memory, writable below a read-only root too.
RUN install --directory --owner=65532 --group=65532 --mode=0700 /var/lib/kubelet
VOLUME /var/lib/kubelet
ENV PATH=/opt/fake-kubelet/bin:$PATH \
    HOME=/var/lib/kubelet \
    TMPDIR=/dev/shm
USER 65532:65532
EXPOSE 10250
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=10s --start-period=30s CMD ["fake-kubelet", "healthcheck"]
ENTRYPOINT ["fake-kubelet"]

ARG PYTHON
ARG VERSION=dev
ARG REVISION=unknown
LABEL org.opencontainers.image.title="fake-kubelet" \
      org.opencontainers.image.description="A kubelet without containers: it makes a machine a true and living Kubernetes Node" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.base.name="${PYTHON}"
