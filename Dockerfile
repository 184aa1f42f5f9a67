# SPDX-License-Identifier: Apache-2.0
# Like the official collector image: nothing inside but the binary with its libraries and the certificate bundle; no shell;
# not root; the same arguments, configuration path and ports. A service written for that image runs with this one.
FROM debian:bookworm AS build
WORKDIR /src
COPY scripts/install-packages scripts/
RUN scripts/install-packages build image-build
COPY . .
RUN cmake --preset release && cmake --build --preset release --target spanflame && scripts/collect-image build/spanflame /image

FROM scratch
COPY --from=build /image /
USER 10001:10001
# Inside a container the default configuration must be reachable from outside it.
ENV SPANFLAME_LISTEN=0.0.0.0
EXPOSE 4040 4317 4318 4620 8888 13133 55679
HEALTHCHECK --interval=10s --timeout=3s --start-period=2s CMD ["/spanflame", "healthcheck"]
ENTRYPOINT ["/spanflame"]
CMD ["--config", "/etc/otelcol/config.yaml"]
