# The image of iris-sidecar: one program and what it links, no shell, no package manager.
#
#   docker build -t registry.example.com/iris-sidecar:0.1.0 .
#
# `scripts/image` builds the last stage from a program that is already built, and runs it.

FROM rust:1.95.0-bookworm AS build
RUN apt-get update && apt-get install --yes --no-install-recommends ca-certificates curl make python3
WORKDIR /src
COPY . .
RUN make release && scripts/image-root target/release/iris-sidecar /image

FROM scratch
COPY --from=build /image/root/ /
# The volume begins with this folder's owner.
COPY --from=build --chown=65532:65532 /image/data/ /var/lib/iris-sidecar/
ENV PATH=/opt/iris-sidecar \
    HOME=/var/lib/iris-sidecar \
    IRIS_HOME=/var/lib/iris-sidecar/home \
    SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt
VOLUME /var/lib/iris-sidecar
USER 65532:65532
EXPOSE 4317 4318 6920 13133
STOPSIGNAL SIGTERM
ENTRYPOINT ["/opt/iris-sidecar/iris-sidecar"]
CMD ["serve"]
LABEL org.opencontainers.image.title="iris-sidecar" \
      org.opencontainers.image.description="Judges the traces of AI agents beside them: OTLP in, verdicts out" \
      org.opencontainers.image.licenses="Apache-2.0 AND MIT AND LGPL-2.1-or-later AND GPL-3.0-or-later WITH GCC-exception-3.1 AND MPL-2.0"
