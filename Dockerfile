# The image of Sluice: built on Debian 12, and then nothing but the binary and what it loads. The
# same as scripts/image makes without a container engine.
FROM debian:bookworm-slim AS build
COPY . /sluice
WORKDIR /sluice
RUN scripts/install_packages
RUN cmake --preset release -DBUILD_TESTING=OFF && cmake --build --preset release --target sluice
RUN scripts/image --folder /image

FROM scratch
COPY --from=build /image /
ENV HOME=/tmp
USER 65532:65532
ENTRYPOINT ["/usr/bin/sluice"]
