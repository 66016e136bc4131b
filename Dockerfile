# Two stages: the toolchain builds, a small image runs.
FROM rust:1-slim-bookworm AS build
WORKDIR /src
COPY . .
RUN cargo build --release --locked --bin mcp-filesystem

FROM debian:bookworm-slim
RUN apt-get update && apt-get install --yes --no-install-recommends curl && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 10001 agent && mkdir --parents /data/workspace && chown agent /data/workspace
COPY --from=build /src/target/release/mcp-filesystem /usr/local/bin/mcp-filesystem
COPY config/docker.yaml /etc/mcp-filesystem.yaml
USER agent
EXPOSE 8091
HEALTHCHECK --interval=30s --timeout=3s CMD ["curl", "--fail", "--silent", "http://127.0.0.1:8091/health"]
ENTRYPOINT ["mcp-filesystem"]
CMD ["--config", "/etc/mcp-filesystem.yaml"]
